"""Double descent at a tiny preset: labelled, independent of the grid, peaked at N = n, and exact where it is known."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting import double_descent
from flbook.lectures.benign_overfitting.double_descent import Setting, measure
from flbook.runs import results, settings

TINY = Setting(lr=(0.0, 2.0), width=(5, 12, 20, 21, 80), ridge=(0.0, 0.3), seed=(0, 1, 2, 3, 4), n=20, d=8, points=200)
DIGITS = TINY.thinned(data="digits", noise=0.1, n=30, width=(5, 30, 90), lr=(0.0,))


@pytest.mark.parametrize("setting", [TINY, DIGITS], ids=["gaussian", "digits"])
def test_a_labelled_dataset(setting):
    dataset = measure(setting)
    assert set(dataset) == {"risk", "test_error", "train_risk", "norm"}
    assert tuple(dataset.risk.dims) == ("lr", "width", "ridge", "seed")
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert ((dataset.test_error >= 0) & (dataset.test_error <= 1)).all()


@pytest.mark.parametrize("setting", [TINY, DIGITS], ids=["gaussian", "digits"])
def test_everything_is_fitted_from_n_on_and_the_norm_peaks_there(setting):
    plain = measure(setting).isel(lr=0).sel(ridge=0.0).median("seed")
    assert (plain.train_risk.sel(width=slice(setting.n, None)) < 1e-12).all()
    assert (plain.train_risk.sel(width=slice(None, setting.n - 1)) > 1e-3).all()
    assert int(plain.norm.idxmax("width")) in (setting.n, setting.n + 1)
    assert int(plain.risk.idxmax("width")) in (setting.n, setting.n + 1)


def test_a_ridge_shortens_the_solution_and_costs_training_risk():
    dataset = measure(TINY)
    assert (dataset.norm.sel(ridge=0.3) < dataset.norm.sel(ridge=0.0)).all()
    assert (dataset.train_risk.sel(ridge=0.3) > dataset.train_risk.sel(ridge=0.0)).all()


def test_a_cell_does_not_see_the_grid_around_it(tmp_path):
    whole = double_descent.run(TINY, cache=tmp_path)
    one = measure(TINY.thinned(lr=(2.0,), width=(12,), ridge=(0.3,), seed=(3,))).squeeze()
    for name in one.data_vars:
        np.testing.assert_allclose(one[name], whole[name].sel(lr=2.0, width=12, ridge=0.3, seed=3), rtol=1e-8)


def test_wrong_digits_are_wrong_and_as_many_as_asked():
    _, y, _, _ = double_descent.sample(DIGITS)
    _, true, _, _ = double_descent.sample(DIGITS.thinned(noise=0.0))
    assert ((y.argmax(1) != true.argmax(1)).sum(-1) == 3).all()


def test_coordinates_have_the_exact_risk():
    found = double_descent.subset(n=20, d=60, seeds=600).sel(p=[4, 10, 40, 60])
    error = found.risk.std("seed") / 600**0.5
    assert (abs(found.risk.mean("seed") - found.exact) < 4 * error).all()


def test_curves_pass_through_the_data_from_n_on():
    found = double_descent.curves((6, 12, 40), n=12)
    near = [float(abs(found.fit.sel(width=w).interp(x=found["at"]) - found.y).max()) for w in (6, 40)]
    assert near[0] > 0.05 > near[1]


@pytest.mark.parametrize("change, sentence", [
    (dict(data="mnist"), "data must be one of gaussian, digits; got 'mnist'"),
    (dict(width=(10, 0)), "width must be at least 1, a number of features; got 0"),
    (dict(ridge=(-1.0,)), "ridge must not be negative; got -1.0"),
    (dict(data="digits", noise=1.5), r"noise must lie in \[0, 1\] for digits, a share of wrong labels; got 1.5"),
])
def test_what_does_not_exist_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        double_descent.run(TINY.thinned(**change))


@pytest.mark.parametrize("width, seed", [(25, 0), (300, 7), (1200, 3)])
def test_three_cells_of_the_stored_result(width, seed):
    stored = results.open("double_descent").sel(width=width, seed=seed).squeeze()
    again = measure(Setting.paper().thinned(width=(width,), seed=(seed,))).squeeze()
    for name in again.data_vars:
        np.testing.assert_allclose(again[name], stored[name], rtol=1e-5, atol=1e-10, err_msg=name)
