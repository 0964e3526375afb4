"""Exponents with their windows: exact laws, laws with corrections, noise, and what is refused."""

import numpy as np
import pytest
import torch
import xarray as xr

from flbook import fits, observe

X = np.geomspace(10, 10240, 11)


def noisy(curve, noise, seeds=8, draw=0):
    return curve * np.exp(noise * np.random.default_rng(draw).standard_normal((seeds, len(curve))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_exact_power_law_is_straight_throughout(dtype):
    found = observe.exponent(torch.tensor(X, dtype=dtype), 3 * torch.tensor(X, dtype=dtype) ** -0.5)
    assert found.value == pytest.approx(-0.5, abs=1e-6) and not found.curved
    assert found.window == pytest.approx((10, 10240)) and "straight line throughout" in found.verdict
    np.testing.assert_allclose(found.local_slopes, -0.5, atol=1e-5)
    low, high = found.interval
    assert low <= found.value <= high and high - low < 1e-5


def test_over_the_whole_range_it_is_the_fit_of_fits():
    y = noisy(X**-0.5, 0.05)
    found = observe.exponent(X, y)
    known = fits.exponent(xr.DataArray(y, {"n": X}, ("seed", "n")), "n")
    assert found.window == pytest.approx((10, 10240))
    assert found.value == pytest.approx(known.value) and found.interval == pytest.approx(known.interval)


@pytest.mark.parametrize("seeds", [1, 8])
def test_a_bend_at_the_small_end_is_left_out(seeds):
    curve = X**-0.5 * (1 + 300 / X**1.5)
    y = noisy(curve, 0.02, seeds)
    found = observe.exponent(X, y[0] if seeds == 1 else y)
    whole = np.polyfit(np.log(X), np.log(y.mean(0)), 1)[0]
    assert found.window[0] > 50 and found.window[1] == pytest.approx(10240) and not found.curved
    assert abs(found.value + 0.5) < 0.03 < abs(whole + 0.5), "the whole range would have another exponent"
    assert found.interval[0] < found.value < found.interval[1]
    assert f"of {len(X)} points; with more points the curve is no straight line" in found.verdict


def test_the_order_of_the_places_does_not_matter():
    y = X**-0.5 * (1 + 300 / X**1.5)
    there, back = observe.exponent(X, y), observe.exponent(X[::-1], y[::-1])
    np.testing.assert_allclose(there.local_slopes, back.local_slopes)
    assert there.window == back.window and there.value == pytest.approx(back.value)


def test_where_curvature_remains_it_says_so_and_the_interval_holds_the_local_slopes():
    found = observe.exponent(X, np.exp(-0.1 * np.log(X) ** 2))
    assert found.curved and found.window == pytest.approx((X[-4], X[-1]))
    assert "curvature remains: the local slope goes from -1.500 to -1.777" in found.verdict
    assert found.interval[0] <= found.local_slopes[-1] < found.local_slopes[-3] <= found.interval[1]
    assert "curvature" not in observe.exponent(X, X**-0.5).verdict


def test_seeds_that_agree_to_rounding():
    """Their spread is 0: a law is straight all the same, and the interval of a bend is that of its local slopes."""
    law, bend = (observe.exponent(X, np.tile(curve, (5, 1))) for curve in (X**-0.5, np.exp(-0.1 * np.log(X) ** 2)))
    assert law.window == pytest.approx((10, 10240)) and not law.curved
    assert bend.curved and bend.window == pytest.approx((X[-3], X[-1]))
    assert bend.interval == pytest.approx((bend.local_slopes[-1], bend.local_slopes[-2]))


def test_the_interval_covers_a_law_about_as_often_as_it_says():
    found = [observe.exponent(X, noisy(X**-0.5, 0.1, 10, draw)) for draw in range(60)]
    found += [observe.exponent(X, noisy(X**-0.5, 0.1, 1, draw)[0]) for draw in range(100, 160)]
    assert np.mean([one.interval[0] <= -0.5 <= one.interval[1] for one in found]) > 0.8
    assert np.mean([one.window[0] == pytest.approx(10) for one in found]) > 0.8, "a straight line is kept whole"


def test_places_that_are_measured_seed_by_seed():
    width = noisy(X, 0.05)
    found = observe.exponent(width, 2 * width**1.5)
    assert found.value == pytest.approx(1.5, abs=0.01) and found.interval[0] < found.value < found.interval[1]


@pytest.mark.parametrize("x, y, sentence", [
    (X, X[:3], r"got x of shape \(11,\) and y of shape \(3,\)"),
    (X, -X, "y must be positive and finite everywhere, for logarithms; its smallest value is -1"),
    (X - 10, X, "x must be positive"),
    (X[:3], X[:3], "at least 4 different places x, without seeds; got 3 places"),
    (X[:2], np.ones((5, 2)), "at least 3 different places x, with seeds; got 2"),
    (np.ones(6), X[:6], "different places"),
])  # fmt: skip
def test_bad_input_is_one_sentence(x, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        observe.exponent(x, y)
