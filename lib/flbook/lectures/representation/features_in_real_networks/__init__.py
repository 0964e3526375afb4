r"""A two-layer network whose target depends on two of its inputs: filters against gradients, before and after training.

Claim (Radhakrishnan et al. 2024): in a trained network :math:`W^\top W` resembles the average gradient outer product
:math:`G = E\,\nabla f\,\nabla f^\top`, and a kernel machine that takes G as its metric, again and again, learns the
same matrix. Derived on the page: :math:`G = W^\top B W`, so an untrained network has a correlation of
:math:`\sqrt{4C/(4C+m+7)}` already. Inputs are :math:`x\sim N(0,I_d)`, the target is :math:`x_1x_2`.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.representation.features_in_real_networks import features
from flbook.lectures.representation.features_in_real_networks.recursive_kernel import kernel_rounds
from flbook.models import with_start
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import Momentum

AT = (0, 5, 10, 15, 20, 30, 40, 60, 80, 100)  # steps that are looked at
RIDGES, BANDWIDTHS = (1e-8, 1e-5, 1e-3), (2.0, 4.0, 8.0)  # what the rival kernel is tuned over


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a small start, from which features move, and a large one."""

    start: tuple[Positive, ...] = axis([0.3, 3.0], "start s")  # filters have variance s²/d
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    n: Count = 300  # training samples
    d: Annotated[int, Range(3)] = 30  # inputs
    m: Count = 64  # neurons
    steps: Natural = 100
    lr: Positive = 0.1  # at a start of 1 and below; see step_size
    points: Count = 1000  # fresh samples

    def step_size(self, start: float) -> float:
        """The curvature of the loss grows with the square of a large start."""
        return self.lr / max(1.0, start) ** 2


experiment = Experiment(
    Setting, version=2, loops=("start",),
    presets={"tiny": ("A blink", dict(seed=(0, 1), n=20, d=4, m=6, steps=5, points=20))},
)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train from one start and look inside; dimensions (step, seed), and (row, column) of matrices."""
    problem, where = problem_of(s, s.start).to(devices.device(device)), devices.device(device)
    begin, (x, y) = problem.start(), (part.to(where) for part in draw(s, s.points, "fresh"))

    def matrices(params):
        w, b, a = layers_of(params)
        return features.feature_matrix(w), features.gradient_outer_product(x, w, b, a)

    def change(params):
        first, now = matrices(begin)[0], matrices(params)
        return features.correlation(now[0] - first, now[1])  # before training the change is 0: no number

    record = [
        Quantity("correlation", lambda p: features.correlation(*matrices(p)), (), "correlation of WᵀW with G"),
        Quantity("change", change, (), "correlation of WᵀW − W₀ᵀW₀ with G"),
        Quantity("train_error", lambda p: relative_error(problem.predict(p), problem.observed), (),
                 "training error", "fraction"),
        Quantity("test_error", lambda p: relative_error(problem.predict(p, x), y), (), "test error",
                 "fraction"),
        Quantity("matrix", lambda p: matrices(p)[0], ("row", "column"), "feature matrix WᵀW"),
        Quantity("product", lambda p: matrices(p)[1], ("row", "column"), "gradient outer product G"),
    ]
    at = [step for step in AT if step <= s.steps]
    return fit(problem, Momentum(s.step_size(s.start)), s.steps, record, ("seed",), at).history


run = experiment.run


def draw(s: Setting, count: int, role: str) -> tuple[Tensor, Tensor]:
    """Gaussian inputs, and the product of their first two coordinates."""
    x = rng.normal((count, s.d), s.seed, role)
    return x, x[..., 0] * x[..., 1]


def problem_of(s: Setting, start: float) -> Training:
    """The network of every seed, its filters `start` times as large as usual, on its samples."""
    net = MLP((s.d, s.m, 1), seed=s.seed, dtype=torch.float64)
    name = "layers.0.weight"
    net = with_start(net, {name: start * net.get_parameter(name).detach()})
    return Training(net, *draw(s, s.n, "train"), squared)


def layers_of(params: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """W, b and A, neurons of the first layer and outputs in rows."""
    return params["layers.0.weight"].mT, params["layers.0.bias"], params["layers.1.weight"].mT


def relative_error(f: Tensor, y: Tensor) -> Tensor:
    """Mean squared error over the mean square of the target: who answers 0 has 1."""
    return (f - y).square().mean(-1) / y.square().mean(-1)


@experiment.also
def recursion(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The recursive kernel machine on the same samples: its error and its matrix after every round."""
    (x, y), (fresh, target) = draw(setting, setting.n, "train"), draw(setting, setting.points, "fresh")
    rounds = kernel_rounds(x, y, fresh)
    errors = torch.stack([relative_error(one.outputs, target) for one in rounds])
    products = torch.stack([one.product for one in rounds])
    return labelled(
        {"test_error": (("fits", "seed"), errors, "test error", "fraction"),
         "product": (("fits", "seed", "row", "column"), products, "gradient outer product")},
        {"fits": ("fits", range(1, len(rounds) + 1), "kernel machines fitted"), **setting.coordinates("seed")})


@experiment.also
def rivals(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Test errors of what needs no iteration, each tuned on the fresh samples, in its favour; (model, seed).

    A kernel machine on all inputs, and one on the two inputs that count (told).
    """
    (x, y), (fresh, target) = draw(setting, setting.n, "train"), draw(setting, setting.points, "fresh")
    views = {"kernel": (x, fresh), "told": (x[..., :2], fresh[..., :2])}
    best = []
    for inputs, new in views.values():
        errors = [relative_error(kernel_rounds(inputs, y, new, 1, ridge, width)[0].outputs, target)
                  for ridge in RIDGES for width in BANDWIDTHS]
        best.append(torch.stack(errors).min(0).values)
    return labelled({"test_error": (("model", "seed"), best, "test error", "fraction")},
                    {"model": ("model", list(views), "model"), **setting.coordinates("seed")})
