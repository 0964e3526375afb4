r"""Escape from saddles of a mean-field objective: noise of equal energy, shaped in different ways, at many saddles.

Claim (Yamamoto, Kim and Suzuki 2025): a push along a Gaussian process with the covariance of the squared Wasserstein
Hessian escapes from a saddle. Compared here with independent noise, a smooth random field and the unstable direction
itself, at many saddles of the attention landscape.

Neurons may be multiplied: `copies` of each stand at the same place, so the landscape stays and only N grows. All pushes
have the same root mean square length. Times count how often the unstable direction has grown by a factor e: one unit is
:math:`1/|\lambda_{\min}|` of flow time.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.in_context_learning.perturbed_flow.perturbation import MeanFunctional, guided, smooth
from flbook.lectures.in_context_learning.perturbed_flow.saddles import guided_share
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.models.activations import centred_sigmoid
from flbook.runs import Experiment, Grid, axis, lattice, single_precision

NoiseName = Literal["independent", "smooth", "guided", "steepest"]
FALL = 0.2  # a loss lower by this share counts as escaped


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: sixty-four saddles of the attention landscape, two kinds of noise, sixteen neurons.
    """

    weight: tuple[Positive, ...] = axis([1.0], "weight of the missing feature")
    noise: tuple[NoiseName, ...] = axis(["independent", "guided"], "noise")
    copies: tuple[Count, ...] = axis([1], "copies of every neuron")
    landscape: tuple[Natural, ...] = axis(range(64), "saddle")
    seed: tuple[Natural, ...] = axis(range(10), "push")
    size: Positive = 0.01  # of the push, the root of its mean square in L2(mu)
    length: Positive = 16.0  # of the smooth field
    m: Count = 16  # neurons before they are copied
    d: Count = 5
    k: Count = 3  # features
    n: Count = 40  # inputs
    spread: Positive = 3.0  # of the neurons' w
    lr: Annotated[float, Range(0, 0.5, "(]")] = 0.2  # in units of 1/|lambda_min|
    time: Positive = 40.0  # at most, in units of the unstable direction's growth: it grows by e in each

    def check(self) -> None:
        """Refuse crowds that have no such saddle."""
        if self.m < self.k + 2:
            raise ValueError(f"m must be at least k + 2 = {self.k + 2}; got {self.m}")


experiment = Experiment(
    Setting, version=2, loops=("weight", "noise", "copies"), chunk={"noise": 1, "landscape": 16}, stored="longer",
    missing=("escape",),
    gives={
        "escape": ("escape time", "1"),
        "projection": ("part of the push along the unstable direction", "1"),
    },
    presets={
        "tiny": ("Two saddles, three noises, one and two copies of eight neurons", dict(
            noise=("independent", "guided", "steepest"), copies=(1, 2), landscape=(0, 1), seed=(0, 1), m=8, d=3, k=2,
            n=20)),
        "depth": ("A missing feature of different weights, at eight saddles", dict(
            weight=lattice(0.4, 6.4, 7), landscape=tuple(range(8)), seed=tuple(range(20)))),
        "longer": ("Three noises, three crowds, twelve pushes", dict(
            noise=("independent", "smooth", "guided"), copies=(1, 3, 9), seed=tuple(range(12)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Push one kind of crowd at all saddles, and descend."""
    saddles = stacked(s, s.weight, device)
    displaced = start(s, saddles, s.noise, s.copies)
    return {"escape": escape_times(s, saddles, displaced), "projection": along(saddles, displaced, s.copies)}


run = experiment.run
experiment.kept(single_precision)


class Saddle(NamedTuple):
    """A saddle of the attention landscape, and its spectrum; an ensemble axis may lead."""

    theta: Float[Tensor, "*E m p"]  # neurons at which the gradient is zero
    x: Float[Tensor, "*E n d"]  # inputs
    f: Float[Tensor, "*E n k"]  # true features on them
    values: Float[Tensor, "*E mp"]  # eigenvalues of the Hessian, rising
    direction: Float[Tensor, "*E m p"]  # the most unstable one, of length 1 in L2(mu)

    def crowd(self, copies: int, of: Tensor | None = None) -> Float[Tensor, "*E 1 N p"]:
        """Something of every neuron (its position), for all copies, and an axis for pushes."""
        return (self.theta if of is None else of).repeat_interleave(copies, -2)[..., None, :, :]


def network(x: Tensor, k: int):
    """The mean of vector-valued neurons a sigma(<w, x>), theta = (a, w), as features (*E, n, k) on the inputs."""

    def mean(theta: Tensor) -> Tensor:
        active = centred_sigmoid(torch.einsum("...md,...nd->...nm", theta[..., k:], x))
        return torch.einsum("...nm,...mk->...nk", active, theta[..., :k]) / theta.shape[-2]

    return mean


def objective(x: Tensor, f: Tensor) -> MeanFunctional:
    r"""The loss of linear attention at its best, :math:`\frac12 E|f - Gh|^2`, as a function of the crowd."""

    def outer(h: Tensor) -> Tensor:
        return mean_field.regress(h, f).residual.square().sum(-1).mean(-1) / 2

    return MeanFunctional(network(x, f.shape[-1]), outer)


def saddle(setting: Setting, landscape: int = 0, weight: float = 1.0) -> Saddle:
    r"""All true features but the last are learned, and one feature is wasted on something orthogonal to them all.

    The missing feature counts `weight` times; the loss there is :math:`\text{weight}^2/(2k)`.
    """
    return _saddle(landscape, weight, setting.m, setting.d, setting.k, setting.n, setting.spread, rng.fresh_seed())


@lru_cache(512)
def _saddle(landscape, weight, m, d, k, n, spread, _fresh):
    x = rng.normal((n, d), landscape, "inputs")
    crowd = mean_field.draw(m, k + 1, d, landscape, "teacher", spread).whitened(x)
    f = crowd.features(x)[:, :k] * ((k + 1) / k) ** 0.5  # covariance I/k
    f = torch.cat([f[:, :-1], weight * f[:, -1:]], -1)
    theta = torch.cat([crowd.a[:, [*range(k - 1), k]], crowd.w], -1)
    values, vectors = objective(x, f).spectrum(theta)
    return Saddle(theta, x, f, values, vectors[0])


def every(setting: Setting, weight: float = 1.0) -> list[Saddle]:
    """The saddles of a setting."""
    return [saddle(setting, landscape, weight) for landscape in setting.landscape]


def stacked(setting: Setting, weight: float = 1.0, device: str = "cpu") -> Saddle:
    """The same as an ensemble."""
    parts = zip(*every(setting, weight), strict=True)
    return Saddle(*(torch.stack(part).to(devices.device(device)) for part in parts))


def along(saddles: Saddle, theta: Float[Tensor, "L S N p"], copies: int) -> Float[Tensor, "L S"]:
    """The part of a displacement from the saddle along the unstable direction, with its sign."""
    c = (theta - saddles.crowd(copies)) * saddles.crowd(copies, saddles.direction)
    return c.sum(-1).mean(-1)


def start(setting: Setting, saddles: Saddle, noise: str, copies: int) -> Float[Tensor, "L S N p"]:
    """The neurons after the push: S pushes of one kind, the same energy in the mean, at each of L saddles."""
    one, (m, p) = saddles.crowd(1), saddles.theta.shape[-2:]
    rows = m if noise in ("smooth", "steepest") else copies * m
    drawn = [rng.normal((rows, p), setting.seed, f"push {landscape}") for landscape in setting.landscape]
    g = torch.stack(drawn).to(saddles.theta)
    if noise == "independent":
        push = g / p**0.5
    elif noise == "guided":  # of -g: e has a negative eigenvalue, so that both pushes made of g fall to one side
        functional = objective(saddles.x[:, None], saddles.f[:, None])
        energy = saddles.values.square().sum(-1)  # E|xi|^2, the sum of the eigenvalues of K
        push = guided(functional, saddles.crowd(copies).expand_as(g), -g) / energy.sqrt()[:, None, None, None]
    elif noise == "smooth":  # neurons at one place move together
        push = smooth(one, g, setting.length).repeat_interleave(copies, -2) / p**0.5
    else:  # along the unstable direction, to a random side
        push = g[..., :1, :1].sign() * saddles.crowd(copies, saddles.direction)
    return saddles.crowd(copies) + setting.size * push


def escape_times(setting: Setting, saddles: Saddle, theta: Float[Tensor, "L S N p"]) -> Float[Tensor, "L S"]:
    """When gradient descent from each of these crowds has lowered the loss by the share `FALL`; infinite if too late.

    Time counts growth by e. A step multiplies the unstable direction by 1 + 1/per; it is small enough for the stiffest
    direction. Who has escaped is followed no longer.
    """
    lead, k = theta.shape[:2], setting.k
    rate = -saddles.values[:, 0]
    per = (saddles.values[:, -1] / rate).clamp_min(1 / setting.lr)
    where = torch.arange(lead.numel(), device=theta.device)
    theta, x, f = (part.expand(*lead, *part.shape[2:]).flatten(0, 1)
                   for part in (theta, saddles.x[:, None], saddles.f[:, None]))
    step, unit = ((part[:, None].expand(lead).flatten()) for part in (1 / (rate * per), 1 / torch.log1p(1 / per)))
    level = (1 - FALL) * f[..., -1].square().mean(-1) / 2  # of the saddle's loss, in which only one feature is missing
    found, before, t = torch.full_like(level, torch.inf), level, 0
    while len(where):
        velocity, loss = mean_field.velocity(Particles(theta[..., :k], theta[..., k:]), Population(x, f))
        below = loss < level
        between = (loss - level) / (loss - before) if t else torch.ones_like(loss)  # of the last step, too much
        found[where[below]] = ((t - between) / unit)[below].clamp_min(0)
        theta, before = theta + step[:, None, None] * torch.cat(velocity, -1), loss
        stay = ~below & (t < setting.time * unit)
        where, theta, x, f, step, unit, level, before = (
            part[stay] for part in (where, theta, x, f, step, unit, level, before))
        t += 1
    return found.reshape(lead)


def shares(setting: Setting, weight: float = 1.0) -> xr.DataArray:
    r"""What part of a guided push's energy the unstable direction gets, :math:`\lambda_{\min}^2/\sum_i\lambda_i^2`."""
    part = guided_share(torch.stack([one.values for one in every(setting, weight)]).numpy())
    return xr.DataArray(part, coords={"landscape": list(setting.landscape)}, dims="landscape")


def low_rank(setting: Setting, landscape: int = 0) -> tuple[MeanFunctional, Float[Tensor, "m 3"]]:
    r"""A matrix M to be written as :math:`E_\mu\theta\theta^\top`; no particle has a part along M's last eigenvector.

    The objective is :math:`\frac14\|E\theta\theta^\top - M\|_F^2` with M = diag(1, 0.8, 0.5).
    """
    target = torch.tensor([1.0, 0.8, 0.5], dtype=torch.float64)
    drawn = rng.normal((setting.m, 3), landscape, "crowd") * torch.tensor([1.0, 1.0, 0.0])
    q, _ = torch.linalg.qr(drawn[:, :2])
    theta = torch.cat([(setting.m * target[:2]).sqrt() * q, drawn[:, 2:]], -1)

    def mean(theta: Tensor) -> Tensor:
        return torch.einsum("...mi,...mj->...ij", theta, theta) / theta.shape[-2]

    return MeanFunctional(mean, lambda c: (c - target.diag()).square().sum((-2, -1)) / 4), theta
