"""Training to zero hinge loss at a tiny preset: labelled, independent of the grid, within the exact bounds."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting import leaky_relu
from flbook.lectures.benign_overfitting.leaky_relu import Setting, measure, smooth_leaky_relu
from flbook.runs import results, settings

TINY = Setting(n=(10, 14), flip_prob=(0.1, 0.2), ratio=(1.5, 4), gamma=(3.0,), seed=(0, 1, 2), m=3, points=256)


def test_a_labelled_dataset_of_what_was_asked():
    setting = Setting(**(vars(TINY) | dict(model=("network", "linear", "lazy"))))
    dataset = measure(setting)
    assert set(settings.axes(setting)) | {"stop"} == set(dataset.dims)
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    done = dataset.sel(stop="zero hinge loss")
    assert (dataset.train_error == 0).all() and done.hinge_loss.max() < 1e-6
    assert (dataset.hinge_loss.sel(stop="every label fitted") > 0.01).all()
    linear = done.sel(model="linear")
    np.testing.assert_allclose(linear.test_error, linear.readout_error, atol=0.02)
    assert (linear.margin * dataset.svm_norm <= 1 + 1e-6).all(), "no linear classifier has a larger margin"


def test_the_bounds_that_the_page_derives():
    done = measure(TINY).sel(stop="zero hinge loss", model="network")
    n = done.n
    eta = 1 / (2 * TINY.m * n)
    assert (done.norm * 0.1 * TINY.m**0.5 / done.svm_norm < 3 / 2**0.5).all()
    assert (done.steps * eta * 0.01 * TINY.m / done.svm_norm**2 < 1.5).all()


@pytest.mark.parametrize("model", ["network", "lazy"])
def test_a_cell_does_not_see_the_grid_around_it(model):
    setting = TINY.thinned(model=(model,))
    whole = measure(setting)
    one = measure(setting.thinned(n=(14,), flip_prob=(0.2,), ratio=(4,), seed=(1,))).squeeze()
    expected = whole.sel(n=14, flip_prob=0.2, ratio=4, seed=1).squeeze()
    np.testing.assert_allclose(one.steps, expected.steps, atol=1)
    for name in ("norm", "margin", "svm_norm", "svm_error", "test_error"):
        np.testing.assert_allclose(one[name], expected[name], rtol=5e-3, atol=0.004, err_msg=name)


def test_the_race_ends_where_the_stop_is():
    setting = TINY.thinned(n=(10,), flip_prob=(0.1,), ratio=(4,))
    end = measure(setting).squeeze().sel(stop="zero hinge loss")
    history = leaky_relu.race(setting, steps=int(end.steps.max()), fresh=16)
    assert (history.hinge_loss.isel(step=-1) < 1e-6).all() and int(history.flipped.sum()) == 1
    np.testing.assert_allclose(history.test_error.isel(step=-1), end.test_error, atol=0.005)
    assert history.train_margin.isel(step=-1).min() >= 1 - 1e-6 and history.fresh_margin.sizes["fresh"] == 32


def test_signal_strength_has_its_unit():
    for unit, expected in (("1", 0.5), ("1/n", 0.05), ("1/k", 0.25), ("1/d", 0.0125)):
        assert leaky_relu.strength(Setting(gamma_unit=unit), 10, 40, 0.2, 0.5) == pytest.approx(expected)


@pytest.mark.parametrize("change, sentence", [
    (dict(gamma_unit="1/m"), "gamma_unit must be one of 1, 1/n, 1/k, 1/d; got '1/m'"),
    (dict(ratio=(2, 0.5)), "ratio must be at least 1, so that any labels can be fitted; got d/n = 0.5"),
    (dict(gamma=(50.0,)), r"gamma must lie in \(0, 1\)"),
    (dict(flip_prob=(0.7,)), r"flip_prob must lie in \[0, 1/2\)"),
])
def test_a_cell_that_does_not_exist_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        leaky_relu.run(TINY.thinned(**change))


def test_smooth_networks_in_high_dimension_average(tmp_path):
    setting = smooth_leaky_relu.Setting(d=(1e6,), r=(0.3, 1.0), seed=(0, 1), n=20, m=3, steps=30, points=256)
    dataset = smooth_leaky_relu.run(setting, cache=tmp_path)
    assert set(settings.axes(setting)) == set(dataset.dims) and (dataset.train_error == 0).all()
    assert (dataset.cosine > 0.98).all() and (dataset.bend > 0.5).all()
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name


@pytest.mark.parametrize("n, ratio, seed", [(50, 10, 0), (60, 8, 3), (50, 5, 4)])
def test_three_cells_of_the_stored_result(n, ratio, seed):
    stored = results.open("leaky_relu").sel(n=n, ratio=ratio, seed=seed).squeeze()
    again = measure(Setting.paper().thinned(n=(n,), ratio=(ratio,), seed=(seed,))).squeeze()
    np.testing.assert_allclose(again.steps, stored.steps, atol=2)
    for name in ("norm", "margin", "svm_norm", "svm_error", "test_error"):
        np.testing.assert_allclose(again[name], stored[name], rtol=1e-2, atol=0.004, err_msg=name)
