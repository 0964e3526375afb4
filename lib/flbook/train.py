"""Training: problems that know their gradient, and `fit`, the only loop of the book.

A problem is whatever has ``start()`` (parameters before training), ``gradient(params, **change)`` and
``norm(direction)``. `Training` is the direct kind: a network, data and a loss, differentiated by autograd.
`flbook.dynamics.gram.GramTraining` is the same problem in coefficients.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from flbook import rng
from flbook.losses import check_labels, logistic
from flbook.shapes import Quantity

Params = dict[str, Tensor]


class Training:
    r"""Minimise :math:`L_S(w) = \frac1n \sum_i \ell(f(w, x_i), \tilde y_i)` for every member of an ensemble at once.

    model: a module whose forward maps ``x`` to outputs ``(*E, n)``, or logits ``(*E, n, classes)`` if the loss takes
        them; its parameters carry the ensemble axes. A sample of x has two axes, patches and coordinates, unless the
        model's attribute ``sample_axes`` says otherwise.
    """

    def __init__(self, model: nn.Module, x: Tensor, observed: Tensor, loss=logistic):
        getattr(loss, "check", check_labels)(observed)
        lead = x.ndim - 1 - getattr(model, "sample_axes", 2)
        if x.shape[lead] != observed.shape[-1]:
            raise ValueError(f"x holds {x.shape[lead]} samples, shape {tuple(x.shape)}, but observed labels have shape "
                             f"{tuple(observed.shape)}")
        like = next(model.parameters())
        self.model, self.x, self.observed, self.loss = model, x.to(like), observed.to(like), loss
        one = self.predict(self.start(), self.x[(0,) * lead])  # the outputs on one member's data
        self.ensemble = loss(one, self.observed[(0,) * (observed.ndim - 1)]).shape[:-1]
        for name, given in (("x", x.shape[:lead]), ("observed", observed.shape[:-1])):
            if not _fits(given, self.ensemble):
                raise ValueError(f"the model's parameters carry the ensemble axes, of shape {tuple(self.ensemble)}; "
                                 f"those of {name}, of shape {tuple(given)}, do not fit them")

    def start(self) -> Params:
        """The parameters before training."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, or on `x`."""
        return torch.func.functional_call(self.model, params, (self.x if x is None else x.to(self.x),))

    def train_loss(self, params: Params, observed: Tensor | None = None) -> Tensor:
        """Mean loss of each member, shape ``*E``; `observed` replaces the labels."""
        labels = self.observed if observed is None else observed
        return self.loss(self.predict(params), labels).mean(-1)

    def gradient(self, params: Params, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss: one backward pass, since members do not share parameters."""
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        grads = torch.autograd.grad(self.train_loss(leaves, observed).sum(), list(leaves.values()))
        return dict(zip(leaves, grads, strict=True))

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction in parameter space, shape ``*E``."""
        return sum(p.square().reshape(*self.ensemble, -1).sum(-1) for p in direction.values()).sqrt()


class MiniBatches(Training):
    """The same problem, each gradient from a batch of samples: one pass over a fresh shuffle of them, then another.

    size: samples of a batch, the same places for every member of the ensemble; what is left of a pass is dropped.
    The batches follow each other in the order of the calls, so one object serves one run of `fit`.
    """

    def __init__(self, model: nn.Module, x: Tensor, observed: Tensor, loss=logistic, size: int = 100, seed: int = 0):
        super().__init__(model, x, observed, loss)
        if not 1 <= size <= observed.shape[-1]:
            raise ValueError(f"size must lie between 1 and n = {observed.shape[-1]}, samples of a batch; got {size}")
        self.size, self.generator, self.waiting = size, rng.generator(seed, "batches"), []

    def gradient(self, params: Params, observed: Tensor | None = None) -> Params:
        """Gradient of each member's mean loss over the next batch."""
        if not self.waiting:
            shuffled = torch.randperm(self.observed.shape[-1], generator=self.generator)
            self.waiting = list(shuffled.split(self.size))[: len(shuffled) // self.size]
        places = self.waiting.pop(0).to(self.x.device)
        labels = (self.observed if observed is None else observed)[..., places]
        x = self.x.index_select(self.x.ndim - 1 - getattr(self.model, "sample_axes", 2), places)
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        loss = self.loss(self.predict(leaves, x), labels).mean(-1).sum()
        return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def _fits(shape: Sequence[int], ensemble: Sequence[int]) -> bool:
    """Does a shape broadcast to that of the ensemble, without adding to it?"""
    pairs = zip(reversed(shape), reversed(ensemble), strict=False)
    return len(shape) <= len(ensemble) and all(size in (1, axis) for size, axis in pairs)


def log_steps(steps: int, points: int = 40) -> list[int]:
    """Steps to record at: 0, the last, and about `points` between them at equal ratios."""
    if steps < 1:
        return [0]
    return sorted({0, *np.unique(np.geomspace(1, steps, points).round().astype(int)).tolist(), steps})


class Fit(NamedTuple):
    """What training returns."""

    params: Params
    history: xr.Dataset  # the recorded quantities over `step`, dimensions (step, *ensemble, *own)


def fit(
    problem: Any,
    optimizer: Any,
    steps: int,
    record: Sequence[Quantity] = (),
    ensemble: Sequence[str] = (),
    at: Sequence[int] | None = None,
) -> Fit:
    """Take `steps` steps of `optimizer` on `problem`, recording quantities on the way.

    record: quantities of the parameters; each becomes a variable of ``history``.
    ensemble: names of the ensemble axes, in order.
    at: steps to record at; by default log-spaced, because learning happens on a logarithmic clock.
    Nothing leaves the device inside the loop.
    """
    if steps < 0:
        raise ValueError(f"steps must be 0 or more; got {steps}")
    at = log_steps(steps) if at is None else sorted({int(s) for s in at if 0 <= s <= steps})
    if record and not at:
        raise ValueError(f"at must name at least one step from 0 to {steps}, to record {record[0].name}")
    params = problem.start()
    for quantity in record:
        _check_axes(quantity, quantity.of(params), ensemble)
    state = optimizer.start(params)
    seen: list[list[Tensor]] = []
    for step in range(steps + 1):
        if record and step in at:
            seen.append([quantity.of(params) for quantity in record])
        if step < steps:
            params, state = optimizer.step(problem, params, state)
    columns = [torch.stack(column).detach().cpu().numpy() for column in zip(*seen, strict=True)]
    return Fit(params, _dataset(record, columns, at, ensemble))


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
