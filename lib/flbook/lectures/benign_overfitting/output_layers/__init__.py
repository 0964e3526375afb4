r"""Training both layers of the ReLU CNN on data with flipped labels: what the size of the start decides.

Claim (derived here): output weights of size v_0 and filters of size sigma_0 enter by their product,
:math:`s = v_0\sigma_0\sigma_\xi d/\sqrt n`; from about :math:`s_0 = 0.3\,\bar c\sqrt m` on, with :math:`\bar c` a
filter's response to what it memorised, the border in :math:`r = n|\mu|^4/(\sigma_\xi^4 d)` grows like s^2. And (Shang
et al. 2024) large output weights hardly move, small ones grow together with the filters.
"""

from dataclasses import dataclass
from functools import partial

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import flipped_labels, noise_preactivations
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.output_layers.both_layers import TwoLayerTraining
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent

AXES = ("v_0", "sigma_0", "seed", "r")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    v_0: tuple[Positive, ...] = axis([1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0], "initial output weight v₀")
    sigma_0: tuple[Positive, ...] = axis([1e-6, 1e-5, 1e-4], "initial filters σ₀")
    r: tuple[Positive, ...] = axis([10.0], "r = n|μ|⁴/(σ_ξ⁴ d)")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 20  # training samples
    d: Count = 1000000  # patch dimension
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.1  # p, exactly pn labels flipped
    lr: Positive = 1.0  # step size, in units of nm/(sigma_xi^2 d), over v_0^2 where that is above 1
    steps: Natural = 400
    points: Count = 256  # fresh noise patches to measure the test error on

    def check(self) -> None:
        """Refuse too few dimensions."""
        check_room(self.n, 2 * self.m, self.d)


experiment = Experiment(
    Setting, version=1, left=AXES,
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
        "output": ("mean output weight |v|", "1"),
    },
    presets={
        "tiny": ("Small and large output weights, harmful and benign", dict(
            v_0=(0.01, 3.0), sigma_0=(1e-4,), r=(0.1, 50.0), seed=(0, 1, 2), d=400, lr=0.5, steps=800)),
        "border": ("The test error over r, for starts from small to large, with output weights of 1", dict(
            v_0=(1.0,), sigma_0=tuple(s * 20**0.5 / 1e6 for s in (3.0, 10.0, 30.0, 60.0, 120.0)),
            r=lattice(0.05, 300.0, 12))),
        "small": ("Small output weights, which grow, beside larger ones", dict(
            v_0=(0.001, 0.03, 1.0), sigma_0=(1e-5,), r=(1.0, 10.0), d=3200, lr=0.5, steps=1500)),
        "growing": ("One signal, filters whose length starts at a visible size, to watch both layers", dict(
            v_0=(0.001, 3.0), sigma_0=(0.01,), r=(30.0,), d=400, lr=0.2, steps=1000, seed=tuple(range(10)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train all networks to the end."""
    training = problem(s, device, torch.float32)
    params = fit(training, rule(s, training.y), s.steps).params
    return {"test_error": measures.test_error(training, params, s.points),
            "train_error": measures.train_error(training, params), "train_loss": training.train_loss(params),
            "output": params["v"].abs().mean(-1)}


run = experiment.run


def problem(setting: Setting, device: str = "cpu", dtype: torch.dtype = torch.float64) -> TwoLayerTraining:
    """The training problems of all (v_0, sigma_0, seed, r), in that order of ensemble axes."""
    y, observed = flipped_labels(setting.n, setting.flip_prob, setting.seed[0])
    unit = draw_gram(setting.n, 2 * setting.m, setting.d, sigma_0=1.0, seed=setting.seed)
    sigma_0 = torch.tensor(setting.sigma_0, dtype=torch.float64)[:, None]
    gram = Gram(*(part[None] for part in unit)).with_filters(sigma_0)
    mu = (torch.tensor(setting.r, dtype=torch.float64) * setting.d / setting.n) ** 0.25
    gram = Gram(*(part[None] for part in gram.with_signals(mu)))
    size = torch.tensor(setting.v_0, dtype=torch.float64)[:, None, None, None]
    training = TwoLayerTraining(gram, y, observed, 1 / setting.m, v_0=size,
                               law=partial(noise_preactivations, sigma_xi=1.0))
    return training.to(devices.device(device), dtype)


def rule(setting: Setting, like: torch.Tensor | None = None) -> GradientDescent:
    """Gradient descent whose steps are as long in the output for every v_0 above 1."""
    like = torch.zeros((), dtype=torch.float64) if like is None else like
    slower = torch.tensor(setting.v_0, dtype=torch.float64).clamp(min=1)[:, None, None, None] ** 2
    return GradientDescent((setting.lr * setting.n * setting.m / setting.d / slower).to(like))


def starts(setting: Setting) -> xr.DataArray:
    r"""The size of the start, :math:`s = v_0\sigma_0\sigma_\xi d/\sqrt n`, over (v_0, sigma_0)."""
    coordinates = setting.coordinates("v_0", "sigma_0")
    v_0, sigma_0 = (xr.DataArray(list(getattr(setting, name)), {name: coordinates[name]}, (name,))
                    for name in ("v_0", "sigma_0"))
    return (v_0 * sigma_0 * setting.d / setting.n**0.5).assign_attrs(long_name="start s = v₀σ₀σ_ξ d/√n", units="1")


@experiment.also
def growth(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Both layers over time, in float64: mean lengths of filters and output weights, and how far the balance of their
    squares has drifted; dimensions (step, v_0, sigma_0, seed, r)."""
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
    history = fit(training, rule(setting), setting.steps, quantities, AXES, at).history
    time = {"long_name": "learning time η σ_ξ² d t / (nm)", "units": "1"}
    return history.assign_coords(time=("step", setting.lr * history.step.values, time))
