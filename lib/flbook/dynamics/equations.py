"""Ordinary differential equations of a few named numbers, such as overlaps: Runge-Kutta of order four, in numpy."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Number = ndarray | float
State = dict[str, Number]


def integrate(rate: Callable[[State], State], state: State, times: Float[ndarray, " t"], dt: float) -> State:
    """The solution at the given times (the first is the start), stacked along a new last axis.

    Parameters
    ----------
    rate
        Time derivative of the state, a function of the state.
    state
        Numbers or arrays by name, at the first time.
    times
        Times in ascending order, shape ``(t,)``.
    dt
        Step size; steps are shorter where no whole number of them fits between two times.

    Returns
    -------
    dict[str, ndarray]
        Under each name of `state` an array of shape ``(*own, t)``, with ``*own`` its shape at the start.

    Examples
    --------
    >>> decay = integrate(lambda s: {"x": -s["x"]}, {"x": 1.0}, np.array([0.0, 1.0]), dt=0.1)
    >>> decay["x"].round(4).tolist()
    [1.0, 0.3679]
    """

    def euler(now: State, rate: State, h: float) -> State:
        return {name: now[name] + h * rate[name] for name in now}

    path = [state]
    for gap in np.diff(times):
        count = max(1, int(np.ceil(gap / dt - 1e-9)))
        h = gap / count
        for _ in range(count):
            k1 = rate(state)
            k2 = rate(euler(state, k1, h / 2))
            k3 = rate(euler(state, k2, h / 2))
            k4 = rate(euler(state, k3, h))
            state = {name: state[name] + h / 6 * (k1[name] + 2 * k2[name] + 2 * k3[name] + k4[name]) for name in state}
        path.append(state)
    return {name: np.stack([one[name] for one in path], -1) for name in state}
