r"""Training both layers of the ReLU CNN on data with flipped labels: what the size of the output weights decides.

Claim (Shang et al. 2024): large initial output weights hardly move, so that only the filters learn; small ones grow
together with the filters, at a fixed ratio; the error bounds of the two regimes nearly agree. The ratio follows from
what gradient flow conserves, :math:`\|w_{j,r}\|^2 - v_{j,r}^2`.
"""

from dataclasses import dataclass
from functools import partial

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import flipped_labels, noise_preactivations
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.graphs_and_output_layers.both_layers import TwoLayerTraining
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    v_0: tuple[Positive, ...] = axis([0.001, 0.01, 0.1, 1.0, 3.0], "initial output weight v₀")
    r: tuple[Positive, ...] = axis([0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "r = n|μ|⁴/(σ_ξ⁴ d)")
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    n: Count = 20  # training samples
    d: Count = 3200  # patch dimension
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.1  # p, exactly pn labels flipped
    sigma_0: NonNegative = 1e-4  # initial filters
    lr: Positive = 0.5  # step size, in units of nm/(sigma_xi^2 d)
    steps: Natural = 2000
    points: Count = 256  # fresh noise patches to measure the test error on

    def check(self) -> None:
        """Refuse too few dimensions."""
        check_room(self.n, 2 * self.m, self.d)


experiment = Experiment(
    Setting, version=1, left=("v_0", "seed", "r"),
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
        "output": ("mean output weight |v|", "1"),
    },
    presets={
        "tiny": ("Small and large output weights, harmful and benign", dict(
            v_0=(0.01, 3.0), r=(0.1, 50.0), seed=(0, 1, 2), d=400, steps=800)),
        "book": ("The test error across the border, from the smallest to the largest output weights", dict(
            v_0=(0.001, 0.1, 3.0), steps=1500, seed=tuple(range(12)))),
        "growing": ("One signal, filters whose length starts at a visible size, to watch both layers", dict(
            v_0=(0.001, 3.0), r=(30.0,), d=400, sigma_0=0.01, lr=0.2, steps=1000, seed=tuple(range(10)))),
        "longer": ("Five sizes of the output weights, more seeds", {}),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train all networks to the end."""
    training = problem(s, device, torch.float32)
    params = fit(training, rule(s), s.steps).params
    return {"test_error": measures.test_error(training, params, s.points),
            "train_error": measures.train_error(training, params), "train_loss": training.train_loss(params),
            "output": params["v"].abs().mean(-1)}


run = experiment.run


def problem(setting: Setting, device: str = "cpu", dtype: torch.dtype = torch.float64) -> TwoLayerTraining:
    """The training problems of all (v_0, seed, r), in that order of ensemble axes."""
    y, observed = flipped_labels(setting.n, setting.flip_prob, setting.seed[0])
    gram = draw_gram(setting.n, 2 * setting.m, setting.d, sigma_0=setting.sigma_0, seed=setting.seed)
    mu = (torch.tensor(setting.r, dtype=torch.float64) * setting.d / setting.n) ** 0.25
    gram = Gram(*(part[None] for part in gram.with_signals(mu)))
    size = torch.tensor(setting.v_0, dtype=torch.float64)[:, None, None]
    training = TwoLayerTraining(gram, y, observed, 1 / setting.m, v_0=size,
                               law=partial(noise_preactivations, sigma_xi=1.0))
    return training.to(devices.device(device), dtype)


def rule(setting: Setting) -> GradientDescent:
    """Gradient descent at the setting's step size."""
    return GradientDescent(setting.lr * setting.n * setting.m / setting.d)


@experiment.also
def growth(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Both layers over time, in float64: mean lengths of filters and output weights, and how far the balance of their
    squares has drifted; dimensions (step, v_0, seed, r)."""
    training = problem(setting, device)
    balance = training.balance(training.start())
    quantities = [
        Quantity("filter", lambda p: training.weight_gram(p).diagonal(dim1=-2, dim2=-1).sqrt().mean(-1), (),
                 "mean length of a filter |w|"),
        Quantity("output", lambda p: p["v"].abs().mean(-1), (), "mean output weight |v|"),
        Quantity("drift", lambda p: (training.balance(p) - balance).abs().amax(-1), (), "largest drift of |w|² - v²"),
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
    ]
    at = log_steps(setting.steps, 60)
    axes = ("v_0", "seed", "r")
    history = fit(training, rule(setting), setting.steps, quantities, axes, at).history
    time = {"long_name": "learning time η σ_ξ² d t / (nm)", "units": "1"}
    return history.assign_coords(time=("step", setting.lr * history.step.values, time))
