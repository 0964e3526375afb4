"""Where a measured quantity crosses a level: bisection along one axis, with an error bar from the seeds."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from flbook.domains import Positive, checked_arguments


class Border(NamedTuple):
    """Where a quantity crosses a level."""

    value: float  # geometric mean over the seeds
    interval: tuple[float, float]  # 95 %, from Student's law over the seeds, on the logarithmic axis
    per_seed: np.ndarray
    runs: int  # how often the quantity was measured


@checked_arguments
def border(run: Callable[[float, int], float], low: Positive, high: Positive, level: float,
           seeds: Sequence[int] = (0, 1, 2, 3, 4), tol: Positive = 0.02) -> Border:
    r"""The place on a logarithmic axis at which a quantity crosses a level, seed by seed, by bisection.

    A seed is bisected until its two sides are closer than ``1 + tol``; it costs about
    :math:`\log_2(\ln(high/low)/\mathrm{tol})` runs, where a grid of that step has :math:`\ln(high/low)/\mathrm{tol}`.

    Parameters
    ----------
    run
        Called with a value of the axis and a seed, returns the quantity. It is asked to cross the level once between
        `low` and `high`; where it crosses more often, one of the places is found.
    low, high
        Ends of the axis, ``low < high``.
    level
        The level.
    seeds
        At least two.
    tol
        Relative distance to which a crossing is found.

    Returns
    -------
    Border
        The crossing, its interval, and what it cost.

    Raises
    ------
    ValueError
        If the ends are in the wrong order, there are not two seeds, or a seed does not cross the level.

    Examples
    --------
    >>> round(border(lambda n, seed: 1 / n, 1.0, 100.0, level=0.1, tol=1e-6).value, 4)
    10.0
    """
    if not low < high:
        raise ValueError(f"low must lie below high; got {low} and {high}")
    if len(seeds) < 2:
        raise ValueError(f"an interval needs at least two seeds; got {len(seeds)}")
    found = [_crossing(run, low, high, level, seed, tol) for seed in seeds]
    places, runs = np.array([place for place, _ in found]), sum(count for _, count in found)
    logs = np.log(places)
    half = stats.t.ppf(0.975, len(seeds) - 1) * logs.std(ddof=1) / math.sqrt(len(seeds))
    middle = logs.mean()
    return Border(math.exp(middle), (math.exp(middle - half), math.exp(middle + half)), places, runs)


def _crossing(run: Callable, low: float, high: float, level: float, seed: int, tol: float) -> tuple[float, int]:
    """Where one seed crosses, and after how many runs."""
    below, above = run(low, seed) > level, run(high, seed) > level
    if below == above:
        side = "above" if below else "at or below"
        raise ValueError(f"seed {seed} is {side} the level {level:g} at both ends, {low:g} and {high:g}; widen them")
    runs = 2
    while high / low > 1 + tol:
        middle = math.sqrt(low * high)
        runs += 1
        if (run(middle, seed) > level) == below:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high), runs
