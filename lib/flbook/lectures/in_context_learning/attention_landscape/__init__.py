r"""The landscape below an attention layer: rungs, the slope between them, and how the flow leaves a saddle.

Claims (Kim and Suzuki 2024, sections 2, 3 and 5.3, appendix C.4), for a teacher whose k features have the covariance
I/k: features that miss j of them have a loss of j/(2k) at least; between two such rungs the loss always falls towards a
rotated teacher; on a rung the Hessian has a negative eigenvalue, at whose rate the flow leaves.

The inputs come in pairs :math:`(x_A, \pm x_B)` and the teacher sees :math:`x_A` only. So neurons that see
:math:`x_B` only are orthogonal to the teacher exactly, and saddles on every rung can be written down.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.attention_landscape import landscape as theory
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.lectures.in_context_learning.shared.modified_flow import descend
from flbook.runs import Experiment, Grid, axis, labelled, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: 48 neurons, seconds on one core."""

    # random neurons whose last features are exactly 0; or a rung's saddle, nudged
    start: tuple[Literal["dead", "saddle"], ...] = axis(("dead", "saddle"), "start")
    missing: tuple[Natural, ...] = axis(range(5), "features missing j")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 48  # neurons
    k: Count = 5  # features
    d: Count = 20  # inputs, the teacher sees half of them
    pairs: Count = 150  # pairs of points: the law of x is uniform over 2 * pairs points
    teacher: Count = 20  # its neurons
    nudge: NonNegative = 1e-3  # size of the normal numbers that are added to every parameter of a saddle
    lr: Positive = 0.125
    steps: Natural = 300
    every: Count = 3  # steps between two records

    def check(self) -> None:
        """Refuse what cannot be built."""
        if max(self.missing) >= self.k:
            raise ValueError(f"missing must lie between 0 and k - 1 = {self.k - 1}; got {self.missing}")
        if self.d % 2 or self.m < self.teacher + self.k or self.teacher < self.k:
            raise ValueError(f"d must be even, teacher at least k, and m at least teacher + k; got d={self.d}, "
                             f"teacher={self.teacher}, m={self.m}, k={self.k}")


DIMS = ("start", "missing", "seed", "time")
experiment = Experiment(
    Setting, version=1, loops=("start", "missing"), stored="paper",
    gives={"loss": ("loss L", "1", DIMS), "steepness": ("steepness |SG|⁎ |Σ|", "1", DIMS)},
    beside={"time": (lambda s: s.lr * s.every * np.arange(s.steps // s.every + 1), "time t", "1")},
    presets={
        "tiny": ("Three features, a dozen neurons", dict(
            missing=(0, 1, 2), seed=(0, 1), m=12, k=3, d=6, pairs=30, teacher=5, steps=30)),
        "paper": ("The paper's 500 neurons and 1000 points, and a teacher of 100; what one core does in minutes", dict(
            m=500, pairs=500, teacher=100, lr=0.06, every=10)),
    },
)
experiment.kept(single_precision)


@experiment.shared()
def drawn(s: Setting, device: str) -> tuple[Particles, Population]:
    """The teachers that every start is built from, and the points, on the device."""
    teacher, population = truth(s)
    return teacher, Population(*(part.to(devices.device(device)) for part in population))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """Loss and steepness |SG|_* |Sigma_{f mu}| along the static dynamics from one start; (seed, time)."""
    teacher, population = drawn(s, device)
    fast = Population(*(part.float() for part in population))
    particles = Particles(*(part.to(fast.x) for part in start(s, s.start, s.missing, teacher)))
    seen: list[Tensor] = []  # features of the points, in single precision as they are trained

    def watch(t: int, now: Particles) -> None:
        if t % s.every == 0:
            seen.append(now.features(fast.x))

    descend(particles, fast, s.lr, s.steps + 1, watch=watch)
    h, f = torch.stack(seen, 1).double(), population.f[:, None]
    fit = mean_field.regress(h, f)
    cross = mean_field.second_moment(f, h).cpu().numpy()
    S, G = (part.cpu().numpy() for part in (fit.unexplained, fit.gain))
    return {"loss": np.trace(S, axis1=-2, axis2=-1) / 2,
            "steepness": -theory.steepest_slope(S, G) * np.linalg.norm(cross, 2, axis=(-2, -1))}


run = experiment.run


def away_from_the_end(found: xr.Dataset, level: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Losses above a level, and the steepness there, along all flows whose features are independent."""
    alive = (found.start == "saddle") & (found.missing > 0) | (found.start == "dead") & (found.missing == 0)
    loss, steepness = (found[name].where(alive).values.ravel().astype(float) for name in ("loss", "steepness"))
    return loss[loss > level], steepness[loss > level]


def truth(setting: Setting) -> tuple[Particles, Population]:
    """The teachers of all seeds, white, and the points with their true features; float64."""
    half = setting.d // 2
    x_a, x_b = (rng.normal((setting.pairs, half), setting.seed, f"inputs {part}") for part in "AB")
    x = torch.cat([torch.cat([x_a, x_b], -1), torch.cat([x_a, -x_b], -1)], -2)
    blind = mean_field.draw(setting.teacher, setting.k, half, setting.seed, "teacher", 4.0)
    teacher = Particles(blind.a, torch.nn.functional.pad(blind.w, (0, half))).whitened(x)
    return teacher, Population(x, teacher.features(x))


def saddle(setting: Setting, missing: int, teacher: Particles) -> Particles:
    """Neurons on the rung `missing`: all but the last features are the teacher's, the last are orthogonal to it."""
    kept, half = setting.k - missing, setting.d // 2
    alive = torch.arange(setting.k) < kept
    useless = mean_field.draw(setting.m - setting.teacher, max(missing, 1), half, setting.seed, "useless", 2.0)
    a = torch.nn.functional.pad(useless.a[..., :missing], (kept, 0))
    w = torch.nn.functional.pad(useless.w, (half, 0))
    return Particles(torch.cat([teacher.a * alive, a], -2), torch.cat([teacher.w, w], -2))


def start(setting: Setting, name: str, missing: int, teacher: Particles) -> Particles:
    """Where a flow begins."""
    if name == "dead":
        random = mean_field.draw(setting.m, setting.k, setting.d, setting.seed, "student", 2.0)
        return random._replace(a=random.a * (torch.arange(setting.k) < setting.k - missing))
    exact = saddle(setting, missing, teacher)
    return exact.moved(noise(setting), setting.nudge)


def noise(setting: Setting) -> Particles:
    """Independent standard normal numbers, one for every parameter."""
    return Particles(*(rng.normal((setting.m, size), setting.seed, f"nudge {size}") for size in (setting.k, setting.d)))


def escape_rate(setting: Setting, missing: int, particles: Particles, population: Population) -> Tensor:
    r"""|least eigenvalue| of the Hessian at a saddle of rung j, in closed form; shape (seed,).

    Only the last j features can gain, by what their neurons' moves add along :math:`\zeta`. The second variation is
    :math:`-\sum_p c_p^\top\Sigma_{BB}^{-1}c_p` with :math:`c_{lp} = E\,\delta h_l\,\zeta_p`, linear in the velocity.
    """
    x, f = population
    kept, m = setting.k - missing, setting.m
    neurons, h = particles.neurons(x), particles.features(x)[..., kept:]
    zeta, half = f[..., kept:], mean_field.root(mean_field.second_moment(h, h), -0.5)
    on_a = torch.einsum("snm,snp->spm", neurons, zeta) / x.shape[-2]
    on_w = torch.einsum("snm,snp,snd->spmd", 0.25 - neurons.square(), zeta, x) / x.shape[-2]
    a = torch.einsum("skl,sml->skm", half, particles.a[..., kept:])
    gram = torch.einsum("slm,spmd,som,sqmd->slpoq", a, on_w, a, on_w) / m
    gram = gram + torch.einsum("slk,sko,spm,sqm->slpoq", half, half, on_a, on_a) / m
    return torch.linalg.eigvalsh(gram.flatten(3).flatten(1, 2))[..., -1]


def attaining(setting: Setting, teacher: Particles, population: Population) -> tuple[np.ndarray, np.ndarray]:
    """Networks built to attain the bound of the slope: their losses, and slopes times |Sigma_{fh}|; (network, seed).

    Some features known, one known in part, and the rest useless and alike.
    """
    x, f = population
    useless = saddle(setting, setting.k, teacher).whitened(x).features(x)
    levels, slopes = [], []
    for known in range(setting.k):
        for angle in (0.3, 0.7, 1.1, 1.5):
            part = np.cos(angle) * f[..., known] + np.sin(angle) * useless[..., known]
            small = 0.1 * np.cos(angle) * f[..., :known]
            h = torch.cat([small, part[..., None], useless[..., known + 1 :]], -1)
            fit, cross = mean_field.regress(h, f), mean_field.second_moment(f, h)
            steepest = theory.steepest_slope(fit.unexplained.numpy(), fit.gain.numpy())
            slopes.append(steepest * torch.linalg.matrix_norm(cross, 2).numpy())
            levels.append(fit.unexplained.diagonal(dim1=-2, dim2=-1).sum(-1).numpy() / 2)
    return np.array(levels), np.array(slopes)


def scaling(features: tuple[int, ...], inputs: tuple[int, ...], seed: tuple[int, ...]) -> xr.DataArray:
    """|least eigenvalue| at the saddle with one useless feature, 64 neurons and a teacher of 32; (k, d, seed)."""
    rates = np.empty((len(features), len(inputs), len(seed)))
    for (i, k), (j, d) in product(enumerate(features), enumerate(inputs)):
        setting = experiment.setting(k=k, d=d, seed=seed, m=64, teacher=32, missing=(1,))
        teacher, population = truth(setting)
        rates[i, j] = escape_rate(setting, 1, saddle(setting, 1, teacher), population).numpy()
    coordinates = {"k": ("k", list(features), "features k"), "d": ("d", list(inputs), "inputs d"),
                   **experiment.setting(seed=seed).coordinates("seed")}
    found = {"rate": (("k", "d", "seed"), rates, "|least eigenvalue| of the Hessian", "1/time")}
    return labelled(found, coordinates).rate


def escape(setting: Setting, nudge: float = 1e-6, growth: float = 0.1) -> xr.Dataset:
    """How fast the flow leaves a rung: fitted, and the eigenvalue; (missing, seed). Missing 0 has no way down.

    The step size is growth/rate, and the fit allows for it: a step multiplies the distance by 1 + lr rate.
    """
    teacher, population = truth(setting)
    rows = []
    for missing in setting.missing:
        exact = saddle(setting, missing, teacher)
        rate = escape_rate(setting, missing, exact, population)
        _, loss = descend(exact.moved(noise(setting), nudge), population, growth / rate, setting.steps)
        fitted = [fitted_rate(missing / (2 * setting.k) - one.numpy(), growth) for one in loss]
        rows.append((rate.numpy(), rate.numpy() * np.array(fitted)))
    dims, (exact, fitted) = ("missing", "seed"), zip(*rows, strict=True)
    return labelled({"eigenvalue": (dims, exact, "|least eigenvalue| of the Hessian", "1/time"),
                     "fitted": (dims, fitted, "fitted escape rate", "1/time")}, setting.coordinates(*dims))


def fitted_rate(drop: np.ndarray, growth: float, window: tuple[float, float] = (1e-7, 1e-4)) -> float:
    """Growth of the distance a step, over `growth`, from the loss gained, which is its square."""
    inside = np.flatnonzero((drop > window[0]) & (drop < window[1]))
    if inside.size < 3:
        raise ValueError(f"the gain is between {window[0]} and {window[1]} at {inside.size} steps only: more steps")
    inside = inside[inside < (np.argmax(drop > window[1]) or drop.size)]
    return np.expm1(np.polyfit(inside, np.log(drop[inside]), 1)[0] / 2) / growth
