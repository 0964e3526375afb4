"""Fits: exponents, crossings and boundaries of averaged curves, each with an interval from resampled seeds.

The unit of replication is the seed. A statistic T of the mean over seeds is computed for weights that the seeds get:

* value: T at equal weights;
* interval: 2.5 % and 97.5 % of T over 2000 resamples of the seeds (percentile bootstrap);
* per_seed: the jackknife's pseudo-values S T - (S - 1) T(without seed i). Their mean is T freed of its bias of order
  1/S and their standard error is the jackknife's, so they stand for "the statistic per seed" also where T makes no
  sense for a single seed, such as the place at which one seed's error, a step from 1/2 to 0, crosses 1/5.

Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, sections 11 and 13.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import xarray as xr

RESAMPLES = 2000
_BLOCK = 2**22  # numbers held at once while resampling, so that a fine grid does not fill the memory
_LOST = 0.05  # share of the resamples in which the statistic may fail to exist


class Fit(NamedTuple):
    """A statistic of the mean over seeds, its 95 % interval, and one pseudo-value a seed (see the module)."""

    value: float
    interval: tuple[float, float]
    per_seed: np.ndarray


def exponent(da: xr.DataArray, x: str, over: str = "seed") -> Fit:
    """Slope of log(mean of `da` over the seeds) against log x, by least squares.

    Parameters
    ----------
    da
        Values with the dimensions `x` and `over`; without `over` it is the mean already, and the interval is not known.
    x
        The coordinate, above 0.
    over
        The seeds.

    Returns
    -------
    Fit
        The slope.

    Raises
    ------
    ValueError
        If `da` has another dimension, or a mean or a coordinate is not positive.

    Examples
    --------
    >>> n = np.array([10, 20, 40])
    >>> round(exponent(xr.DataArray(3.0 / n**2, {"n": n}, "n"), "n").value, 6)
    -2.0
    """
    data = _by_seed(da, over, x)
    slope = _slope(_positive(da, x))
    low = data.mean(axis=0)
    if not (low > 0).all():
        raise ValueError(f"exponent needs positive values: {_name(da)} has the mean {low.min():.3g} at some {x}")

    def statistic(weights):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(_means(weights, data)) @ slope

    return _fit(statistic, data, f"the exponent of {_name(da)} in {x}")


def crossing(da: xr.DataArray, x: str, level: float, over: str = "seed", log: bool = True) -> xr.DataArray:
    """Where the mean of `da` over the seeds first crosses `level` as x grows, for every point of the other dimensions.

    Parameters
    ----------
    da
        Values with the dimension `x`; those over `over`, if it is one, are averaged.
    x
        The coordinate.
    level
        To be crossed, from either side.
    over
        The seeds.
    log
        Between two values of x the curve is a straight line in log x, or in x itself?

    Returns
    -------
    DataArray
        Values of x, NaN where the curve never crosses.

    Examples
    --------
    >>> da = xr.DataArray([0.5, 0.3, 0.1], {"d": [1.0, 10.0, 100.0]}, "d")
    >>> round(float(crossing(da, "d", level=0.3)), 6)
    10.0
    """
    curve = (da.mean(over) if over in da.dims else da).transpose(..., x)
    grid = _positive(da, x) if log else da[x].to_numpy().astype(float)
    order = np.argsort(grid)
    where = first_crossing(curve.to_numpy()[..., order], _scale(grid[order], log), level)
    found = curve.isel({x: 0}, drop=True).copy(data=np.exp(where) if log else where)
    name = da[x].attrs.get("long_name", x)
    attrs = {"long_name": f"{name} at {_name(da)} = {level:g}", "units": da[x].attrs.get("units", "1")}
    return found.rename(x).assign_attrs(attrs)


def boundary(da: xr.DataArray, x: str, along: str, level: float, over: str = "seed") -> Fit:
    """Exponent of a boundary: the slope of log(crossing in x) against log(along).

    Parameters
    ----------
    da
        Values with the dimensions `x`, `along` and `over`.
    x, along
        Coordinates above 0; each curve over x crosses the level.
    level
        To be crossed.
    over
        The seeds.

    Returns
    -------
    Fit
        The slope.

    Raises
    ------
    ValueError
        If the level is not crossed everywhere, or not in at least 95 % of the resamples.
    """
    data = _by_seed(da, over, along, x)
    slope, grid = _slope(_positive(da, along)), _positive(da, x)
    order = np.argsort(grid)
    data, steps = data[..., order], np.log(grid[order])
    mean = data.mean(axis=0)
    missed = np.isnan(first_crossing(mean, steps, level))
    if missed.any():
        k = int(np.argmax(missed))
        raise ValueError(
            f"{_name(da)} never crosses level = {level:g} at {along} = {da[along].to_numpy()[k]:g}: over {x} it runs "
            f"from {mean[k].min():.3g} to {mean[k].max():.3g}; take another level or a wider range of {x}"
        )

    def statistic(weights):
        return first_crossing(_means(weights, data), steps, level) @ slope

    return _fit(statistic, data, f"the boundary of {_name(da)} at level = {level:g}")


def first_crossing(curve: np.ndarray, steps: np.ndarray, level: float) -> np.ndarray:
    """Where curves first cross a level, on straight lines: for a `statistic` that reads borders.

    Parameters
    ----------
    curve
        Values, shape (..., X).
    steps
        Where, increasing, shape (X,): logarithms, where the lines are straight in them.
    level
        To be crossed, from either side.

    Returns
    -------
    ndarray
        Shape (...), in units of `steps`; NaN where a curve never crosses.

    Raises
    ------
    ValueError
        If there is one step only.
    """
    if len(steps) < 2:
        raise ValueError("a crossing needs at least two points on the curve")
    above = curve - level
    left, right = above[..., :-1], above[..., 1:]
    hit = left * right <= 0
    first = np.argmax(hit, axis=-1)[..., None]
    start, end = np.take_along_axis(left, first, -1)[..., 0], np.take_along_axis(right, first, -1)[..., 0]
    part = start / np.where(start == end, 1, start - end)
    k = first[..., 0]
    return np.where(hit.any(axis=-1), steps[k] + part * (steps[k + 1] - steps[k]), np.nan)


def collapse(da: xr.DataArray, x: str, groups: str | Sequence[str], over: str = "seed") -> Fit:
    """How far the curves of the `groups` lie apart at equal x: max over x of (highest - lowest mean).

    Noise adds to a largest difference: take enough seeds.

    Parameters
    ----------
    da
        Values with the seeds, the groups and one more dimension.
    x
        A dimension, or a coordinate over the groups and one more dimension, such as n|mu|^4/(sigma^4 d) over (d, mu).
        Then the curves are compared at every x of theirs that all of them reach, on straight lines in log x.
    groups
        The dimension, or several, that tells the curves apart.
    over
        The seeds.

    Returns
    -------
    Fit
        The largest gap, in units of `da`.

    Raises
    ------
    ValueError
        If dimensions do not fit, or the curves have no x in common.
    """
    groups = (groups,) if isinstance(groups, str) else tuple(groups)
    inner = [dim for dim in da.dims if dim != over and dim not in groups]
    if len(inner) != 1 or x not in da.coords:
        raise ValueError(
            f"collapse needs x = {x!r} as a coordinate and one dimension beside {over!r} and the groups {groups}; "
            f"{_name(da)} has the dimensions {da.dims}"
        )
    data = _by_seed(da, over, *groups, inner[0])
    curves = data.reshape(len(data), -1, data.shape[-1])
    grid = da[x].broadcast_like(da.isel({over: 0}, drop=True) if over in da.dims else da)
    grid = grid.transpose(*groups, inner[0]).to_numpy().reshape(curves.shape[1:]).astype(float)
    if (grid == grid[0]).all():
        return _fit(lambda weights: np.ptp(_means(weights, curves), axis=1).max(axis=1), curves, "the collapse")
    if not (grid > 0).all():
        raise ValueError(f"collapse needs positive values of {x} where the groups have different ones")
    order = np.argsort(grid, axis=1)
    curves, steps = np.take_along_axis(curves, order[None], 2), np.log(np.take_along_axis(grid, order, 1))
    shared = steps[(steps >= steps[:, 0].max()) & (steps <= steps[:, -1].min())]
    if not shared.size:
        raise ValueError(f"collapse has no value of {x} that all groups reach")
    curves = _interpolated(curves, steps, np.unique(shared))
    return _fit(lambda weights: np.ptp(_means(weights, curves), axis=1).max(axis=1), curves, "the collapse")


def statistic(da: xr.DataArray, of: Callable[[np.ndarray], np.ndarray], dims: Sequence[str], over: str = "seed") -> Fit:
    """Any statistic of the mean of `da` over the seeds.

    Parameters
    ----------
    da
        Values with the dimensions `dims` and `over`.
    of
        Function of means, shape ``(R, *dims)``, that returns ``(R,)``: one statistic a mean, R resampled means at once.
    dims
        In the order that `of` expects.
    over
        The seeds.

    Returns
    -------
    Fit
        The statistic of the mean.

    Examples
    --------
    >>> da = xr.DataArray([[1.0, 5.0], [3.0, 5.0]], dims=("seed", "n"))
    >>> statistic(da, lambda means: means[:, 1] - means[:, 0], ("n",)).value
    3.0
    """
    data = _by_seed(da, over, *dims)
    return _fit(lambda weights: of(_means(weights, data)), data, f"the statistic of {_name(da)}")


def rank_correlation(a: xr.DataArray, b: xr.DataArray, over: str = "seed") -> Fit:
    """Spearman's rank correlation of `a` and `b` over all of their cells, every seed of every cell being one.

    A seed stands for all of its cells: resampling draws seeds.

    Parameters
    ----------
    a, b
        Values with the same dimensions, which may stand in another order.
    over
        The seeds.

    Returns
    -------
    Fit
        The correlation, a value between -1 and 1.

    Raises
    ------
    ValueError
        If the two do not have the same dimensions, `over` among them.
    """
    if set(a.dims) != set(b.dims) or over not in a.dims:
        raise ValueError(f"{_name(a)} and {_name(b)} must have the same dimensions with {over!r} among them, not "
                         f"{a.dims} and {b.dims}; select first")
    from scipy.stats import rankdata  # half a second to import, and nothing else here asks for it

    rest = [dim for dim in a.dims if dim != over]
    pairs = [_by_seed(da, over, *rest).reshape(a.sizes[over], -1) for da in (a, b)]

    def pooled(weights):
        size = weights.shape[1]  # weights are counts over their sum, which is one less in the jackknife
        whole = np.isclose(weights * size, np.rint(weights * size)).all(axis=1, keepdims=True)
        counts = np.rint(weights * np.where(whole, size, size - 1)).astype(int)
        drawn = np.stack([np.repeat(np.arange(size), row) for row in counts])
        x, y = (rankdata(values[drawn].reshape(len(drawn), -1), axis=1) for values in pairs)
        x, y = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in (x, y))
        return (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))

    return _fit(pooled, np.stack(pairs, 1), f"the rank correlation of {_name(a)} and {_name(b)}")


def _fit(statistic: Callable, data: np.ndarray, what: str) -> Fit:
    """A statistic of seed weights, shape (R, S) -> (R,), with its interval and its pseudo-values."""
    count, value = len(data), float(statistic(np.full((1, len(data)), 1 / len(data)))[0])
    if count == 1:
        return Fit(value, (np.nan, np.nan), np.array([value]))
    block = max(1, _BLOCK // data[0].size)
    resampled = np.concatenate([statistic(part) for part in np.array_split(_resamples(count), -(-RESAMPLES // block))])
    without = statistic((1 - np.eye(count)) / (count - 1))
    if np.isnan(without).any() or not np.isfinite(resampled).mean() >= 1 - _LOST:
        raise ValueError(f"{what} does not exist in too many resamples of the {count} seeds; take more seeds")
    low, high = np.percentile(resampled[np.isfinite(resampled)], [2.5, 97.5])
    return Fit(value, (float(low), float(high)), count * value - (count - 1) * without)


@lru_cache
def _resamples(count: int) -> np.ndarray:
    """Weights of resampled seeds, shape (RESAMPLES, count); always the same."""
    return np.random.default_rng(2024).multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count


def _means(weights: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Weighted means over the seeds: (R, S), (S, ...) -> (R, ...)."""
    return (weights @ data.reshape(len(data), -1)).reshape(-1, *data.shape[1:])


def _slope(x: np.ndarray) -> np.ndarray:
    """The weights whose product with y is the least-squares slope of y against log x."""
    if len(x) < 2:
        raise ValueError("an exponent needs at least two points")
    centred = np.log(x) - np.log(x).mean()
    return centred / (centred @ centred)


def _interpolated(curves: np.ndarray, steps: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Curves (S, G, X) over their own `steps` (G, X), on straight lines at the shared points `at` (K,)."""
    found = [np.stack([np.interp(at, own, one) for one in curves[:, g]]) for g, own in enumerate(steps)]
    return np.stack(found, axis=1)


def _by_seed(da: xr.DataArray, over: str, *dims: Hashable) -> np.ndarray:
    """The values with the seeds first: shape (S, *dims), S = 1 if `da` is a mean already."""
    if set(da.dims) - {over} != set(dims):
        raise ValueError(f"{_name(da)} must have the dimensions {dims} and {over!r}, not {da.dims}; select first")
    data = (da if over in da.dims else da.expand_dims(over)).transpose(over, *dims).to_numpy().astype(float)
    if not np.isfinite(data).all():
        raise ValueError(f"{_name(da)} must be finite everywhere; {np.sum(~np.isfinite(data))} of its values are not")
    return data


def _positive(da: xr.DataArray, x: str) -> np.ndarray:
    values = da[x].to_numpy().astype(float)
    if not (values > 0).all():
        raise ValueError(f"{x} must be positive for logarithms; its smallest value is {values.min():g}")
    return values


def _scale(grid: np.ndarray, log: bool) -> np.ndarray:
    return np.log(grid) if log else grid


def _name(da: xr.DataArray) -> str:
    return str(da.attrs.get("long_name", da.name or "the data"))
