r"""The denoising loss: name the noise that was added.

.. math:: L(W) = E\,\frac1d\big\|f_W\big(\sqrt{\bar\alpha_t}\,x_0 + \sqrt{1 - \bar\alpha_t}\,\epsilon,\ t\big) -
          \epsilon\big\|^2

over samples :math:`x_0`, noise :math:`\epsilon \sim N(0, I)` and t uniform on 1 to T.

Source: Ho et al. (2020), equation (14).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from flbook import rng
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule
from flbook.training.problem import Params, PopulationProblem, gradient_of, of_step


class NoisyBatch(NamedTuple):
    """What a step of training sees."""

    noisy: Float[Tensor, "..."]
    t: Int[Tensor, "*E b"]
    noise: Float[Tensor, "..."]


class GivenNoise(NamedTuple):
    """What is drawn for each step, its leading axis: clean samples, their steps t, and the noise."""

    x: Float[Tensor, "..."]
    t: Int[Tensor, "steps *E b"]
    noise: Float[Tensor, "..."]


class TrainingSet(NamedTuple):
    """A law that draws from given samples, with replacement."""

    x: Float[Tensor, "..."]

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0) -> Float[Tensor, "..."]:
        """A batch; a function of seed and step."""
        lead = 1 if isinstance(seed, tuple) else 0
        places = rng.over_seeds(lambda one: torch.randint(
            self.x.shape[lead], (batch,), generator=rng.generator(one, f"batch {step}")), seed)
        return torch.stack([own[row] for own, row in zip(self.x, places, strict=True)]) if lead else self.x[places]


@dataclass
class NoisePrediction(PopulationProblem):
    """A problem for `flbook.fit`: every step sees a fresh batch with fresh noise.

    model: called with noisy samples and steps t. law: its ``draw(batch, seed, step)`` returns clean samples. The draws
    of a step are a function of seed and step, or ``given``, which then takes the place of the law.
    """

    model: nn.Module
    law: Any
    schedule: NoiseSchedule
    seed: int | tuple[int, ...] = 0
    batch: int = 64
    number: int = 0
    given: GivenNoise | None = None

    def __post_init__(self):
        if self.given is not None:
            x, t, noise = (tuple(part.shape) for part in self.given)
            if x != noise or x[: len(t)] != t:
                raise ValueError("given must hold samples and noise of shape (steps, *E, b, ...) and their t of shape "
                                 f"(steps, *E, b); got {x}, {noise} and {t}")

    def start(self) -> Params:
        """The parameters before training."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def at(self, step: int) -> "NoisePrediction":
        """The problem of this step's batch."""
        return replace(self, number=step)

    def sample(self, like: Tensor) -> NoisyBatch:
        """The batch of this step, drawn on the CPU."""
        if self.given is not None:
            x, t, noise = (of_step("given", part, self.number).to(like.device) for part in self.given)
            return NoisyBatch(self.schedule.noised(x.to(like), t, noise.to(like)), t, noise.to(like))
        x = self.law.draw(self.batch, self.seed, self.number).to(like)
        lead = 1 if isinstance(self.seed, tuple) else 0
        noise = rng.normal(tuple(x.shape[lead:]), self.seed, f"noise {self.number}", dtype=torch.float32).to(like)
        t = rng.over_seeds(lambda one: torch.randint(
            1, self.schedule.steps + 1, (self.batch,), generator=rng.generator(one, f"times {self.number}")), self.seed)
        t = t.to(like.device)
        return NoisyBatch(self.schedule.noised(x, t, noise), t, noise)

    def loss(self, params: Params, drawn: NoisyBatch) -> Float[Tensor, "*E"]:
        """Mean squared error a coordinate, of each member."""
        error = torch.func.functional_call(self.model, params, (drawn.noisy, drawn.t)) - drawn.noise
        lead = 1 if isinstance(self.seed, tuple) else 0
        return error.square().flatten(lead).mean(-1)

    def slope(self, params: Params) -> Params:
        """Gradient of each member's loss."""
        drawn = self.sample(next(iter(params.values())))
        return gradient_of(lambda leaves: self.loss(leaves, drawn), params)

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction, one a member."""
        lead = 1 if isinstance(self.seed, tuple) else 0
        return sum(p.square().flatten(lead).sum(-1) for p in direction.values()).sqrt()


def predictor(model: nn.Module, params: Params) -> Callable[[Tensor, int], Tensor]:
    """A trained network as ``predict(x, t)`` with one t for all samples, without gradients."""

    @torch.no_grad()
    def predict(x: Tensor, t: int) -> Tensor:
        like = next(iter(params.values()))
        members = like.ndim and x.shape[: x.ndim - getattr(model, "sample_axes", 1)]
        steps = torch.full(members, t, device=like.device)
        return torch.func.functional_call(model, params, (x.to(like), steps)).to(x)

    return predict
