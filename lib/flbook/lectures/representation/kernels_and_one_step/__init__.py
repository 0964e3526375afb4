r"""Fixed features against features that one gradient step has moved, on a single-index target.

Claims (Ba et al. 2022), in the limit :math:`n, N, d \to \infty` in proportion: no ridge, random feature, tangent or
inner-product kernel gets below :math:`\|P_{>1}f_*\|^2`; after one step of size :math:`\eta = \Theta(1)` a
network is a better, but still a linear model; after a step of size :math:`\eta = \Theta(\sqrt N)` it gets below.

The protocol is the paper's: one sample for the step on the first layer, a fresh one of equal size for ridge regression
on the second. Rivals with fixed features get both samples. For erf features and an erf target the risk of a network is
exact, otherwise it is measured on test points.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import scipy.special
import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.data.single_index import SingleIndex, SingleIndexSample
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.estimators import kernel_ridge, ridge
from flbook.models import activations, kernels
from flbook.models.random_features import RandomFeatures
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.theory import one_step

FUNCTIONS = {"tanh": (activations.tanh, np.tanh), "erf": (activations.erf, scipy.special.erf)}
Function = Literal["tanh", "erf"]


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: step sizes from none to beyond the square root of the width, exact risk.
    """

    psi_1: tuple[Positive, ...] = axis([8.0], "samples a dimension ψ₁ = n/d")
    eta: tuple[NonNegative, ...] = axis([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], "step size η")
    lam: tuple[Positive, ...] = axis([1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0], "ridge λ")  # lam/N beside the mean loss
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Annotated[int, Range(2)] = 192  # input dimension
    psi_2: Annotated[float, Range(1)] = 2.0  # N/d, neurons a dimension
    activation: Function = "erf"  # sigma, of the student
    link: Function = "erf"  # sigma*, of the target
    noise: NonNegative = 0.1  # standard deviation of the label noise
    points: Count = 2048  # test points, where the risk has no closed form

    def check(self) -> None:
        """Refuse fewer samples than one."""
        for psi_1 in self.psi_1:
            data(self, psi_1)

    @property
    def width(self) -> int:
        """Neurons N."""
        return round(self.psi_2 * self.d)


def data(setting: Setting, psi_1: float) -> SingleIndex:
    """The data model at one sample size."""
    return SingleIndex(round(psi_1 * setting.d), setting.d, FUNCTIONS[setting.link][0], setting.noise)


experiment = Experiment(
    Setting, version=1, loops=("psi_1", "eta"), left=("seed", "lam"), chunk={"seed": 2}, stored="paper",
    gives={"risk": ("risk R", "1"), "equivalent": ("risk of the Gaussian equivalent", "1")},
    presets={
        "tiny": ("Two sample sizes, no, a small and a large step", dict(
            psi_1=(2.0, 6.0), eta=(0.0, 2.0, 12.0), lam=(0.01, 0.1), seed=(0, 1, 2), d=32, points=512)),
        "samples": ("A large step, twice the square root of the width, and more and more samples", dict(
            psi_1=(4.0, 8.0, 16.0), eta=(32.0,), seed=tuple(range(12)), d=128)),
        "rivals": ("Every model; the step is twice the square root of the width", dict(
            psi_1=(2.0, 4.0, 8.0, 16.0), eta=(32.0,), lam=(1e-3, 1e-2, 3e-2, 1e-1, 1.0), d=128)),
        "spikes": ("Step sizes around the threshold", dict(
            psi_1=(4.0,), eta=(1.0, 1.75, 2.5, 3.0, 3.5, 4.5, 8.0, 384**0.5), seed=tuple(range(32)))),
        "paper": ("Figure 3(c) of the paper, steps of N^α with α up to 1/2: half of its 50 runs", dict(
            psi_1=(1.0, 2.0, 4.0, 8.0, 16.0), eta=tuple(1024 ** (k / 10) for k in range(6)), lam=(1e-3,),
            seed=tuple(range(25)), d=512)),
    },
)


class BeforeStep(NamedTuple):
    """What every step size shares at one sample size: networks before the step, its gradient, and the data."""

    net: RandomFeatures
    gradient: Tensor
    fresh: SingleIndexSample
    test: SingleIndexSample | None  # None where the risk is exact
    direction: Tensor


@experiment.shared("psi_1")
def drawn(s: Setting, device: str) -> BeforeStep:
    """The networks of all seeds, and their data."""
    model = data(s, s.psi_1)
    first, fresh = (on(device, model.draw(s.seed, role)) for role in ("first", "fresh"))
    test = None if s.activation == s.link == "erf" else on(device, model.draw_test(s.points, s.seed))
    net = start(s, first)
    return BeforeStep(net, net.gradient(first.x, first.y), fresh, test, model.direction.to(first.x))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | np.ndarray]:
    """Risk after one step and a ridge regression, and that of the Gaussian equivalent.

    One step size at a time: the features of all of them would not fit into the memory.
    """
    net, gradient, fresh, test, direction = drawn(s, device)
    moved = net.moved(gradient, s.eta)
    if test is None:
        risk = kernels.erf_risk(moved, ridge(moved.features(fresh.x), fresh.y, s.lam), direction)
    else:
        risk = (by_features(moved.features, s, fresh, test.x) - test.target[:, None]).square().mean(-1)
    squares, overlaps = (part.cpu().numpy() for part in moved.spectrum(direction))
    equivalent = one_step.gaussian_equivalent_risk(
        s.lam, data(s, s.psi_1).n, s.width, squares, overlaps, *parts(s), s.noise)
    return {"risk": risk, "equivalent": equivalent}


run = experiment.run


def parts(setting: Setting) -> tuple[one_step.Parts, one_step.Parts]:
    """Constant, linear and remaining part of the activation and of the target."""
    return tuple(one_step.parts(FUNCTIONS[name][1]) for name in (setting.activation, setting.link))


def on(device: str, sample: SingleIndexSample, dtype: torch.dtype = torch.float64) -> SingleIndexSample:
    """The sample on a device."""
    return SingleIndexSample(*(part.to(devices.device(device), dtype) for part in sample))


def start(setting: Setting, first: SingleIndexSample) -> RandomFeatures:
    """The networks of all seeds before training, on the device and in the precision of the first sample."""
    net = RandomFeatures.draw(setting.d, setting.width, FUNCTIONS[setting.activation][0], setting.seed)
    return replace(net, w=net.w.to(first.x), a=net.a.to(first.x))


@experiment.also
def spectra(setting: Setting, device: str = "cpu") -> xr.Dataset:
    r"""The first layer after the step: its singular values, where the largest points, and how near rank one it moved.

    `rank_one_error` is :math:`\|G_0 - A\|/\|G_0\|` in operator norm, of the gradient before the step; (psi_1, seed).
    """
    rows, errors = [], []
    for psi_1 in setting.psi_1:
        model = data(setting, psi_1)
        first = on(device, model.draw(setting.seed))
        net = start(setting, first)
        gradient = net.gradient(first.x, first.y)
        correlation = torch.einsum("sn,snd->sd", first.y, first.x) / (model.n * math.sqrt(net.width))
        rank_one = parts(setting)[0].mu_1 * net.a[..., :, None] * correlation[..., None, :]
        errors.append(length(gradient + rank_one) / length(gradient))
        rows += [net.moved(gradient, eta).spectrum(model.direction.to(first.x)) for eta in setting.eta]
    squares, overlaps = (torch.stack(part).cpu().numpy() for part in zip(*rows, strict=True))
    coords = setting.coordinates("psi_1", "eta", "seed")
    dims, shape = tuple(coords), [len(values) for _, values, _ in coords.values()]
    return labelled({
        "singular_value": ((*dims, "k"), np.sqrt(squares).reshape(*shape, -1), "singular values of W"),
        "overlap": (dims, overlaps[..., -1], "overlap ⟨u₁, β*⟩²"),
        "rank_one_error": (("psi_1", "seed"), errors, "distance of the gradient from rank one"),
    }, coords)


def length(matrix: Tensor) -> Tensor:
    """The largest singular value."""
    return torch.linalg.eigvalsh(torch.einsum("skd,ske->sde", matrix, matrix))[..., -1].sqrt()


def by_features(features: Callable[[Tensor], Tensor], setting: Setting, fresh: SingleIndexSample, x: Tensor) -> Tensor:
    """Predictions (seed, lam, points) of ridge regression on features, ridges lam/N whatever their number."""
    inside, outside = features(fresh.x), features(x)
    ridges = tuple(lam * inside.shape[-1] / setting.width for lam in setting.lam)
    return torch.einsum("spk,slk->slp", outside, ridge(inside, fresh.y, ridges))


def by_kernel(kernel: kernels.Kernel, ridges: tuple[float, ...], sample: SingleIndexSample, x: Tensor) -> Tensor:
    """The same of kernel ridge regression."""
    alpha = kernel_ridge(kernel(sample.x, sample.x), sample.y, ridges, rtol=1e-4)
    return torch.einsum("spn,sln->slp", kernel(x, sample.x), alpha)


def best_kernel(s: Setting, sample: SingleIndexSample, x: Tensor) -> Tensor:
    """That of infinitely many erf neurons, ridges about the label noise's variance: no linear rule is better.

    Proof: lecture `kernels_and_one_step`; for a direction drawn from N(0, I/d).
    """
    scale = math.sqrt(s.d)
    ridges = tuple(lam / np.median(s.lam) * s.noise**2 / sample.x.shape[-2] for lam in s.lam)
    return by_kernel(lambda p, q: kernels.arcsine(p / scale, q / scale), ridges, sample, x)


def blind(net: RandomFeatures, first: SingleIndexSample, eta: float) -> RandomFeatures:
    """The network after a step of the same length on labels of other samples."""
    seeing, other = (net.gradient(first.x, y) for y in (first.y, first.y.roll(1, -1)))
    lengths = [gradient.square().sum((-2, -1), keepdim=True).sqrt() for gradient in (seeing, other)]
    return net.moved(other * lengths[0] / lengths[1], eta)


def tangent(s: Setting, net: RandomFeatures, sample: SingleIndexSample, x: Tensor) -> Tensor:
    """Kernel ridge regression with the tangent kernel of the network before the step."""
    return by_kernel(kernels.neural_tangent(net), tuple(lam / s.width for lam in s.lam), sample, x)


# What is compared, as functions of (setting, first sample, network before training, fresh sample, test inputs)
MODELS = {
    "one step": lambda s, first, net, fresh, x: by_features(
        net.step(first.x, first.y, s.eta[-1]).features, s, fresh, x),
    "shuffled labels": lambda s, first, net, fresh, x: by_features(
        blind(net, first, s.eta[-1]).features, s, fresh, x),
    "random features": lambda s, first, net, fresh, x: by_features(net.features, s, both(first, fresh), x),
    "tangent kernel": lambda s, first, net, fresh, x: tangent(s, net, both(first, fresh), x),
    "best kernel": lambda s, first, net, fresh, x: best_kernel(s, both(first, fresh), x),
    "linear regression": lambda s, first, net, fresh, x: by_features(
        lambda points: points / math.sqrt(s.d), s, both(first, fresh), x),
}  # fmt: skip


def both(first: SingleIndexSample, fresh: SingleIndexSample) -> SingleIndexSample:
    """One sample of two, for rules that make a single move."""
    return SingleIndexSample(*(torch.cat(parts, 1) for parts in zip(first, fresh, strict=True)))


def rivals(setting: Setting, device: str = "cpu", names: tuple[str, ...] = tuple(MODELS), bins: int = 32) -> xr.Dataset:
    r"""Models at every sample size: their risk, what they learned of two Hermite degrees, and the shape they predict.

    `risk` is over (psi_1, seed, model, lam). `share` and `profile` are those of the ridge with the least risk: the
    coefficient of the prediction along :math:`He_k(\langle x, \beta_*\rangle)` over that of the target, and the mean
    prediction at test points of nearly equal index. Single precision.
    """
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    for psi_1 in setting.psi_1:
        for seed in setting.seed:  # one at a time: kernel matrices of all of them would not fit into the memory
            one, model = setting.thinned(seed=(seed,)), data(setting, psi_1)
            first, fresh = (on(device, model.draw(one.seed, role), torch.float32) for role in ("first", "fresh"))
            test = on(device, model.draw_test(setting.points, one.seed), torch.float32)
            net = start(one, first)
            outputs = torch.cat([MODELS[name](one, first, net, fresh, test.x) for name in names])
            columns.append(scores(outputs, test, bins))
    shape = (len(setting.psi_1), len(setting.seed))
    risk, share, profile = (torch.stack(part).unflatten(0, shape) for part in zip(*columns, strict=True))
    dims = ("psi_1", "seed", "model")
    place = test.index[0].unflatten(-1, (bins, -1)).mean(-1).cpu().numpy()
    return labelled(
        {"risk": ((*dims, "lam"), risk, "risk R"), "share": ((*dims, "degree"), share, "share learned"),
         "profile": ((*dims, "place"), profile, "mean prediction")},
        {**setting.coordinates("psi_1", "seed", "lam"), "model": list(names), "degree": [1, 3],
         "place": ("place", place, "index ⟨x, β*⟩")},
    )  # fmt: skip


def scores(outputs: Tensor, test: SingleIndexSample, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of outputs (model, lam, points): risk (model, lam); share (model, degree) and profile (model, place) at best."""
    risk = (outputs - test.target).square().mean(-1)
    best = outputs[torch.arange(len(outputs)), risk.argmin(-1)]
    hermite = torch.cat([test.index, test.index**3 - 3 * test.index])
    share = torch.einsum("mp,hp->mh", best, hermite) / torch.einsum("hp,p->h", hermite, test.target[0])
    return risk, share, best.unflatten(-1, (bins, -1)).mean(-1)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of the paper's grid: every run, in single precision."""
    return dataset.squeeze("lam").transpose("psi_1", "eta", "seed").astype("float32", keep_attrs=True)
