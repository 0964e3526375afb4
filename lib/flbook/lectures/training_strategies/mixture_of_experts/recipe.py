r"""Training router and experts together, by the recipe of the official code."""

import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, NonNegative, Positive, Seeds, checked_arguments
from flbook.lectures.training_strategies.mixture_of_experts.experts import DoubleSoftmax, Experts
from flbook.shapes import per_member
from flbook.training.network import Training
from flbook.training.problem import Params, Problem


class ExpertTraining(Training):
    """A mixture of experts under routing noise: uniform in [0, 1), afresh for every expert, sample and step.

    Parameters
    ----------
    model, x, observed, loss
        As in `flbook.training.network.Training`; the model is an `Experts`.
    seed
        Of the noise: one number, or one for each member along the ensemble's axis.
    route
        If given, shape ``(*E, n)``, the numbers of the experts that learn from the samples: there is no router then.
    noise
        If given, shape ``(steps, *E, n, M)``, the routing noise of every step in place of one that is drawn.

    Raises
    ------
    ValueError
        If the noise does not have one number for each sample and expert, or a step is beyond it.
    """

    @checked_arguments
    def __init__(self, model: Experts, x: Tensor, observed: Tensor, loss=None, seed: Seeds = 0,
                 route: Int[Tensor, "*E n"] | None = None, noise: Tensor | None = None):
        self.noise, self.seed, self.route, self.every_noise = 0.0, seed, route, noise
        super().__init__(model, x, observed, DoubleSoftmax() if loss is None else loss)
        shape = (*model.theta.shape[:-2], self.total, model.experts)
        if noise is not None and noise.shape[1:] != shape:
            raise ValueError(f"noise must have shape (steps, {', '.join(map(str, shape))}); got {tuple(noise.shape)}")

    def at(self, step: int) -> "ExpertTraining":
        """The problem under the routing noise of a step."""
        there, shape = copy.copy(self), (self.total, self.model.experts)
        if self.every_noise is not None:
            if step >= len(self.every_noise):
                raise ValueError(f"noise must have a row for each step; step {step} is beyond {len(self.every_noise)}")
            there.noise = self.every_noise[step].to(self.x)
            return there
        there.noise = rng.over_seeds(
            lambda one: torch.rand(shape, generator=rng.generator(one, f"routing {step}")), self.seed).to(self.x)
        return there

    def predict(self, params: Params, x: Tensor | None = None, route: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, under the noise of the step; or on `x`, without noise."""
        how = {"route": route}
        if x is None:
            how = {"noise": self.noise, "route": self.route}
        return torch.func.functional_call(self.model, params, (self.x if x is None else x.to(self.x),), how)

    def batch(self, places: Tensor) -> "ExpertTraining":
        """The same problem on some of its samples, without noise."""
        part = super().batch(places)
        part.noise, part.every_noise = 0.0, None
        part.route = None if self.route is None else self.route.index_select(-1, places)
        return part

    def dispatch(self, params: Params, x: Tensor) -> Int[Tensor, "*E n"]:
        """Which expert the router asks about each sample, without noise."""
        return torch.einsum("...nd,...md->...nm", x.to(self.x).sum(-2), params["theta"]).argmax(-1)


class Running(NamedTuple):
    """What the recipe remembers of each member."""

    lowest: Float[Tensor, "*E"]  # the lowest loss so far
    on: Bool[Tensor, "*E"]  # does it train still?


@dataclass(frozen=True)
class ExpertRecipe(Checked):
    r"""Every expert takes steps of one length, the router those of gradient descent.

    .. math:: W_m \leftarrow W_m - \eta\,\frac{\nabla_{W_m} L}{\|\nabla_{w_m} L\|+\|\nabla_{b_m} L\|}, \qquad
              \theta \leftarrow \theta - \eta_r \nabla_\theta L

    An expert without a gradient stays. A member stops at the first loss that is no new minimum and either at most
    `stop` or more than `rise` above the minimum, as in the official code.

    Source: Chen et al. (2022), Algorithm 1; numbers of the official code.
    """

    linear: ClassVar[bool] = True
    decays: ClassVar[bool] = False

    lr: Positive = 1e-3
    router_lr: NonNegative = 0.1
    stop: NonNegative = 0.314
    rise: NonNegative = 0.02

    def check(self, problem: Problem) -> None:
        """There is no mixture of experts that the rule could not take."""

    def start(self, params: Params) -> Running:
        """Every member trains."""
        zero = params["b"].detach()[..., 0, 0, 0] * 0
        return Running(zero + torch.inf, zero == 0)

    def step(self, problem: Problem, params: Params, state: Running) -> tuple[Params, Running]:
        """One step; the loss comes with the gradient."""
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        loss = problem.train_loss(leaves)
        grads = torch.autograd.grad(loss.sum(), list(leaves.values()), allow_unused=True)  # a given route: no router
        grad = {name: torch.zeros_like(params[name]) if g is None else g for name, g in zip(leaves, grads, strict=True)}
        loss = loss.detach()
        ends = (loss > state.lowest) & ((loss > state.lowest + self.rise) | (loss <= self.stop))
        on = state.on & ~ends
        length = grad["w"].flatten(-3).norm(dim=-1) + grad["b"].flatten(-2).norm(dim=-1)
        each = self.lr * on[..., None] / length.clamp(min=torch.finfo(length.dtype).tiny)
        moved = {name: params[name] - per_member(each, grad[name]) * grad[name] for name in ("w", "b")}
        theta = params["theta"] - per_member(self.router_lr * on, grad["theta"]) * grad["theta"]
        return {"theta": theta, **moved}, Running(torch.minimum(loss, state.lowest), on)
