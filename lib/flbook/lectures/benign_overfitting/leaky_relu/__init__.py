r"""Benign overfitting of two-layer leaky ReLU networks when the dimension is only a multiple of the sample size.

Claim (Karhadkar et al. 2024): under the hinge loss gradient descent reaches zero loss after a finite number of steps,
with weights not much longer than those of the hard-margin classifier (Theorem 3.1); with k flipped labels and
:math:`\gamma \gtrsim 1/k`, :math:`d \gtrsim n` suffices for a test error between :math:`e^{-C d/(\alpha k)}` and
:math:`e^{-C\alpha^2 d/k}` (Theorems 3.2 and 3.3); with :math:`\gamma \lesssim \alpha^3/d` overfitting harms (3.4).
"""

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, estimators, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, Positive, Probability, Range
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.lectures.benign_overfitting.leaky_relu.stopping import Stop, descend
from flbook.models.activations import LeakyReLU
from flbook.models.cnn import initial_weights
from flbook.rivals import rival
from flbook.runs import Grid, axis, labelled, sweeps
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

VERSION = 1
STOPS = {"every label fitted": 0.0, "zero hinge loss": 1.0}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: samples against dimension, at the authors' signal strength 5/n.
    """

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network"], "model")
    n: tuple[Count, ...] = axis([30, 45, 60], "samples n")
    flip_prob: tuple[FlipProbability, ...] = axis([0.1], "share of flipped labels k/n", "fraction")
    ratio: tuple[Annotated[float, Range(1)], ...] = axis([1, 2, 3, 4, 6, 8], "dimension d/n")  # any labels fit
    gamma: tuple[Positive, ...] = axis([5.0], "signal strength γ")  # in units of `gamma_unit`
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    gamma_unit: Literal["1", "1/n", "1/k", "1/d"] = "1/n"
    leak: Probability = 0.1  # slope of the activation left of zero
    m: Count = 16  # filters a sign
    lr: Positive = 1.0  # step size on the summed loss, in units of 1/(2 m n)
    limit: Natural = 100_000  # steps after which a member counts as not converged
    points: Count = 1024  # fresh samples to measure the test error on, each under both labels

    @classmethod
    def tiny(cls) -> "Setting":
        """A few small samples, network and rivals."""
        return cls(model=("network", "linear", "lazy"), n=(8, 10), flip_prob=(0.1, 0.2), ratio=(2, 4), gamma=(3.0,),
                   seed=(0, 1), m=3, points=256)

    @classmethod
    def rivals(cls) -> "Setting":
        """What learns no feature, on data sets of `book`."""
        return cls(model=("linear", "lazy"), n=(60,), ratio=(1, 2, 4, 8))

    @classmethod
    def paper(cls) -> "Setting":
        """The authors' grid: n = 50, 60, ..., 150, d/n = 1, ..., 10, five trials, 32 filters a sign."""
        return cls(n=tuple(range(50, 160, 10)), ratio=tuple(range(1, 11)), seed=tuple(range(5)), m=32)

    @classmethod
    def signals(cls) -> "Setting":
        """Samples against signal strength at d = 2n."""
        return cls(n=(15, 20, 30, 40), ratio=(2,), gamma=(0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16),
                   seed=tuple(range(5)), gamma_unit="1")

    @classmethod
    def flips(cls) -> "Setting":
        """Numbers k of flipped labels, at a signal strength of 1/k."""
        return cls(n=(40,), flip_prob=(0.05, 0.1, 0.2), ratio=(2, 4, 6, 8), gamma=(1.0,),
                   seed=tuple(range(6)), gamma_unit="1/k")

    def check(self) -> None:
        """Refuse signals that are longer than a sample."""
        for n, flip_prob, ratio, gamma in product(self.n, self.flip_prob, self.ratio, self.gamma):
            d = round(ratio * n)
            Mixture(n, d, strength(self, n, d, flip_prob, gamma), flip_prob)

    def coordinates(self, *names: str) -> dict[str, tuple]:
        """As every setting's, with the unit of the signal strength."""
        found = super().coordinates(*names)
        if "gamma" in found:
            found["gamma"][2]["units"] = self.gamma_unit
        return found


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to zero hinge loss; dimensions (stop, model, n, flip_prob, ratio, gamma, seed)."""
    cells = [_trained(problem(setting, n, p), setting, device) for n in setting.n for p in setting.flip_prob]
    shape = (len(setting.n), len(setting.flip_prob))
    joined = xr.concat(cells, "cell").assign_coords(cell=np.arange(len(cells)))
    where = xr.DataArray(np.arange(len(cells)).reshape(shape), dims=("n", "flip_prob"))
    found = joined.isel(cell=where).drop_vars("cell")
    order = ("stop", "model", "n", "flip_prob", "ratio", "gamma", "seed")
    return found.transpose(*order, missing_dims="ignore").assign_coords(setting.coordinates())


run = sweeps(measure, chunk={"n": 6})


def strength(setting: Setting, n: int, d: int, flip_prob: float, gamma: float) -> float:
    """The signal strength of a cell."""
    unit = {"1": 1, "1/n": 1 / n, "1/k": 1 / max(round(flip_prob * n), 1), "1/d": 1 / d}[setting.gamma_unit]
    return gamma * unit


def problem(setting: Setting, n: int, flip_prob: float) -> SinglePatchTraining:
    """The training problems of all (ratio, gamma, seed), in that order of ensemble axes, in float64."""
    y, observed = flipped_labels(n, flip_prob, setting.seed[0])
    grid = product(setting.ratio, setting.gamma)
    parts = [drawn(setting, n, round(ratio * n), flip_prob, gamma) for ratio, gamma in grid]
    shape = (len(setting.ratio), len(setting.gamma), len(setting.seed))
    grams, sigma_xi = zip(*parts, strict=True)
    gram = SampleGram(*(torch.cat(one).unflatten(0, shape) for one in zip(*grams, strict=True)))
    size = torch.tensor(sigma_xi, dtype=torch.float64).reshape(*shape[:2], 1).expand(shape)
    return SinglePatchTraining(gram, observed, 1.0, LeakyReLU(setting.leak), sigma_xi=size, orthogonal=True)


def drawn(setting: Setting, n: int, d: int, flip_prob: float, gamma: float) -> tuple[SampleGram, float]:
    """Inner products of all seeds in one dimension, and the noise level."""
    data = Mixture(n, d, strength(setting, n, d, flip_prob, gamma), flip_prob)
    sample = data.draw(setting.seed)
    w = initial_weights(d, 2 * setting.m, 1 / (2 * setting.m * d**0.5), setting.seed)
    return SampleGram.of(sample.x, sample.mu, w), data.sigma_xi


def race(setting: Setting, steps: int = 7000, fresh: int = 512, at: tuple[int, ...] | None = None) -> xr.Dataset:
    """Step by step, in float64, the first cell of a setting: losses and errors over (step, seed), and the margins.

    train_margin, over (step, seed, sample): observed label times output; fresh_margin, over (step, seed, fresh): true
    label times output on fresh samples.
    """
    training = problem(setting, setting.n[0], setting.flip_prob[0]).select(torch.arange(len(setting.seed)))
    standard = measures.sobol_normal(fresh, training.test_directions)

    def fresh_margin(params):
        plus, minus = training.test_outputs(params, standard)
        return torch.cat([plus, -minus], -1)

    quantities = [
        Quantity("hinge_loss", training.train_loss, (), "hinge loss"),
        Quantity("train_error", lambda params: measures.train_error(training, params), (), "training error",
                 "fraction"),
        Quantity("test_error", lambda params: measures.test_error(training, params, setting.points), (), "test error",
                 "fraction"),
        Quantity("train_margin", lambda params: training.observed * training.predict(params), ("sample",),
                 "observed label times output"),
        Quantity("fresh_margin", fresh_margin, ("fresh",), "true label times output"),
    ]
    rule = GradientDescent(setting.lr / (2 * setting.m))
    history = fit(training, rule, steps, quantities, ("seed",), at).history
    y, observed = flipped_labels(setting.n[0], setting.flip_prob[0], 0)
    return history.assign_coords(setting.coordinates("seed") | {"flipped": ("sample", (y != observed).numpy())})


def _trained(problem: SinglePatchTraining, setting: Setting, device: str) -> xr.Dataset:
    """One n and one number of flips: every model at both stops, beside the hard-margin classifier of the same data."""
    axes, rows = ("ratio", "gamma", "seed"), []
    svm = estimators.hard_margin(problem.gram.x_x, problem.observed.expand(*problem.members, -1))
    for name in setting.model:
        chosen = rival(problem, name)
        training = chosen.to(devices.device(device), torch.float32)
        stops = descend(training, setting.lr / (2 * setting.m), tuple(STOPS.values()), setting.limit)
        rows.append([described(chosen, stop, svm, setting.points) for stop in stops])
    dims = ("model", "stop", *axes)
    found = {key: (dims, np.stack([[one[key] for one in row] for row in rows])) for key in rows[0][0]}
    square = (svm * problem.observed).sum(-1)
    error = readout_error(problem, (svm * problem.gram.x_mu).sum(-1), square)
    found |= {"svm_norm": (axes, square.sqrt().numpy()), "svm_error": (axes, error.numpy())}
    return labelled({name: (*found[name], *text) for name, text in NAMES.items()},
                    {"stop": ("stop", list(STOPS), "stopped at")})


def margin_error(setting: Setting, extra: float = 0.0) -> xr.DataArray:
    """Exact test error of the hard-margin classifier, without any training: first n, flips and strength of a setting.

    extra: added to the diagonal of the inner products, which makes it a soft margin with squared slack.
    Dimensions (ratio, seed).
    """
    training = problem(setting.thinned(gamma=setting.gamma[:1], m=1), setting.n[0], setting.flip_prob[0])
    x_x, observed = training.gram.x_x, training.observed.expand(*training.members, -1)
    c = estimators.hard_margin(x_x + extra * torch.eye(setting.n[0]), observed)
    square = torch.einsum("...n,...np,...p->...", c, x_x, c)
    error = readout_error(training, (c * training.gram.x_mu).sum(-1), square)[:, 0]
    return xr.DataArray(error.numpy(), setting.coordinates("ratio", "seed"), ("ratio", "seed"), "svm_error",
                        {"long_name": "test error of the margin classifier", "units": "fraction"})


def described(problem: SinglePatchTraining, stop: Stop, svm: torch.Tensor, points: int) -> dict[str, np.ndarray]:
    """What the networks look like at a stop. The readout is the linear classifier with weights ``sum_k a_k w_k``."""
    params = {"x": stop.params["x"].cpu().double()}
    w_w, a = problem.weight_gram(params), problem.a
    on_x, on_mu = a @ problem.preactivations(params), problem.on_signal(params) @ a
    square = torch.einsum("k,...kl,l->...", a, w_w, a)
    found = {
        "test_error": measures.test_error(problem, params, points),
        "train_error": measures.train_error(problem, params),
        "hinge_loss": problem.train_loss(params),
        "steps": stop.step.cpu().double(),
        "norm": w_w.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt(),
        "margin": (problem.observed * on_x).amin(-1) / square.sqrt(),
        "cosine": (svm * on_x).sum(-1) / (square * (svm * problem.observed).sum(-1)).sqrt(),
        "readout_error": readout_error(problem, on_mu, square),
    }
    return {name: value.numpy() for name, value in found.items()}


def readout_error(problem: SinglePatchTraining, on_mu: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    r"""Exact test error of a linear classifier w from :math:`\langle w, \mu\rangle` and :math:`\|w\|^2`."""
    across = (square - on_mu**2 / problem.gram.mu_mu).clamp(min=0).sqrt()
    return torch.special.ndtr(-on_mu / (problem.sigma_xi * across))


NAMES = {
    "test_error": ("test error", "fraction"),
    "train_error": ("training error", "fraction"),
    "hinge_loss": ("hinge loss", "1"),
    "steps": ("steps", "1"),
    "norm": ("length of the weights |W|", "1"),
    "margin": ("smallest margin of the linear readout", "1"),
    "cosine": ("cosine between the linear readout and w*", "1"),
    "readout_error": ("test error of the linear readout", "fraction"),
    "svm_norm": ("length of the hard-margin classifier |w*|", "1"),
    "svm_error": ("test error of the hard-margin classifier", "fraction"),
}
