"""Optimizers: each asks a problem for gradients, as often and wherever it likes, and returns new parameters.

A rule has two functions. ``start(params)`` returns its state; ``step(problem, params, state)`` returns parameters and
state after one step. It gets the problem, not a gradient, because some rules ask twice: sharpness-aware minimisation
calls ``problem.gradient`` again at perturbed parameters, label-noise descent calls it with other labels
(``problem.gradient(params, observed=...)``), and both ask ``problem.norm`` for lengths, one a member. Parameters are
dictionaries of tensors of shape ``(*E, ...)``; every scalar of a rule may be a tensor of shape ``*E``.

Rules linear in the gradient (those here) also run on the coefficients of `flbook.dynamics.gram`, unchanged.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from flbook.shapes import per_member

Params = dict[str, Tensor]


@dataclass(frozen=True)
class GradientDescent:
    r""":math:`w \leftarrow w - \eta \nabla L(w)`."""

    lr: float | Tensor

    def start(self, params: Params) -> Any:
        """No state."""
        return None

    def step(self, problem: Any, params: Params, state: Any) -> tuple[Params, Any]:
        """One step."""
        grad = problem.gradient(params)
        return {name: p - per_member(self.lr, p) * grad[name] for name, p in params.items()}, state


@dataclass(frozen=True)
class Momentum:
    r"""Heavy ball: :math:`v \leftarrow \beta v + \nabla L(w)`, :math:`w \leftarrow w - \eta v`."""

    lr: float | Tensor
    beta: float | Tensor = 0.9

    def start(self, params: Params) -> Params:
        """The velocity, zero at first."""
        return {name: torch.zeros_like(p) for name, p in params.items()}

    def step(self, problem: Any, params: Params, state: Params) -> tuple[Params, Params]:
        """One step."""
        grad = problem.gradient(params)
        state = {name: per_member(self.beta, v) * v + grad[name] for name, v in state.items()}
        return {name: p - per_member(self.lr, p) * state[name] for name, p in params.items()}, state


@dataclass(frozen=True)
class BoundedDescent:
    r"""Gradient descent whose step shrinks where a full one would overshoot.

    .. math:: w \leftarrow w - \eta_t \nabla L(w), \qquad
              \eta_t = \min\big(\eta,\ \kappa\,L(w)/\|\nabla L(w)\|^2\big)

    To first order a step lowers the loss by at most the share :math:`\kappa` of it. The path is that of gradient
    descent, at a pace of its own: large steps while a race is slow, small ones while something blows up.

    Source: the bound is Polyak's step size for a loss whose minimum is 0, Polyak (1987).
    """

    lr: float | Tensor
    share: float | Tensor = 0.3

    def start(self, params: Params) -> Any:
        """No state."""
        return None

    def step(self, problem: Any, params: Params, state: Any) -> tuple[Params, Any]:
        """One step; it asks the problem for its loss too."""
        grad = problem.gradient(params)
        square = problem.norm(grad) ** 2
        bound = self.share * problem.train_loss(params) / square.clamp(min=torch.finfo(square.dtype).tiny)
        lr = torch.minimum(torch.as_tensor(self.lr, dtype=bound.dtype, device=bound.device), bound)
        return {name: p - per_member(lr, p) * grad[name] for name, p in params.items()}, state


@dataclass(frozen=True)
class Adam:
    r"""Each coordinate by its own scale: :math:`w \leftarrow w - \eta_t\,\hat m / (\sqrt{\hat v} + \epsilon)`.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
              \hat m = \frac{m}{1 - \beta_1^t}, \quad \hat v = \frac{v}{1 - \beta_2^t}

    horizon: if given, the step size falls to zero along half a cosine, :math:`\eta_t = \frac\eta2(1 + \cos\pi t/h)`.
    Not linear in the gradient, so it does not run on coefficients.

    Source: Kingma and Ba (2015), Algorithm 1.
    """

    lr: float | Tensor
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    horizon: int | None = None

    def start(self, params: Params) -> tuple[int, Params, Params]:
        """No step taken, both averages zero."""
        zeros = {name: torch.zeros_like(p) for name, p in params.items()}
        return 0, zeros, zeros

    def step(self, problem: Any, params: Params, state: tuple) -> tuple[Params, tuple]:
        """One step."""
        (taken, first, second), (one, two), grad = state, self.betas, problem.gradient(params)
        decay = 1.0 if self.horizon is None else (1 + math.cos(math.pi * min(1.0, taken / self.horizon))) / 2
        taken += 1
        first = {name: one * m + (1 - one) * grad[name] for name, m in first.items()}
        second = {name: two * v + (1 - two) * grad[name].square() for name, v in second.items()}
        moved = {}
        for name, p in params.items():
            scale = (second[name] / (1 - two**taken)).sqrt() + self.epsilon
            moved[name] = p - decay * per_member(self.lr, p) * first[name] / (1 - one**taken) / scale
        return moved, (taken, first, second)


gradient_descent = GradientDescent
momentum = Momentum
