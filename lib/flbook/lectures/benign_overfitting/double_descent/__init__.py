r"""Double descent: test risk against the number of random features, through the point where they can fit everything.

Claim (Belkin et al. 2019): the risk of the minimum-norm solution is U-shaped while the N features are fewer than the n
samples, has a peak at N = n, where the norm of the solution has one too, and falls again beyond, below the minimum of
the U. Ridge regression with the best ridge has no peak (Nakkiran et al. 2021).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, estimators, rng
from flbook.data.single_index import SingleIndex
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, NonNegative
from flbook.lectures.benign_overfitting.double_descent.interpolation import subset_risk
from flbook.models.activations import identity
from flbook.models.random_features import RandomFeatures
from flbook.runs import Experiment, Grid, axis, labelled


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: Gaussian data, no ridge, no step."""

    lr: tuple[NonNegative, ...] = axis([0.0], "step η on the first layer")  # before the fit, in units of sqrt(N)
    width: tuple[Count, ...] = axis(
        [20, 50, 80, 110, 140, 170, 185, 195, 200, 205, 215, 230, 270, 340, 500, 1000, 3000], "features N")
    ridge: tuple[NonNegative, ...] = axis([0.0], "ridge δ")  # in |y - Phi a|^2 + delta |a|^2; 0 is the minimum norm
    seed: tuple[Natural, ...] = axis(range(32), "seed")
    data: Literal["gaussian", "digits"] = "gaussian"  # inputs N(0, I) with a linear target, or handwritten digits
    n: Count = 200  # training samples
    d: Count = 100  # dimension of a Gaussian input
    noise: NonNegative = 0.5  # standard deviation of label noise; digits: share of wrong labels
    points: Count = 500  # fresh Gaussian samples to measure the risk on

    def check(self) -> None:
        """Refuse more wrong labels than there are."""
        if self.data == "digits" and self.noise > 1:
            raise ValueError(f"noise must lie in [0, 1] for digits, a share of wrong labels; got {self.noise}")


experiment = Experiment(
    Setting, version=1, loops=("lr", "width"), chunk={"seed": 1}, stored="longer",
    gives={
        "risk": ("test risk", "1"),
        "test_error": ("test error", "fraction"),
        "train_risk": ("training risk", "1"),
        "norm": ("length of the solution |a|", "1"),
    },
    presets={
        "tiny": ("Below, at and above the threshold, with and without ridge and step", dict(
            lr=(0.0, 2.0), width=(5, 12, 20, 21, 80), ridge=(0.0, 0.3), seed=tuple(range(5)), n=20, d=8, points=200)),
        "ridges": ("With ridges, so that the best can be picked", dict(
            width=(20, 50, 80, 110, 140, 170, 200, 230, 270, 340, 500, 1000, 2500),
            ridge=tuple(float(f"{10**power:.3g}") for power in np.linspace(-3, 1.5, 13)), seed=tuple(range(10)))),
        "digits": ("Handwritten digits of ten classes, a tenth of the training labels wrong", dict(
            data="digits", noise=0.1, seed=tuple(range(10)), ridge=(0.0, 1.0),
            width=(10, 20, 40, 80, 120, 160, 180, 190, 200, 210, 220, 250, 300, 400, 700, 1500, 4000))),
        "longer": ("As many digits as there are, up to fifteen features a sample", dict(
            data="digits", n=800, noise=0.1, seed=tuple(range(10)), ridge=(0.0, 4.0),
            width=(25, 50, 100, 200, 300, 400, 500, 600, 700, 750, 780, 800, 820, 850, 900, 1000, 1200, 1600,
                   2400, 4000, 7000, 12000))),
        "trained": ("The first layer as drawn, and moved by one gradient step", dict(
            lr=(0.0, 3.0, 10.0), width=(50, 100, 150, 180, 200, 220, 260, 400, 1000), seed=tuple(range(10)))),
    },
)


@experiment.shared()
def drawn(s: Setting, device: str) -> tuple[torch.Tensor, ...]:
    """The sample that every network fits."""
    return tuple(part.to(devices.device(device)) for part in sample(s))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Fit one width."""
    x, y, x_test, y_test = drawn(s, device)
    network = RandomFeatures.draw(x.shape[-1], s.width, seed=s.seed)
    network = replace(network, w=network.w.to(x), a=network.a.to(x))
    if s.lr:
        network = network.step(x, y[:, 0], s.lr)
    features, fresh = network.features(x), network.features(x_test)
    a = solutions(features, y, s.ridge)  # (ridge, seed, outputs, N)
    f, f_test = torch.einsum("snk,rsok->rson", features, a), torch.einsum("snk,rsok->rson", fresh, a)
    missed = (f_test * y_test <= 0) if y.shape[1] == 1 else (f_test.argmax(2) != y_test.argmax(1))[:, :, None]
    return {"risk": (f_test - y_test).square().sum(2).mean(-1), "test_error": missed.double().mean((-2, -1)),
            "train_risk": (f - y).square().sum(2).mean(-1), "norm": a.square().sum((-2, -1)).sqrt()}


run = experiment.run


def sample(setting: Setting) -> tuple[torch.Tensor, ...]:
    """Inputs and labels (seed, 1 or 10 outputs, n) to train on; inputs and true labels to test on."""
    if setting.data == "gaussian":
        data = SingleIndex(setting.n, setting.d, identity, setting.noise)
        train, test = data.draw(setting.seed), data.draw_test(setting.points, setting.seed)
        return train.x, train.y[:, None], test.x, test.target[:, None]
    split = ten_digits(setting.n, setting.seed)
    classes = wrong_labels(split.y, setting.noise)
    y, y_test = (torch.nn.functional.one_hot(each, 10).mT.double() - 0.1 for each in (classes, split.y_test))
    return split.x.flatten(2), y, split.x_test.flatten(2), y_test


def wrong_labels(classes: torch.Tensor, share: float) -> torch.Tensor:
    """Ten classes (seed, n) with this share of them wrong, each other class as often as the next."""
    wrong = round(share * classes.shape[-1])  # the first ones: which pictures these are is drawn anew by every seed
    classes = classes.clone()
    classes[:, :wrong] = (classes[:, :wrong] + 1 + torch.arange(wrong) % 9) % 10
    return classes


def subset(n: int = 40, d: int = 200, noise: float = 0.5, seeds: int = 400) -> xr.Dataset:
    """Minimum-norm regression on the first p of d Gaussian coordinates, a linear target of length 1; (p, seed).

    The exact risk, given the weights, is their squared distance from the target's.
    """
    shares = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.1, 1.15, 1.2, 1.3, 1.5, 2, 3, 5)
    widths = [p for p in (round(n * share) for share in shares) if p <= d]
    x, slope = rng.normal((n, d), tuple(range(seeds)), "coordinates"), d**-0.5
    y = slope * x.sum(-1) + noise * rng.normal((n,), tuple(range(seeds)), "label noise")
    risks = [(estimators.min_norm(x[..., :p], y) - slope).square().sum(-1) + (d - p) * slope**2 for p in widths]
    exact = [subset_risk(n, p, p / d, 1 - p / d, noise) for p in widths]
    return labelled({"risk": (("p", "seed"), risks, "test risk"), "exact": ("p", exact, "test risk")},
                    {"p": ("p", list(widths), "coordinates p")})


def curves(widths: tuple[int, ...], n: int = 12, noise: float = 0.2, seed: int = 0) -> xr.Dataset:
    """One-dimensional fits by random sine waves: dimensions (width, x) for the curves, (sample) for the data."""
    at = (torch.arange(n, dtype=torch.float64) + 0.5) / n * 2 - 1
    y = torch.sin(3 * at) + noise * rng.normal((n,), seed, "label noise")
    grid = torch.linspace(-1, 1, 201, dtype=torch.float64)
    fits = []
    for width in widths:
        network = RandomFeatures.draw(2, width, torch.sin, seed)
        features, fresh = (network.features(torch.stack([8 * part, 4 + 0 * part], -1)) for part in (at, grid))
        fits.append(fresh @ estimators.min_norm(features, y))
    return xr.Dataset(
        {"fit": (("width", "x"), torch.stack(fits).numpy(), {"long_name": "fitted curve", "units": "1"}),
         "target": ("x", torch.sin(3 * grid).numpy(), {"long_name": "target", "units": "1"}),
         "y": ("sample", y.numpy(), {"long_name": "label", "units": "1"}), "at": ("sample", at.numpy())},
        coords={"width": list(widths), "x": grid.numpy()},
    )


def solutions(features: torch.Tensor, y: torch.Tensor, ridges: tuple[float, ...]) -> torch.Tensor:
    """Weights (ridge, seed, outputs, N): the minimum norm where the ridge is 0."""
    n, width = features.shape[-2:]
    positive = tuple(ridge * width / n for ridge in ridges if ridge > 0)  # in the units of `estimators.ridge`
    found = {}
    if positive:
        scanned = estimators.ridge(features[:, None], y, positive).movedim(-2, 0)
        found = dict(zip([ridge for ridge in ridges if ridge > 0], scanned, strict=True))
    if 0 in ridges:
        found[0] = estimators.min_norm(features[:, None], y)
    return torch.stack([found[ridge] for ridge in ridges])
