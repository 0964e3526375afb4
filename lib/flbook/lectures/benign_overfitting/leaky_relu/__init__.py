r"""Benign overfitting of two-layer leaky ReLU networks when the dimension is only a multiple of the sample size.

Claim (Karhadkar et al. 2024): under the hinge loss gradient descent reaches zero loss after a finite number of steps,
with weights not much longer than those of the hard-margin classifier (Theorem 3.1); with k flipped labels and
:math:`\gamma \gtrsim 1/k`, :math:`d \gtrsim n` suffices for a test error between :math:`e^{-C d/(\alpha k)}` and
:math:`e^{-C\alpha^2 d/k}` (Theorems 3.2 and 3.3); with :math:`\gamma \lesssim \alpha^3/d` overfitting harms (3.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Literal

import torch
import xarray as xr

from flbook import estimators, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, Positive, Probability, Range
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.lectures.benign_overfitting.leaky_relu.stopping import Stop, descend
from flbook.models.activations import LeakyReLU
from flbook.models.cnn import initial_weights
from flbook.rivals import rival
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

STOPS = {"every label fitted": 0.0, "zero hinge loss": 1.0}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: network and rivals against the dimension, at the authors' signal strength.
    """

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network", "linear", "lazy"], "model")
    n: tuple[Count, ...] = axis([60], "samples n")
    flip_prob: tuple[FlipProbability, ...] = axis([0.1], "share of flipped labels k/n", "fraction")
    ratio: tuple[Annotated[float, Range(1)], ...] = axis([1.5, 2, 3, 4, 6, 8], "dimension d/n")  # any labels fit
    gamma: tuple[Positive, ...] = axis([5.0], "signal strength n |μ|²")  # n times the signal's share of |x|²
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    leak: Probability = 0.1  # slope of the activation left of zero
    m: Count = 16  # filters a sign
    lr: Positive = 1.0  # step size on the summed loss, in units of 1/(2 m n)
    limit: Natural = 100_000  # steps after which a member counts as not converged
    points: Count = 4096  # fresh samples to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse signals that are longer than a sample."""
        for n, flip_prob, ratio, gamma in product(self.n, self.flip_prob, self.ratio, self.gamma):
            Mixture(n, round(ratio * n), gamma / n, flip_prob)


MODELS = ("stop", "model", "n", "flip_prob", "ratio", "gamma", "seed")  # what the networks have
DATA = MODELS[2:]  # what the hard-margin classifier of the data has
experiment = Experiment(
    Setting, version=2, loops=("n", "flip_prob", "model"), left=("ratio", "gamma", "seed"), chunk={"n": 6},
    stored="paper", beside={"stop": (STOPS, "stopped at")},
    devices=("cpu",),  # whatever has stopped leaves the computation, so every step asks who has
    gives={
        "test_error": ("test error", "fraction", MODELS),
        "train_error": ("training error", "fraction", MODELS),
        "hinge_loss": ("hinge loss", "1", MODELS),
        "steps": ("steps", "1", MODELS),
        "norm": ("length of the weights |W|", "1", MODELS),
        "margin": ("smallest margin of the linear readout", "1", MODELS),
        "cosine": ("cosine between the linear readout and w*", "1", MODELS),
        "readout_error": ("test error of the linear readout", "fraction", MODELS),
        "svm_norm": ("length of the hard-margin classifier |w*|", "1", DATA),
        "svm_error": ("test error of the hard-margin classifier", "fraction", DATA),
        "min_norm_error": ("test error of minimum-norm interpolation", "fraction", DATA),
        "averaging_error": ("test error of the average of the samples", "fraction", DATA),
    },
    presets={
        "tiny": ("A few small samples, network and rivals", dict(
            model=("network", "linear", "lazy"), n=(8, 10), flip_prob=(0.1, 0.2), ratio=(2, 4), gamma=(3.0,),
            seed=(0, 1), m=3, points=256)),
        "paper": ("The authors' grid: n = 50, 60, ..., 150, d/n = 1, ..., 10, five trials, 32 filters a sign", dict(
            model=("network",), n=tuple(range(50, 160, 10)), ratio=tuple(range(1, 11)), seed=tuple(range(5)), m=32,
            points=1024)),
    },
)


@experiment.shared("n", "flip_prob")
def data(s: Setting, device: str) -> tuple[SinglePatchTraining, torch.Tensor]:
    """The problems that network and rivals train, and the hard-margin classifiers, in coefficients on the samples."""
    training = problem(s, s.n, s.flip_prob)
    return training, estimators.hard_margin(training.gram.x_x, training.observed.expand(*training.members, -1))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model to zero hinge loss and describe it at both stops, beside the classifier of the same data."""
    training, svm = data(s, device)
    chosen = rival(training, s.model)
    stops = descend(chosen.to(torch.float32), s.lr / (2 * s.m), tuple(STOPS.values()), s.limit)
    rows = [described(chosen, stop, svm, s.points) for stop in stops]
    labels = training.observed.expand(*training.members, -1)
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]} | {
        "svm_norm": (svm * labels).sum(-1).sqrt(),
        "svm_error": linear_error(training, svm),
        "min_norm_error": linear_error(training, torch.linalg.solve(training.gram.x_x, labels)),
        "averaging_error": linear_error(training, labels),
    }


run = experiment.run


def problem(setting: Setting, n: int, flip_prob: float) -> SinglePatchTraining:
    """The training problems of all (ratio, gamma, seed), in that order of ensemble axes, in float64."""
    y, observed = flipped_labels(n, flip_prob, setting.seed[0])
    grid = product(setting.ratio, setting.gamma)
    parts = [drawn(setting, n, round(ratio * n), flip_prob, gamma / n) for ratio, gamma in grid]
    shape = (len(setting.ratio), len(setting.gamma), len(setting.seed))
    grams, sigma_xi = zip(*parts, strict=True)
    gram = SampleGram(*(torch.cat(one).unflatten(0, shape) for one in zip(*grams, strict=True)))
    size = torch.tensor(sigma_xi, dtype=torch.float64).reshape(*shape[:2], 1).expand(shape)
    return SinglePatchTraining(gram, observed, 1.0, LeakyReLU(setting.leak), sigma_xi=size, orthogonal=True)


def drawn(setting: Setting, n: int, d: int, flip_prob: float, gamma: float) -> tuple[SampleGram, float]:
    """Inner products of all seeds in one dimension, and the noise level."""
    data = Mixture(n, d, gamma, flip_prob)
    sample = data.draw(setting.seed)
    w = initial_weights(d, 2 * setting.m, 1 / (2 * setting.m * d**0.5), setting.seed)
    return SampleGram.of(sample.x, sample.mu, w), data.sigma_xi


def race(setting: Setting, steps: int = 7000) -> xr.Dataset:
    """Step by step, in float64, the first cell of a setting: losses and errors over (step, seed)."""
    training = problem(setting, setting.n[0], setting.flip_prob[0]).select(torch.arange(len(setting.seed)))
    quantities = [
        Quantity("hinge_loss", training.train_loss, (), "hinge loss"),
        Quantity("train_error", lambda params: measures.train_error(training, params), (), "training error",
                 "fraction"),
        Quantity("test_error", lambda params: measures.test_error(training, params, setting.points), (), "test error",
                 "fraction"),
    ]
    rule = GradientDescent(setting.lr / (2 * setting.m))
    return fit(training, rule, steps, quantities, ("seed",)).history.assign_coords(setting.coordinates("seed"))


def hard_margin_error(setting: Setting, coupling: float = 1.0) -> xr.DataArray:
    """Exact test error of a hard margin, without any training: first n, flips and strength of a setting.

    With a coupling below 1 each training sample has a private feature, of squared length 1 / coupling - 1 over that of
    its noise, which fresh samples lack; all labels are fitted still. Dimensions (ratio, seed).
    """
    training = problem(setting.thinned(gamma=setting.gamma[:1], m=1), setting.n[0], setting.flip_prob[0])
    x_x = training.gram.x_x
    private = (1 / coupling - 1) * (1 - setting.gamma[0] / setting.n[0]) * torch.eye(setting.n[0]).to(x_x)
    c = estimators.hard_margin(x_x + private, training.observed.expand(*training.members, -1))
    return xr.DataArray(linear_error(training, c)[:, 0].numpy(), setting.coordinates("ratio", "seed"),
                        ("ratio", "seed"), "svm_error",
                        {"long_name": "test error of the hard-margin classifier", "units": "fraction"})


def against_linear(setting: Setting, leaks: Sequence[float]) -> xr.DataArray:
    """Test error of networks at zero hinge loss over that of the linear model trained alike on the same data.

    The linear model's error is exact. Dimensions (leak, n, flip_prob, ratio, gamma, seed); `leaks` replace that of the
    setting.
    """
    networks = [experiment.measure(replace(setting, model=("network",), leak=leak)).test_error for leak in leaks]
    linear = experiment.measure(replace(setting, model=("linear",), points=64)).readout_error  # exact without points
    at = dict(stop="zero hinge loss", drop=True)
    networks = xr.concat([one.sel(**at).squeeze("model", drop=True) for one in networks], "leak")
    share = networks.assign_coords(leak=list(leaks)) / linear.sel(**at).squeeze("model", drop=True)
    share.leak.attrs["long_name"] = "leak α"
    return share.assign_attrs(long_name="test error, over that of the linear model")


def described(problem: SinglePatchTraining, stop: Stop, svm: torch.Tensor, points: int) -> dict[str, torch.Tensor]:
    """What the networks look like at a stop. The readout is the linear classifier with weights ``sum_k a_k w_k``."""
    params = {"x": stop.params["x"].double()}
    w_w, a = problem.weight_gram(params), problem.a
    on_x, on_mu = a @ problem.preactivations(params), problem.on_signal(params) @ a
    square = torch.einsum("k,...kl,l->...", a, w_w, a)
    return {
        "test_error": measures.test_error(problem, params, points),
        "train_error": measures.train_error(problem, params),
        "hinge_loss": problem.train_loss(params),
        "steps": stop.step.double(),
        "norm": w_w.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt(),
        "margin": (problem.observed * on_x).amin(-1) / square.sqrt(),
        "cosine": (svm * on_x).sum(-1) / (square * (svm * problem.observed).sum(-1)).sqrt(),
        "readout_error": readout_error(problem, on_mu, square),
    }


def readout_error(problem: SinglePatchTraining, on_mu: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    r"""Exact test error of a linear classifier w from :math:`\langle w, \mu\rangle` and :math:`\|w\|^2`."""
    across = (square - on_mu**2 / problem.gram.mu_mu).clamp(min=0).sqrt()
    return torch.special.ndtr(-on_mu / (problem.sigma_xi * across))


def linear_error(problem: SinglePatchTraining, c: torch.Tensor) -> torch.Tensor:
    r"""Exact test error of the linear classifier :math:`\sum_i c_i x_i`."""
    square = torch.einsum("...n,...np,...p->...", c, problem.gram.x_x, c)
    return readout_error(problem, (c * problem.gram.x_mu).sum(-1), square)
