"""The loop: `fit` takes the steps of a rule on a problem, and records quantities on the way."""

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook.shapes import Quantity
from flbook.training.problem import Params, Problem, Rule, check_fit

FIRST = 20  # steps that are timed, to say how long training will take if that is more than LONG minutes
LONG = 20
UNITS = ((365.25 * 24 * 60, "years"), (24 * 60, "days"), (60, "hours"), (1, "minutes"))


class Trained(NamedTuple):
    """What training returns."""

    params: Params
    history: xr.Dataset  # the recorded quantities over `step`, dimensions (step, *ensemble, *own)


def log_steps(steps: int, points: int = 40) -> list[int]:
    """Steps to record at: 0, the last, and about `points` between them at equal ratios.

    Parameters
    ----------
    steps
        The last step.
    points
        About how many steps lie between the first and the last.

    Returns
    -------
    list of int
        Steps in ascending order, each once; ``[0]`` if there is none to take.
    """
    if steps < 1:
        return [0]
    return sorted({0, *np.unique(np.geomspace(1, steps, points).round().astype(int)).tolist(), steps})


def fit(
    problem: Problem,
    rule: Rule,
    steps: int,
    record: Sequence[Quantity] = (),
    ensemble: Sequence[str] = (),
    at: Sequence[int] | None = None,
    start: Params | None = None,
) -> Trained:
    """Take `steps` steps of a rule on a problem, recording quantities on the way.

    Nothing leaves the device inside the loop. If training will take more than twenty minutes, stderr is told after its
    first steps.

    Parameters
    ----------
    problem, rule
        See `flbook.training.problem`. Step t is taken on ``problem.at(t)``, so both gradients of a rule that asks twice
        are those of one batch.
    steps
        How many.
    record
        Quantities of the parameters; each becomes a variable of ``history``.
    ensemble
        Names of the ensemble axes, in order.
    at
        Steps to record at; by default log-spaced, because learning happens on a logarithmic clock.
    start
        Parameters before training, in the form of ``problem.start()``; the problem's own if None. What a lazy rival
        expands about, or coefficients are counted from, is the problem's: give those to the model, by
        `flbook.with_start`.

    Returns
    -------
    Trained
        Parameters after the last step; history with the dimensions ``(step, *ensemble, *dims)``, dims a quantity's own
        axes.

    Raises
    ------
    ValueError
        Before the first step: the rule leaves the span in which the problem keeps its weights, axes are not named, or
        the given start has not the form of the problem's.

    Examples
    --------
    >>> from flbook import GradientDescent, SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> bool(problem.train_loss(fit(problem, GradientDescent(0.1), 50).params) < problem.train_loss(problem.start()))
    True
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise ValueError(f"steps must be a whole number of at least 0; got {steps!r}")
    at = log_steps(steps) if at is None else sorted({int(s) for s in at if 0 <= s <= steps})
    if record and not at:
        raise ValueError(f"at must name at least one step from 0 to {steps}, to record {record[0].name}")
    check_fit(problem, rule)
    params = problem.start() if start is None else _given(problem, start)
    params = problem.decaying(params) if rule.decays else params
    for quantity in record:
        _check_axes(quantity, quantity.of(params), ensemble)
    state = rule.start(params)
    recorded: list[list[Tensor]] = []
    begin = time.perf_counter()
    for step in range(steps + 1):
        if step == FIRST:
            _forecast(steps, (time.perf_counter() - begin) / FIRST)
        if record and step in at:
            recorded.append([quantity.of(params) for quantity in record])
        if step < steps:
            params, state = rule.step(problem.at(step), params, state)
    columns = [torch.stack(column).detach().cpu().numpy() for column in zip(*recorded, strict=True)]
    return Trained(params, _dataset(record, columns, at, ensemble))


def _forecast(steps: int, seconds: float) -> None:
    """Say on stderr how long training will take, if that is long."""
    minutes = steps * seconds / 60
    if minutes > LONG:
        takes = next(f"{minutes / size:,.0f} {unit}" for size, unit in UNITS if minutes >= 2 * size)
        print(f"flbook: {steps:,} steps of {seconds * 1e3:.2g} ms take about {takes}", file=sys.stderr, flush=True)


def _given(problem: Problem, start: Params) -> Params:
    """A copy of a given start, in the form of the problem's own."""
    own = problem.start()
    wanted, got = ({name: tuple(p.shape) for name, p in params.items()} for params in (own, start))
    if wanted != got:
        raise ValueError(f"start must hold the parameters of the problem, of shapes {wanted}; got {got}")
    return {name: start[name].detach().to(p).clone() for name, p in own.items()}


def _check_axes(quantity: Quantity, value: Tensor, ensemble: Sequence[str]) -> None:
    """Refuse a quantity whose axes are not all named, before the training that it would come out of."""
    if value.ndim != len(ensemble) + len(quantity.dims):
        raise ValueError(f"{quantity.name} has shape {tuple(value.shape)}, but its axes are named "
                         f"{(*ensemble, *quantity.dims)}; name the ensemble axes with ensemble=(...)")


def _dataset(record, columns, at, ensemble) -> xr.Dataset:
    variables = {}
    for quantity, values in zip(record, columns, strict=True):
        named = {"long_name": quantity.long_name or quantity.name.replace("_", " "), "units": quantity.units}
        variables[quantity.name] = (("step", *ensemble, *quantity.dims), values, named)
    step = ("step", list(at), {"long_name": "step t", "units": "1"})
    return xr.Dataset(variables, coords={"step": step} if variables else {})
