"""Double descent at a tiny preset: peaked at N = n, and exact where it is known."""

from flbook.lectures.benign_overfitting import double_descent
from flbook.lectures.benign_overfitting.double_descent import experiment

TINY = experiment.setting("tiny")
DIGITS = TINY.thinned(data="digits", noise=0.1, n=30, width=(5, 30, 90), lr=(0.0,))


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
