"""Fits: exact on exact laws, honest on noisy ones, one sentence where a statistic does not exist."""

import time

import numpy as np
import pytest
import xarray as xr
from scipy.stats import spearmanr

from flbook import fits

N = np.array([10, 20, 40, 80, 160])
SIGNALS = np.geomspace(0.5, 16, 41)
DIMENSIONS = np.array([100, 400, 1600])


def power_law(slope, noise=0.0, seeds=12, draw=0):
    rng = np.random.default_rng(draw)
    values = 3 * N[:, None] ** slope * np.exp(noise * rng.standard_normal((len(N), seeds)))
    return xr.DataArray(values, dims=("n", "seed"), coords={"n": N, "seed": range(seeds)}, name="error")


def transition(noise=0.0, seeds=10, draw=0):
    """A curve that falls from 1/2 to 0 around mu = d^(1/4), straight in log mu, so that interpolation is exact."""
    rng = np.random.default_rng(draw)
    shift = noise * rng.standard_normal((seeds, len(DIMENSIONS), 1))
    offset = np.log(SIGNALS) - np.log(DIMENSIONS)[:, None] / 4 - np.log(0.8) + shift
    return xr.DataArray(
        np.clip(0.25 - 0.25 * offset, 0, 0.5),
        dims=("seed", "d", "mu"),
        coords={"d": DIMENSIONS, "mu": SIGNALS},
        name="test_error",
        attrs={"long_name": "test error"},
    )


def test_an_exact_power_law_gives_its_exponent():
    fit = fits.exponent(power_law(-0.5), "n")
    assert fit.value == pytest.approx(-0.5, abs=1e-12)
    assert fit.interval == pytest.approx((-0.5, -0.5), abs=1e-12)
    assert fit.per_seed == pytest.approx(np.full(12, -0.5), abs=1e-10)


def test_the_exponent_is_that_of_the_mean_over_seeds():
    da = power_law(0.3, noise=0.5)
    mean = da.mean("seed")
    assert fits.exponent(da, "n").value == pytest.approx(np.polyfit(np.log(N), np.log(mean), 1)[0], abs=1e-12)


def test_order_of_dimensions_and_of_points_does_not_matter():
    da = power_law(0.3, noise=0.5)
    one, other = (fits.exponent(a, "n") for a in (da, da.transpose("seed", "n").isel(n=[3, 0, 4, 1, 2])))
    assert other.value == pytest.approx(one.value) and other.interval == pytest.approx(one.interval)


def test_a_mean_alone_gives_the_value_without_an_interval():
    da = power_law(0.3, noise=0.5)
    fit = fits.exponent(da.mean("seed"), "n")
    assert fit.value == pytest.approx(fits.exponent(da, "n").value)
    assert np.isnan(fit.interval).all() and fit.per_seed.shape == (1,)


@pytest.mark.parametrize("seeds", [10, 30])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(seeds):
    found = [fits.exponent(power_law(-0.5, noise=0.2, seeds=seeds, draw=k), "n") for k in range(300)]
    covered = np.mean([fit.interval[0] <= -0.5 <= fit.interval[1] for fit in found])
    assert 0.86 <= covered <= 0.98  # a percentile bootstrap of ten seeds is a little short of 95 %
    errors = np.array([fit.value + 0.5 for fit in found])
    claimed = np.array([fit.per_seed.std(ddof=1) / np.sqrt(seeds) for fit in found])
    assert np.sqrt((claimed**2).mean()) == pytest.approx(errors.std(), rel=0.15)


def test_pseudo_values_of_a_mean_are_the_data():
    """For a linear statistic the jackknife returns each seed's own value, here the difference of two points."""
    da = xr.DataArray(np.random.default_rng(0).random((7, 2)), dims=("seed", "n"), coords={"n": [1.0, np.e]})
    fit = fits._fit(lambda weights: weights @ (da[:, 1] - da[:, 0]).to_numpy(), da.to_numpy(), "")
    np.testing.assert_allclose(fit.per_seed, da[:, 1] - da[:, 0], rtol=1e-10)


def test_a_crossing_is_where_the_line_between_two_points_meets_the_level():
    da = xr.DataArray([0.5, 0.4, 0.1, 0.3], dims="mu", coords={"mu": [1.0, 2.0, 8.0, 16.0]}, name="error")
    assert float(fits.crossing(da, "mu", 0.4)) == pytest.approx(2.0)
    assert float(fits.crossing(da, "mu", 0.25)) == pytest.approx(
        4.0
    )  # halfway in the logarithm, and not on the way back
    assert float(fits.crossing(da, "mu", 0.25, log=False)) == pytest.approx(5.0)
    assert float(fits.crossing(da[::-1], "mu", 0.25)) == pytest.approx(4.0)
    assert float(fits.crossing(da[2:], "mu", 0.2)) == pytest.approx(np.sqrt(8 * 16))


def test_the_first_crossing_of_several_curves_is_read_from_either_side():
    curves = np.array([[[0.0, 1.0, 0.0], [1.0, 0.5, 0.0]], [[0.0, 0.1, 0.2], [0.0, 0.0, 1.0]]])
    found = fits.first_crossing(curves, np.array([1.0, 2.0, 4.0]), 0.25)
    np.testing.assert_allclose(found, [[1.25, 3.0], [np.nan, 2.5]])


def test_a_crossing_that_never_happens_is_nan():
    da = transition()
    found = fits.crossing(da, "mu", 0.25)
    assert found.dims == ("d",) and found.attrs == {"long_name": "mu at test error = 0.25", "units": "1"}
    np.testing.assert_allclose(found, 0.8 * DIMENSIONS**0.25, rtol=1e-12)
    late = fits.crossing(da.sel(mu=slice(0, 4)), "mu", 0.25)
    assert np.isnan(late).to_numpy().tolist() == [False, False, True]
    assert np.isnan(fits.crossing(da, "mu", 0.7)).all()


def test_an_exact_boundary_gives_its_exponent():
    fit = fits.boundary(transition(), "mu", "d", 0.2)
    assert fit.value == pytest.approx(0.25, abs=1e-12)
    assert fit.interval == pytest.approx((0.25, 0.25), abs=1e-12)
    assert fit.per_seed.shape == (10,)


def test_the_interval_of_a_boundary_covers_the_truth():
    found = [fits.boundary(transition(noise=0.1, seeds=12, draw=k), "mu", "d", 0.25) for k in range(200)]
    assert 0.84 <= np.mean([fit.interval[0] <= 0.25 <= fit.interval[1] for fit in found]) <= 0.99
    means = np.array([fit.per_seed.mean() for fit in found])
    assert abs(means.mean() - 0.25) < 4 * means.std() / np.sqrt(200)


def test_a_boundary_that_is_not_reached_gets_a_sentence():
    with pytest.raises(ValueError, match="^test error never crosses level = 0.25 at d = 1600: over mu it runs from"):
        fits.boundary(transition().sel(mu=slice(0, 4)), "mu", "d", 0.25)


def test_a_boundary_that_most_resamples_do_not_reach_gets_a_sentence():
    da = transition(noise=0.3)
    edge = da.where(da.mu < 5.3, drop=True)
    level = float(edge.sel(d=1600).mean("seed")[-1]) + 1e-6
    with pytest.raises(ValueError, match="does not exist in too many resamples of the 10 seeds; take more seeds$"):
        fits.boundary(edge, "mu", "d", level)


def test_collapse_is_the_largest_gap_between_curves_at_equal_x():
    values = np.array([[[0.0, 1.0, 2.0], [0.1, 1.3, 2.2]], [[0.0, 1.0, 2.0], [0.1, 1.5, 2.2]]])
    da = xr.DataArray(values, dims=("seed", "n", "r"), coords={"r": [1.0, 2.0, 3.0], "n": [5, 10]})
    assert fits.collapse(da, "r", "n").value == pytest.approx(0.4)  # of the means: 1.4 - 1.0
    assert fits.collapse(da.isel(seed=1), "r", "n").value == pytest.approx(0.5)


def test_curves_of_one_variable_collapse_on_it_wherever_they_were_measured():
    da = transition()
    da = da.assign_coords(r=(("d", "mu"), SIGNALS**4 / DIMENSIONS[:, None]))
    inner = da.sel(mu=slice(1.6, 9))  # no kink of the clipped curves, where interpolation is not exact
    assert fits.collapse(inner, "r", "d").value == pytest.approx(0, abs=1e-12)
    shifted = inner + 0.1 * (inner.d == 400)
    assert fits.collapse(shifted.assign_coords(r=inner.r), "r", "d").value == pytest.approx(0.1, abs=1e-12)
    wrong = inner.assign_coords(r=(("d", "mu"), inner.mu.to_numpy() ** 2 / DIMENSIONS[:, None]))
    assert fits.collapse(wrong.isel(d=[0, 1]), "r", "d").value > 0.05


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: fits.exponent(power_law(1) * 0, "n"), "^exponent needs positive values: error has the mean 0"),
        (lambda: fits.exponent(power_law(1).assign_coords(n=N - 10), "n"), "^n must be positive for logarithms"),
        (lambda: fits.exponent(power_law(1).isel(n=[0]), "n"), "^an exponent needs at least two points"),
        (lambda: fits.exponent(transition(), "mu"), r"^test error must have the dimensions \('mu',\) and 'seed', not"),
        (lambda: fits.exponent(power_law(1).where(power_law(1).n > 10), "n"), "must be finite everywhere; 12 of its"),
        (lambda: fits.crossing(transition().isel(mu=[0]), "mu", 0.2), "^a crossing needs at least two points"),
        (lambda: fits.collapse(transition(), "r", "d"), "^collapse needs x = 'r' as a coordinate"),
        (
            lambda: fits.collapse(
                transition().assign_coords(r=(("d", "mu"), SIGNALS * 100.0 ** np.arange(3)[:, None])), "r", "d"
            ),
            "^collapse has no value of r that all groups reach",
        ),
    ],
)
def test_what_cannot_be_fitted_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_fits_are_fast_enough_to_be_called_often():
    rng = np.random.default_rng(0)
    grid = np.clip(0.5 - rng.random((20, 12, 24)) * 0.02 - np.linspace(0, 0.5, 24), 0, 0.5)
    da = xr.DataArray(grid, dims=("seed", "d", "mu"), coords={"d": np.arange(1, 13), "mu": np.arange(1, 25)})
    fits.boundary(da, "mu", "d", 0.2)
    start = time.process_time()
    fits.boundary(da, "mu", "d", 0.2)
    assert time.process_time() - start < 0.5  # about 0.02 s; a loop over resamples takes seconds


def test_any_statistic_of_the_mean():
    da = xr.DataArray(np.arange(12.0).reshape(4, 3) ** 2 + 1, dims=("seed", "x"), coords={"x": [1.0, 2.0, 4.0]})
    known = fits.exponent(da, "x")
    slope = np.log(da.x.values) - np.log(da.x.values).mean()
    slope = slope / (slope @ slope)
    found = fits.statistic(da, lambda means: np.log(means) @ slope, ("x",))
    assert found.value == pytest.approx(known.value) and found.interval == pytest.approx(known.interval)
    np.testing.assert_allclose(found.per_seed, known.per_seed)


def test_rank_correlation_over_all_cells():
    rng = np.random.default_rng(0)
    x = np.arange(5.0)[None] + 0.1 * rng.standard_normal((10, 5))
    a = xr.DataArray(x, dims=("seed", "portion"), name="a")
    assert fits.rank_correlation(a, np.exp(a)).value == pytest.approx(1)
    assert fits.rank_correlation(a, -a).value == pytest.approx(-1)
    noisy = a + xr.DataArray(2 * rng.standard_normal((10, 5)), dims=("seed", "portion"))
    fit = fits.rank_correlation(a, noisy)
    assert fit.value == pytest.approx(spearmanr(a.values.ravel(), noisy.values.ravel()).statistic)
    assert fit.interval[0] < fit.value < fit.interval[1] and fit.per_seed.shape == (10,)
    without = spearmanr(a.values[1:].ravel(), noisy.values[1:].ravel()).statistic
    assert fit.per_seed[0] == pytest.approx(10 * fit.value - 9 * without)
    with pytest.raises(ValueError, match="must have the same dimensions with 'seed' among them"):
        fits.rank_correlation(a, a.mean("seed"))
