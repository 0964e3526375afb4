r"""Escape from saddles of mean-field objectives: noise of equal size, shaped in different ways.

Claim (Yamamoto, Kim and Suzuki 2025): a push along a Gaussian process with the covariance of the squared Wasserstein
Hessian escapes from a saddle. Compared here with independent noise, a smooth random field, noise in every step,
birth-death and no push at all, on three saddles: of the attention landscape, of a matrix factorisation by networks, and
of a crowd that lies in a subspace, which is no density and which the theorem does not cover.

Particles may be multiplied: `copies` of each stand at the same place, so the landscape stays and only N grows.
Times count how often the unstable direction has grown by a factor e: one unit is 1/|lambda_min| of flow time.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.in_context_learning.perturbed_flow.perturbation import MeanFunctional, guided, sized, smooth
from flbook.lectures.in_context_learning.perturbed_flow.saddles import guided_share
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles
from flbook.lectures.in_context_learning.shared.modified_flow import birth_death
from flbook.models.activations import centred_sigmoid
from flbook.runs import Experiment, Grid, axis

SaddleName = Literal["attention", "rank one", "low rank"]
NoiseName = Literal["static", "isotropic", "smooth", "guided", "whole", "Langevin", "birth-death"]
SADDLES = get_args(SaddleName)
FALL = 0.2  # a loss lower by this share counts as escaped


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: the saddle of the attention landscape, three kinds of noise, three crowds.
    """

    saddle: tuple[SaddleName, ...] = axis(["attention"], "saddle")
    noise: tuple[NoiseName, ...] = axis(["isotropic", "smooth", "guided"], "noise")
    copies: tuple[Count, ...] = axis([1, 3, 9], "copies of every particle")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    landscape: Natural = 0  # seed of inputs and teacher
    size: Positive = 0.01  # of the push, in L2(mu)
    m: Count = 16  # particles before they are copied
    d: Count = 5
    k: Count = 3  # features
    n: Count = 80  # inputs
    spread: Positive = 3.0  # of the neurons' w
    lr: Annotated[float, Range(0, 0.5, "(]")] = 0.2  # in units of 1/|lambda_min|
    time: Positive = 14.0  # in units of the unstable direction's growth: it grows by e in each
    every: Positive = 0.25

    def check(self) -> None:
        """Refuse crowds that have no such saddle, or no such noise."""
        if "low rank" in self.saddle and "birth-death" in self.noise:
            raise ValueError("noise must not be 'birth-death' at the saddle 'low rank', whose particles are no neurons")
        if self.m < self.k + 2 or self.m % 2:
            raise ValueError(f"m must be even and at least k + 2 = {self.k + 2}; got {self.m}")


ALL = ("static", "isotropic", "smooth", "guided", "Langevin", "birth-death")
experiment = Experiment(
    Setting, version=1, loops=("saddle", "noise", "copies"), chunk={"saddle": 1, "noise": 3}, stored="longer",
    missing=("escape",),
    gives={
        "escape": ("escape time", "1"),
        "projection": ("part of the push along the unstable direction", "1"),
        "loss": ("loss over that of the saddle", "1", ("saddle", "noise", "copies", "seed", "time")),
    },
    beside={"time": (lambda s: times(s), "time in units of growth by e")},
    presets={
        "tiny": ("Two saddles, three noises, one and two copies of eight particles", dict(
            saddle=SADDLES[:2], noise=("static", "guided", "Langevin"), copies=(1, 2), seed=(0, 1), m=8, d=3, k=2,
            n=20, time=8.0)),
        "rivals": ("The other ways, on the largest of these crowds", dict(
            noise=("static", "Langevin", "birth-death"), copies=(9,), seed=tuple(range(10)))),
        "others": ("The two other saddles, one crowd", dict(
            saddle=("rank one", "low rank"), noise=("isotropic", "guided", "whole"), copies=(1,))),
        "longer": ("Two saddles, six noises, four crowds, forty seeds", dict(
            saddle=SADDLES[:2], noise=ALL, copies=(1, 3, 9, 27), seed=tuple(range(40)))),
    },
)


@experiment.shared("saddle")
def built(s: Setting, device: str) -> tuple["Saddle", "Course"]:
    """The saddle and its spectrum."""
    saddle = BUILD[s.saddle](s, devices.device(device))
    return saddle, course(s, saddle)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Push one crowd at one saddle, and descend."""
    saddle, about = built(s, device)
    losses, projection = flow(s, saddle, about, s.noise, s.copies)
    at = [round(t * about.unit) for t in times(s)]
    return {"escape": escape_time(losses, escaped(saddle), about.unit), "projection": projection,
            "loss": losses[:, at] / saddle.functional.loss(saddle.theta)}


run = experiment.run


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a larger run, escape times and projections of every seed, losses as means; in single precision."""
    with xr.set_options(keep_attrs=True):
        return dataset.assign(loss=dataset.loss.mean("seed")).astype("float32")


class Saddle(NamedTuple):
    """A saddle of a mean-field objective."""

    functional: MeanFunctional
    theta: Float[Tensor, "N p"]  # particles at which the gradient is zero
    x: Tensor | None = None  # inputs
    f: Tensor | None = None  # true features on them


def network(x: Tensor, k: int):
    """The mean of vector-valued neurons a sigma(<w, x>), theta = (a, w), as features (*E, n, k) on the inputs."""

    def mean(theta: Tensor) -> Tensor:
        active = centred_sigmoid(torch.einsum("...md,nd->...nm", theta[..., k:], x))
        return torch.einsum("...nm,...mk->...nk", active, theta[..., :k]) / theta.shape[-2]

    return mean


def attention(setting: Setting, device="cpu") -> Saddle:
    r"""All true features but the last are learned, and one feature is wasted on something orthogonal to them all.

    The objective is the loss of linear attention at its best, :math:`\frac12 E|f - Gh|^2`; its level there is 1/(2k).
    """
    x = rng.normal((setting.n, setting.d), setting.landscape, "inputs", device)
    k = setting.k
    drawn = mean_field.draw(setting.m, k + 1, setting.d, setting.landscape, "teacher", setting.spread)
    teacher = there(drawn, x).whitened(x)
    f = teacher.features(x)[:, :k] * ((k + 1) / k) ** 0.5  # covariance I/k

    def outer(h: Tensor) -> Tensor:
        return mean_field.regress(h, f).residual.square().sum(-1).mean(-1) / 2

    kept = teacher.a[:, [*range(k - 1), k]]
    return Saddle(MeanFunctional(network(x, k), outer), torch.cat([kept, teacher.w], -1), x, f)


def rank_one(setting: Setting, device="cpu") -> Saddle:
    r"""Matrices :math:`f(x)f(x)^\top` to be written as :math:`h(x)h(x)^\top`; every neuron has its negative, so h = 0.

    The objective is :math:`\frac14 E\|hh^\top - ff^\top\|_F^2`.
    """
    x = rng.normal((setting.n, setting.d), setting.landscape, "inputs", device)
    teacher = mean_field.draw(setting.m, setting.k, setting.d, setting.landscape, "teacher", setting.spread)
    f = there(teacher, x).whitened(x).features(x)

    def outer(h: Tensor) -> Tensor:
        squares = [u.square().sum(-1).square() for u in (h, f)]
        return (squares[0] - 2 * (h * f).sum(-1).square() + squares[1]).mean(-1) / 4

    start = mean_field.draw(setting.m // 2, setting.k, setting.d, setting.landscape, "start", setting.spread)
    start = there(start, x)
    theta = torch.cat([torch.cat([sign * start.a, start.w], -1) for sign in (1, -1)])
    return Saddle(MeanFunctional(network(x, setting.k), outer), theta, x, f)


def low_rank(setting: Setting, device="cpu") -> Saddle:
    r"""A matrix M to be written as :math:`E_\mu\theta\theta^\top`; no particle has a part along M's last eigenvector.

    The objective is :math:`\frac14\|E\theta\theta^\top - M\|_F^2` with M = diag(1, 0.8, 0.5).
    """
    target = torch.tensor([1.0, 0.8, 0.5], dtype=torch.float64, device=device)
    drawn = rng.normal((setting.m, 3), setting.landscape, "crowd", device)
    drawn = drawn * torch.tensor([1.0, 1.0, 0.0], device=device)
    q, _ = torch.linalg.qr(drawn[:, :2])
    theta = torch.cat([(setting.m * target[:2]).sqrt() * q, drawn[:, 2:]], -1)

    def mean(theta: Tensor) -> Tensor:
        return torch.einsum("...mi,...mj->...ij", theta, theta) / theta.shape[-2]

    return Saddle(MeanFunctional(mean, lambda c: (c - target.diag()).square().sum((-2, -1)) / 4), theta)


def there(particles: Particles, x: Tensor) -> Particles:
    """Particles on the device of the inputs."""
    return Particles(*(part.to(x) for part in particles))


BUILD = dict(zip(SADDLES, (attention, rank_one, low_rank), strict=True))


def share(setting: Setting) -> float:
    """What part of a guided push the unstable direction of the attention saddle gets, in energy."""
    saddle = attention(setting)
    return guided_share(saddle.functional.spectrum(saddle.theta)[0].numpy())


def suited(setting: Setting, least: float = 0.5, within: int = 50) -> Setting:
    """The same on the first landscape whose saddle has at least this `share`.

    Raises ValueError if none of so many landscapes has one.
    """
    for seed in range(setting.landscape, setting.landscape + within):
        chosen = setting.thinned(landscape=seed)
        if share(chosen) >= least:
            return chosen
    raise ValueError(f"least must be a share that a saddle among {within} landscapes reaches; got {least}")


class Course(NamedTuple):
    """What the spectrum of the Hessian says about a saddle."""

    values: Float[Tensor, " Np"]  # eigenvalues of H + H', rising
    direction: Float[Tensor, "N p"]  # the most unstable one, of length 1 in L2(mu)
    rate: float  # |lambda_min|
    per: int  # steps of a size 1/(per rate), so that a step multiplies the unstable direction by 1 + 1/per

    @property
    def unit(self) -> float:
        """Steps in a unit of time, in which the unstable direction grows by e."""
        return 1 / math.log1p(1 / self.per)


def course(setting: Setting, saddle: Saddle) -> Course:
    """The spectrum, and steps small enough for its stiffest direction."""
    values, vectors = saddle.functional.spectrum(saddle.theta)
    stiff = float(values[-1] / -values[0])
    return Course(values, vectors[0], -float(values[0]), round(max(1 / setting.lr, stiff)))


def start(setting: Setting, saddle: Saddle, noise: str, copies: int) -> Float[Tensor, "seed N p"]:
    """The particles after the push."""
    one = saddle.theta.repeat(copies, 1)
    theta = one.expand(len(setting.seed), *one.shape)
    if noise in ("static", "Langevin"):
        return theta.clone()
    if noise == "birth-death":
        k, rows = one.shape[-1] - setting.d, []
        for seed in setting.seed:
            fresh = mean_field.draw(max(1, len(one) // 20), k, setting.d, seed, "births", setting.spread)
            rows.append(torch.cat(birth_death(Particles(one[:, :k], one[:, k:]), fresh, seed), -1))
        return torch.stack(rows)
    g = rng.normal(tuple(one.shape), setting.seed, "push", one.device)
    if noise == "smooth":
        g = smooth(theta, g)
    elif noise != "isotropic":
        g = guided(saddle.functional, theta, g, local=noise == "whole")
    return theta + sized(g, setting.size)


def along(saddle: Saddle, about: Course, theta: Float[Tensor, "seed N p"]) -> Float[Tensor, " seed"]:
    """The part of a displacement from the saddle along the unstable direction, with its sign."""
    copies = theta.shape[-2] // saddle.theta.shape[-2]
    moved = theta - saddle.theta.repeat(copies, 1)
    return (moved * about.direction.repeat(copies, 1)).sum(-1).mean(-1)


def flow(setting: Setting, saddle: Saddle, about: Course, noise: str, copies: int) -> tuple[Tensor, Tensor]:
    """The loss before every step, shape (seed, steps), and the push's part along the unstable direction, (seed,).

    Goes on for up to as long again until all members have escaped, if some have.
    """
    theta = start(setting, saddle, noise, copies)
    projection = along(saddle, about, theta)
    level, steps = escaped(saddle), round(setting.time * about.unit) + 2
    # in a unit of time, noise in every step adds up to the push's size
    kick = setting.size * (about.unit * theta.shape[-1]) ** -0.5 if noise == "Langevin" else 0.0
    streams = [rng.generator(seed, "steps") for seed in setting.seed]
    losses = []
    for t in range(2 * steps):
        slope, loss = saddle.functional.slope(theta)
        losses.append(loss)
        if t >= steps and bool((loss < level).all() or (loss >= level).all()):
            break
        theta = theta - slope / (about.rate * about.per)
        if kick:
            drawn = [torch.randn(theta.shape[1:], generator=one, dtype=theta.dtype) for one in streams]
            theta = theta + kick * torch.stack(drawn).to(theta)
    return torch.stack(losses, -1), projection


def escaped(saddle: Saddle) -> float:
    """The level of the loss below which a run has escaped."""
    return (1 - FALL) * float(saddle.functional.loss(saddle.theta))


def escape_time(losses: Float[Tensor, "seed steps"], level: float, unit: float) -> Float[Tensor, " seed"]:
    """When the loss first is below `level`, between two steps by a straight line; 0 at once, infinite if never."""
    below = losses < level
    first = below.int().argmax(-1).clamp_min(1)
    before, after = (losses.gather(-1, at[:, None])[:, 0] for at in (first - 1, first))
    between = torch.where(below[:, 0], 0.0, (first - (level - after) / (before - after)) / unit)
    return torch.where(below.any(-1), between, torch.inf)


def times(setting: Setting) -> list[float]:
    """Times at which the loss is kept."""
    return [round(j * setting.every, 6) for j in range(round(setting.time / setting.every) + 1)]
