r"""Smooth leaky ReLU networks in very high dimension predict like the average of their samples.

Claim (Frei, Chatterji and Bartlett 2022, Theorem 3.1): on :math:`x = y\mu + \xi` in very high dimension, a two-layer
network with a smooth leaky activation, trained by gradient descent on the logistic loss, fits all labels, wrong ones
included, and errs on fresh data at most like :math:`e^{-n\|\mu\|^4/(Cd)}`. The average of the samples has an exact
error, about :math:`\Phi(-(1-2p)\sqrt r)` with :math:`r = n\|\mu\|^4/d`, and the network is held against it.
"""

from dataclasses import dataclass

import torch

from flbook import devices, measures
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive, Probability
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.models.activations import SmoothLeakyReLU
from flbook.runs import Experiment, Grid, axis
from flbook.training.fit import fit
from flbook.training.losses import logistic
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: two dimensions; n |mu|^2 / d is no longer small in the lower one.
    """

    d: tuple[Positive, ...] = axis([2e4, 2e6], "dimension d")
    r: tuple[NonNegative, ...] = axis([0.1, 0.3, 1.0, 3.0, 10.0], "r = n|μ|⁴/(σ_ξ⁴ d)")
    seed: tuple[Natural, ...] = axis(range(40), "seed")
    n: Count = 100  # training samples
    m: Count = 5  # filters a sign
    flip_prob: FlipProbability = 0.15
    leak: Probability = 0.1
    sharpness: Positive = 10.0  # of the smooth kink
    sigma_0: NonNegative = 1e-7
    lr: Positive = 0.5  # step size, in units of n/d
    steps: Natural = 50
    points: Count = 2048  # fresh samples to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse too few dimensions."""
        check_room(self.n, 2 * self.m, int(min(self.d)))


experiment = Experiment(
    Setting, version=1, loops=("d",), left=("seed", "r"), chunk={"seed": 14, "d": 2},
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "cosine": ("cosine between readout and average", "1"),
        "bend": ("share of pre-activations beyond the bend", "fraction"),
    },
    presets={
        "tiny": ("Two dimensions and signals, few samples", dict(
            d=(1e5, 1e6), r=(0.3, 1.0), seed=(0, 1), n=20, m=3, steps=30, points=256)),
        "longer": ("More dimensions and seeds; the paper has no experiment of its own", dict(
            d=(2e4, 2e5, 2e6, 2e7), seed=tuple(range(200)), steps=200)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train the networks of one dimension, and hold them against the average of their samples."""
    y, observed = flipped_labels(s.n, s.flip_prob, 0)
    gram = draw_gram(s.n, 2 * s.m, int(s.d), sigma_0=s.sigma_0, seed=s.seed)
    mu = (torch.tensor(s.r, dtype=torch.float64) * s.d / s.n) ** 0.25
    activation = SmoothLeakyReLU(s.leak, s.sharpness)
    training = SinglePatchTraining(
        SampleGram.added(gram.with_signals(mu), y), observed, (2 * s.m) ** -0.5, activation, logistic)
    training = training.to(devices.device(device))
    params = fit(training, GradientDescent(s.lr * s.n / s.d), s.steps).params
    a, average, on_filters = training.a, training.observed, training.preactivations(params)
    square = torch.einsum("k,...kl,l->...", a, training.weight_gram(params), a)
    length = torch.einsum("n,...np,p->...", average, training.gram.x_x, average)
    return {
        "test_error": measures.test_error(training, params, s.points),
        "train_error": measures.train_error(training, params),
        "cosine": (a @ on_filters * average).sum(-1) / (square * length).sqrt(),
        "bend": (on_filters.abs() * s.sharpness > 2).double().mean((-2, -1)),
    }


run = experiment.run
