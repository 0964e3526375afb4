r"""Exclusive or hidden in one patch: cluster and noise are added, and the lazy network no longer finds the clusters.

The data of `clusters` with the two patches summed, x = cluster + noise. The lazy network's kernel is then nearly
linear in high dimension, and XOR is invisible to what is linear; the network turns its filters towards the clusters.
The mirrored network is trained on the mirror image -x of every sample, too, with the same label: then what is linear in
its first steps cancels.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from flbook import devices, measures
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive, Range
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.models import TwoLayerCNN, identity, relu
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one sample size and dimension."""

    model: tuple[Literal["network", "mirrored", "lazy", "linear"], ...] = axis(["network", "lazy", "linear"], "model")
    n: tuple[Annotated[int, Range(4)], ...] = axis([200], "samples n")
    d: tuple[Annotated[int, Range(3)], ...] = axis([150], "dimension d")
    mu: tuple[Positive, ...] = axis([1.5, 2.5, 3.5, 5.0], "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.0  # p
    start: NonNegative = 0.05  # sigma_0 sigma_xi sqrt(d)
    lr: Positive = 0.4  # step size, in units of m min(1, n/d)
    steps: Natural = 100
    points: Count = 500  # fresh samples


BORDERS = dict(model=("network",), n=(40, 80, 160, 320, 640), d=(100,), mu=lattice(1.0, 4.0, 9))
experiment = Experiment(
    Setting, version=1, loops=("model", "n", "d", "mu"), chunk={"model": 1, "n": 1, "d": 1},
    gives={"test_error": ("test error", "fraction"), "train_error": ("training error", "fraction")},
    presets={
        "tiny": ("Few samples in few dimensions, too weak and strong enough a signal", dict(
            n=(12, 20), d=(60,), mu=(1.0, 4.0), seed=(0, 1), steps=5, points=50)),
        "borders": ("Sizes and signals in a hundred dimensions: where does the network begin to see?", BORDERS),
        "mirrored": ("The same with mirror images; at most 320 samples, which are twice as many, and weaker signals",
                     BORDERS | dict(model=("mirrored",), n=BORDERS["n"][:4], mu=BORDERS["mu"][:7])),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train and test one model."""
    return errors(s, s.model, s.n, s.d, s.mu, device)


run = experiment.run


def errors(setting: Setting, model: str, n: int, d: int, mu: float, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Test and training error of one model after training, seed by seed."""
    problem = task(setting, model, n, d, mu, device)
    rule = GradientDescent(setting.lr * setting.m * min(1.0, n / d))
    params = fit(problem, rule, setting.steps).params
    fresh = XorSignalNoise(n=n, d=d, mu_norm=mu).draw_test(setting.points, setting.seed)
    x = fresh.x.sum(-2, keepdim=True).to(problem.x)
    error = measures.test_error_on(problem, params, x, fresh.y.to(problem.x))
    return {"test_error": error, "train_error": measures.train_error(problem, params)}


def task(setting: Setting, model: str, n: int, d: int, mu: float, device: str = "cpu") -> Training:
    """The training problem of all seeds: cluster and noise in one patch."""
    sample = XorSignalNoise(n=n, d=d, mu_norm=mu, flip_prob=setting.flip_prob).draw(setting.seed)
    activation, where = identity if model == "linear" else relu, devices.device(device)
    network = TwoLayerCNN(d, setting.m, setting.start / math.sqrt(d), activation, seed=setting.seed)
    x, observed = sample.x.sum(-2, keepdim=True).to(where, torch.float32), sample.observed.to(where)
    if model == "mirrored":
        x, observed = torch.cat([x, -x], -3), torch.cat([observed, observed], -1)
    plain = Training(network.to(where), x, observed)
    return plain.lazy() if model == "lazy" else plain
