"""Prompts whose tasks come from a mixture of types, with the exact Bayes predictor: two signs, and two planes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.prompts import Prompts, check_batch
from flbook.domains import Checked, Count, NonNegative, Positive, Probability
from flbook.shapes import Context


@dataclass(frozen=True)
class SignPrompts(Checked):
    r"""One of two functions, :math:`f = \pm1` with equal chance, seen n times in noise; the inputs say nothing (x = 0).

    values, chances: the noise takes these values; without them it is Laplace noise of the scale `noise`, of density
    :math:`e^{-|\varepsilon|/b}/2b` and variance :math:`2b^2`. The task of a prompt is its f.

    Raises ValueError if the chances do not fit the values.
    Source: the discrete law is that of an independent audit of Wakayama and Suzuki (2025).
    """

    n: Count = 16
    noise: NonNegative = 1.0
    values: tuple[float, ...] | tuple[()] = ()
    chances: tuple[Probability, ...] | tuple[()] = ()

    def __post_init__(self):
        super().__post_init__()
        if self.noise == 0 and not self.values:
            raise ValueError("noise must be positive: without noise one example says everything; got 0")
        if len(self.values) != len(self.chances) or (self.chances and abs(sum(self.chances) - 1) > 1e-12):
            raise ValueError(f"chances must add up to 1, one for each of the {len(self.values)} values; got "
                             f"{self.chances}")

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch, a pure function of (seed, step); a tuple of seeds gives one leading axis."""
        check_batch(batch)
        sign = rng.normal((batch, 1), seed, f"sign prompts tasks, step {step}", device, dtype).sign()
        spread = rng.normal((batch, self.n + 1), seed, f"sign prompts noise, step {step}", device, dtype)
        y = sign + (self._discrete(spread) if self.values else self.noise * _laplace(spread))
        x = torch.zeros_like(y)[..., None]
        return Prompts(Context(x[..., :-1, :], y[..., :-1]), x[..., -1:, :], sign, sign, y[..., -1:])

    def bayes(self, y: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n+1"]:
        """The posterior mean of f after 0, 1, ... n labels."""
        if self.values:
            plus, minus = (self._chance(y - sign).log() for sign in (1, -1))
            evidence = (plus - minus).clamp(-60, 60) / 2  # a label that only one sign can give
        else:
            evidence = y.clamp(-1, 1) / self.noise
        zero = torch.zeros_like(y[..., :1])
        return torch.tanh(torch.cat([zero, evidence.cumsum(-1)], -1))

    def _discrete(self, spread: Tensor) -> Tensor:
        edges = torch.tensor(self.chances, dtype=spread.dtype, device=spread.device).cumsum(0)[:-1]
        place = torch.bucketize(torch.special.ndtr(spread), edges)
        return torch.tensor(self.values, dtype=spread.dtype, device=spread.device)[place]

    def _chance(self, noise: Tensor) -> Tensor:
        total = torch.zeros_like(noise)
        for value, chance in zip(self.values, self.chances, strict=True):
            total = total + chance * ((noise - value).abs() < 1e-6)
        return total


def _laplace(normal: Tensor) -> Tensor:
    """Laplace numbers of scale 1 at the quantiles of standard normal ones."""
    rank = torch.special.ndtr(-normal.abs().double())  # of the nearer tail
    return (-normal.sign().double() * torch.log(2 * rank)).to(normal)


class Posterior(NamedTuple):
    """What k = 0 ... n examples of a prompt say, mean squares over a fresh standard normal input."""

    type: Float[Tensor, "*E n+1 a"]  # chance of every type
    mean: Float[Tensor, "*E n+1 d"]  # posterior mean of the task
    variance: Float[Tensor, "*E n+1"]  # posterior variance of the function
    known: Float[Tensor, "*E n+1"]  # the same for who knows the type
    cost: Float[Tensor, "*E n+1"]  # expected gap of not knowing it: the difference of the two


@dataclass(frozen=True)
class PlanePrompts(Checked):
    r"""Linear tasks of two types: on the unit circle of one plane of R^4, or of the orthogonal one.

    .. math:: y_i = \langle\beta, x_i\rangle + \varepsilon_i, \quad \beta = (\cos\theta, \sin\theta, 0, 0)
              \ \text{or}\ (0, 0, \cos\theta, \sin\theta), \quad x_i \sim N(0, I_4)

    Both types are equally likely, angles uniform. So two tasks of different types are always :math:`\sqrt2` apart.

    Source: made for the lecture.
    """

    n: Count = 40
    noise: Positive = 1.0
    angles: Count = 128  # of the grid on which the posterior is computed

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch, a pure function of (seed, step); a tuple of seeds gives one leading axis."""
        check_batch(batch)

        def normal(what: str, *shape: int) -> Tensor:
            return rng.normal((batch, *shape), seed, f"plane prompts {what}, step {step}", device, dtype)

        pair = normal("angles", 2)
        pair = pair / pair.norm(dim=-1, keepdim=True)
        second = (normal("types", 1) > 0).to(dtype)
        task = torch.cat([pair * (1 - second), pair * second], -1)
        x = normal("inputs", self.n + 1, 4)
        clean = torch.einsum("...d,...nd->...n", task, x)
        y = clean + self.noise * normal("noise", self.n + 1)
        return Prompts(Context(x[..., :-1, :], y[..., :-1]), x[..., -1:, :], clean[..., -1:], task, y[..., -1:])

    def grid(self) -> Float[Tensor, "2 M 4"]:
        """All tasks of the grid, type by type."""
        angle = 2 * math.pi * torch.arange(self.angles, dtype=torch.float64) / self.angles
        pair, zero = torch.stack([angle.cos(), angle.sin()], -1), torch.zeros(self.angles, 2, dtype=torch.float64)
        return torch.stack([torch.cat([pair, zero], -1), torch.cat([zero, pair], -1)])

    def posterior(self, context: Context) -> Posterior:
        """The exact posterior after every example of the context (up to the grid of angles)."""
        tasks = self.grid().to(context.x)
        miss = context.y[..., None, None] - torch.einsum("...nd,amd->...nam", context.x, tasks)
        log = torch.cat([torch.zeros_like(miss[..., :1, :, :]), (-miss.square() / (2 * self.noise**2)).cumsum(-3)], -3)
        inside = torch.softmax(log, -1)
        types = torch.softmax(torch.logsumexp(log, -1), -1)
        means = torch.einsum("...am,amd->...ad", inside, tasks)
        mean = torch.einsum("...a,...ad->...d", types, means)
        own = 1 - means.square().sum(-1)  # tasks have length 1
        cost = types.prod(-1) * (means[..., 0, :] - means[..., 1, :]).square().sum(-1)
        known = (types * own).sum(-1)
        return Posterior(types, mean, 1 - mean.square().sum(-1), known, cost)
