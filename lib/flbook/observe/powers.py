"""The exponent of a measured curve: a straight line in logarithms, over the longest window that is one."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from flbook import fits

STRAIGHT = 1e-6  # a bend of the logarithms that single precision leaves by itself
LEVEL, STRICT = 0.975, 0.9  # of the slope's interval and of the bend's, on either side


class PowerLaw(NamedTuple):
    """An exponent, where it was read off, and what speaks against it."""

    value: float
    interval: tuple[float, float]  # 95 %; stretched over the window's local slopes where it is curved
    window: tuple[float, float]  # smallest and largest x of the fit
    local_slopes: np.ndarray  # between neighbouring points of the whole curve, in the order of x
    curved: bool  # whether even the shortest window is no straight line
    verdict: str  # in words


def exponent(x: Any, y: Any) -> PowerLaw:
    r"""The exponent s of :math:`y \sim x^s` at the large end of a curve.

    The window is the longest one that ends at the largest x and in which a straight line of :math:`\log y` in
    :math:`\log x` is not refused: the coefficient of a parabola added to it lies within its own 80 % interval around 0
    (80 and not 95, because a bend that stays in shifts the exponent). With seeds this interval, and the 95 % interval
    of the slope, come from resampled seeds, see `flbook.fits`; with a single curve from the residuals. Where no window
    passes, the shortest is taken, of three points with seeds and four without, the curve is called curved, and the
    interval is stretched over the window's local slopes.

    The interval is that of a straight line in the window. Of a correction that decays slowly in x a part is too small
    to be refused, and then the exponent of the limit may lie outside: look at the local slopes, and go further in x.

    Parameters
    ----------
    x
        Places above 0, shape ``(k,)``, or ``(seeds, k)`` where they are measured, too.
    y
        Values above 0, shape ``(k,)``, or ``(seeds, k)``; means over the seeds are fitted.

    Returns
    -------
    PowerLaw
        The exponent, its window, all local slopes, and a sentence.

    Raises
    ------
    ValueError
        If shapes clash, a number is not positive, or there are too few different places.

    Source: Efron and Tibshirani (1993) for the resampling.

    Examples
    --------
    >>> n = np.array([1.0, 10, 100, 1000, 10000, 100000])
    >>> found = exponent(n, 3 * n**-0.5)
    >>> round(found.value, 6), found.window == (1, 100000), found.curved
    (-0.5, True, False)
    """
    places, values = _curves(x, y)
    least, k = (3 if len(values) > 1 else 4), values.shape[1]
    if k < least or not (np.diff(np.log(places.mean(0))) > 1e-9).all():
        raise ValueError(f"an exponent with its window needs at least {least} different places x, "
                         f"{'with' if len(values) > 1 else 'without'} seeds; got {k} places, the smallest "
                         f"{places.min():g} and the largest {places.max():g}")
    starts = range(k - least + 1)
    first = next((j for j in starts if not _bent(places[:, j:], values[:, j:])), None)
    curved, start = first is None, starts[-1] if first is None else first
    value, (low, high) = _line(places[:, start:], values[:, start:])
    u, v = np.log(places.mean(0)), np.log(values.mean(0))
    slopes = np.diff(v) / np.diff(u)
    if curved:
        low, high = min(low, *slopes[start:]), max(high, *slopes[start:])
    window = (float(places[:, start].mean()), float(places[:, -1].mean()))
    found = PowerLaw(value, (float(low), float(high)), window, slopes, curved, "")
    return found._replace(verdict=_said(found, start))


def _curves(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Places and values with the seeds first, both of shape (S, k), in the order of the places."""
    places, values = (np.asarray(one, dtype=float) for one in (x, y))
    if not (values.ndim in (1, 2) and values.size and places.shape in (values.shape, values.shape[-1:])):
        raise ValueError(f"y must have the shape (k,) or (seeds, k), and x the same or (k,); got x of shape "
                         f"{places.shape} and y of shape {values.shape}")
    for name, one in (("x", places), ("y", values)):
        if not (np.isfinite(one) & (one > 0)).all():
            raise ValueError(f"{name} must be positive and finite everywhere, for logarithms; its smallest value is "
                             f"{one.min():g}")
    values = np.atleast_2d(values)
    places = np.broadcast_to(places, values.shape)
    order = np.argsort(places.mean(0), kind="stable")
    return places[:, order], values[:, order]


def _line(places: np.ndarray, values: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Slope and interval of a straight line."""
    if len(values) > 1:
        fit = _resampled(places, values, degree=1)
        return fit.value, fit.interval
    slope, error, free = _from_residuals(places, values, degree=1)
    half = float(stats.t.ppf(LEVEL, free)) * error
    return slope, (slope - half, slope + half)


def _bent(places: np.ndarray, values: np.ndarray) -> bool:
    """Is a straight line refused, because a parabola would have a coefficient that is not 0?"""
    if len(values) > 1:
        fit, free = _resampled(places, values, degree=2), len(values) - 1
        bend, error = fit.value, fit.per_seed.std(ddof=1) / len(values) ** 0.5
    else:
        bend, error, free = _from_residuals(places, values, degree=2)
    arch = abs(bend) * np.ptp(np.log(places.mean(0))) ** 2 / 4  # how far the middle lies off the chord
    return bool(arch > STRAIGHT and abs(bend) > stats.t.ppf(STRICT, free) * error)


def _resampled(places: np.ndarray, values: np.ndarray, degree: int) -> fits.Fit:
    """The leading coefficient of a polynomial through the logarithms of the means, with resampled seeds."""
    da = xr.DataArray(np.stack([places, values], 1), dims=("seed", "what", "point"))

    def leading(means: np.ndarray) -> np.ndarray:
        u, v = np.log(means[:, 0]), np.log(means[:, 1])
        powers = (u - u.mean(-1, keepdims=True))[..., None] ** np.arange(degree + 1)
        return np.einsum("rk,rk->r", np.linalg.pinv(powers)[:, degree], v)

    return fits.statistic(da, leading, ("what", "point"))


def _from_residuals(places: np.ndarray, values: np.ndarray, degree: int) -> tuple[float, float, int]:
    """The same of one curve, with its standard error and the degrees of freedom of the residuals."""
    u, v = np.log(places[0]), np.log(values[0])
    powers = (u - u.mean())[:, None] ** np.arange(degree + 1)
    inverse, free = np.linalg.pinv(powers), len(u) - degree - 1
    found = inverse @ v
    spread = np.square(v - powers @ found).sum() / free
    return float(found[degree]), float(np.sqrt(spread * np.square(inverse[degree]).sum())), free


def _said(found: PowerLaw, start: int) -> str:
    """The exponent, its window, and what lies outside it or bends inside it."""
    low, high = found.interval
    said = (f"exponent {found.value:+.3f} [{low:+.3f}, {high:+.3f}] from x = {found.window[0]:g} to "
            f"{found.window[1]:g}, {len(found.local_slopes) + 1 - start} of {len(found.local_slopes) + 1} points")
    inside = found.local_slopes[start:]
    if found.curved:
        return (f"{said}; curvature remains: the local slope goes from {inside[0]:+.3f} to {inside[-1]:+.3f} there, "
                "so this is the exponent of a window and not yet that of a law")
    if start:
        return f"{said}; with more points the curve is no straight line, it begins at {found.local_slopes[0]:+.3f}"
    return f"{said}, a straight line throughout"
