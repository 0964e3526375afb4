"""Double descent at a tiny preset: peaked at N = n, and exact where it is known."""

import pytest

from flbook.lectures.benign_overfitting import double_descent
from flbook.lectures.benign_overfitting.double_descent import Setting, run

TINY = Setting.tiny()
DIGITS = TINY.thinned(data="digits", noise=0.1, n=30, width=(5, 30, 90), lr=(0.0,))


@pytest.mark.parametrize("setting", [TINY, DIGITS], ids=["gaussian", "digits"])
def test_everything_is_fitted_from_n_on_and_the_norm_peaks_there(setting):
    plain = run(setting).isel(lr=0).sel(ridge=0.0).median("seed")
    assert (plain.train_risk.sel(width=slice(setting.n, None)) < 1e-12).all()
    assert (plain.train_risk.sel(width=slice(None, setting.n - 1)) > 1e-3).all()
    assert int(plain.norm.idxmax("width")) in (setting.n, setting.n + 1)
    assert int(plain.risk.idxmax("width")) in (setting.n, setting.n + 1)


def test_a_ridge_shortens_the_solution_and_costs_training_risk():
    dataset = run(TINY)
    assert (dataset.norm.sel(ridge=0.3) < dataset.norm.sel(ridge=0.0)).all()
    assert (dataset.train_risk.sel(ridge=0.3) > dataset.train_risk.sel(ridge=0.0)).all()


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


def test_more_wrong_labels_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"noise must lie in \[0, 1\] for digits, a share of wrong labels; got 1.5"):
        DIGITS.thinned(noise=1.5)
