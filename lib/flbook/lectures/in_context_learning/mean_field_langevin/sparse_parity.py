r"""Sparse parity: neurons under mean-field Langevin dynamics against kernels and random features.

Claim (Suzuki, Wu, Oko and Nitanda 2023, as their abstract has it): on k-sparse parity in d dimensions mean-field
Langevin dynamics needs a number of samples whose exponent in d does not grow with k, as it does for kernels.
Checked here at fixed d and k: how many samples each needs, and what the temperature has to do with it.

The kernels get the ridge that is best on the test data; the Langevin network gets none of that.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators import kernel_ridge, ridge
from flbook.lectures.in_context_learning.mean_field_langevin.langevin import Langevin
from flbook.lectures.in_context_learning.mean_field_langevin.neurons import BoundedUnit, Neurons
from flbook.lectures.in_context_learning.mean_field_langevin.parity import Signs, SparseParity
from flbook.models.kernels import inner_product, relu_tangent
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit
from flbook.training.network import Training

RIVALS = ("tangent kernel", "tangent kernel without bias", "random features", "linear regression")
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one sample size, two temperatures, ten seeds."""

    n: tuple[Count, ...] = axis([300], "training samples n")
    lam: tuple[NonNegative, ...] = axis([0.0, 1e-2], "temperature λ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 20
    k: Count = 3
    width: Count = 100  # neurons N
    reach: Positive = 20.0  # R
    decay: NonNegative = 1e-2  # lambda'
    lr: Positive = 0.2
    steps: Natural = 600
    features: Count = 2000  # random features of the frozen rival
    points: Count = 2000  # fresh samples

    def check(self) -> None:
        """Refuse labels that depend on more inputs than there are."""
        self.data(self.n[0])

    def data(self, n: int) -> SparseParity:
        """The data model."""
        return SparseParity(n, self.d, self.k)


experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1, "seed": 5}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "energy": ("weight energy, relevant over other inputs", "1"),
        "rival_error": ("test error", "fraction", ("n", "model", "seed")),
    },
    beside={"model": (RIVALS, "rival", "1")},
    presets={
        "tiny": ("Two inputs of six from 120 samples, by 40 neurons", dict(
            n=(60, 120), lam=(0.0, 1e-3), seed=(0, 1), d=6, k=2, width=40, steps=250, features=60, points=200)),
        "longer": ("Six sample sizes, four temperatures, twice the training time", dict(
            n=(75, 150, 300, 600, 1200, 2400), lam=(0.0, 1e-3, 1e-2, 3e-2), steps=1200)),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train on one sample size, and the rivals on the same samples."""
    problem, params = train(s, s.n, device)
    fresh = Signs(*(part.to(problem.x) for part in s.data(s.n).draw_test(s.points, s.seed)))
    return {
        "test_error": error(problem.predict(params, fresh.x), fresh.y),
        "train_error": error(problem.predict(params), problem.observed),
        "energy": feature_energy(params["theta"], s.k),
        "rival_error": rival_errors(s, Signs(problem.x, problem.observed), fresh),
    }


run = experiment.run


def start(setting: Setting) -> Tensor:
    """Neurons (w, b, a) at the start, shape (lam, seed, N, d + 2): w and b of variance 1/d, a of variance 1."""
    theta = rng.normal((setting.width, setting.d + 2), setting.seed, "neurons").float()
    theta[..., :-1] /= setting.d**0.5
    return theta.expand(len(setting.lam), *theta.shape)


def train(setting: Setting, n: int, device: str = "cpu") -> tuple[Training, dict[str, Tensor]]:
    """Networks of all (lam, seed) after training, and their problem."""
    sample = setting.data(n).draw(setting.seed)
    network = Neurons(BoundedUnit(setting.reach), start(setting)).to(devices.device(device))
    problem = Training(network, sample.x, sample.y)
    rule = Langevin(setting.lr, torch.tensor(setting.lam)[:, None], setting.decay, setting.seed, axis=1)
    return problem, fit(problem, rule, setting.steps).params


def error(outputs: Tensor, y: Tensor) -> Tensor:
    """Share of fresh samples whose sign is missed; an output of exactly 0 misses."""
    return (outputs * y <= 0).float().mean(-1)


def feature_energy(theta: Tensor, k: int) -> Tensor:
    """Mean square of the weights on the k coordinates of the label over that of the others; 1 at the start."""
    square = theta[..., :-2].square().mean(-2)
    return square[..., :k].mean(-1) / square[..., k:].mean(-1)


def rival_errors(setting: Setting, sample: Signs, fresh: Signs) -> Tensor:
    """Test errors of the rivals, shape (model, seed), each at the ridge that is best on the fresh samples."""
    kernels = (relu_tangent(), relu_tangent(bias=False))
    errors = [_kernel_error(kernel, sample, fresh) for kernel in kernels]
    draw = rng.normal((setting.features, setting.d + 1), setting.seed, "random features").to(sample.x) / setting.d**0.5

    def frozen(x):
        return torch.tanh(torch.einsum("...nd,...kd->...nk", x, draw[..., 1:]) + draw[..., None, :, 0])

    weights = ridge(frozen(sample.x), sample.y, RIDGES)
    errors.append(error(torch.einsum("...nk,...lk->...ln", frozen(fresh.x), weights), fresh.y[..., None, :]).amin(-1))
    return torch.stack([*errors, _kernel_error(inner_product(lambda t: t), sample, fresh)])


def _kernel_error(kernel, sample: Signs, fresh: Signs) -> Tensor:
    alpha = kernel_ridge(kernel(sample.x, sample.x).double(), sample.y.double(), RIDGES, rtol=1e-3)
    outputs = torch.einsum("...pn,...ln->...lp", kernel(fresh.x, sample.x), alpha.float())
    return error(outputs, fresh.y[..., None, :]).amin(-1)
