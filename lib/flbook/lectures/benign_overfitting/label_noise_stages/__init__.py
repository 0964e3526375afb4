r"""Training on flipped labels in two stages: first the clean samples are fitted, then the flipped ones.

Claim (Han et al. 2025, Theorems 4.1 and 4.2): with :math:`n\,\mathrm{SNR}^2 = \Theta(1)` there is a time at which every
clean sample is fitted and every flipped one still follows its true label, and a later one at which flipped samples are
fitted. Then the test error is at least p/2, on test samples that repeat the noise of training samples.

Measured besides: the same error on fresh noise, the limit of orthogonal noise patches
(`orthogonal_noise`), from which the boundaries 1/(1 - 2p) and 1/(1 - 4p) come, and the rivals.
"""

from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, measures
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics.frozen import FrozenGramTraining
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_training
from flbook.lectures.benign_overfitting.label_noise_stages.network_parts import check_flips, mean, spoken
from flbook.lectures.benign_overfitting.label_noise_stages.orthogonal_noise import OrthogonalNoise
from flbook.lectures.benign_overfitting.label_noise_stages.recycled import RecycledTest
from flbook.rivals import RIVALS, Rival, rival
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent

AXES = ("flip_prob", "d", "seed", "n_snr2")  # of the ensemble, in this order
FROZEN_STEP = 2.0  # times 1/m: half of what is stable on 2m features of mean square 1
# how a rival differs from the network in the limit: factor of n SNR^2, factor of time, filters a sample may meet (of m)
LIMITS = {"network": (1.0, 1.0, 1), "linear": (1.0, 4.0, None), "lazy": (0.5, 2.0, 2)}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: two dimensions, one as in experiments of this kind, one so large that noise patches are orthogonal.
    """

    model: tuple[Rival, ...] = axis(["network"], "model")
    flip_prob: tuple[FlipProbability, ...] = axis([0.2], "flip probability p")  # exactly pn labels flipped
    d: tuple[Count, ...] = axis([4000, 10**9], "patch dimension d")
    n_snr2: tuple[Positive, ...] = axis([1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0], "n SNR²")  # sets |mu|
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 100  # training samples
    m: Count = 10  # filters a sign
    start: NonNegative = 0.01  # sigma_0 sigma_xi sqrt(d): size of <w(0), xi>
    lr: Positive = 0.2  # step size, in units of nm/(sigma_xi^2 d): then stage I lasts some 15 steps
    steps: Natural = 250
    points: Count = 128  # fresh noise patches to measure the test error on

    def check(self) -> None:
        """Refuse samples without flipped or without clean labels, and too few dimensions."""
        for p in self.flip_prob:
            check_flips(p, self.n)
        for d in self.d:
            check_room(self.n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=1, loops=("model",), chunk={"flip_prob": 2}, stored="longer",
    presets={
        "tiny": ("Without and with a first stage, the rivals beside the network", dict(
            model=("network", *RIVALS), d=(500, 10**8), n_snr2=(1.0, 12.0), seed=(0, 1, 2), n=20, m=6, lr=0.3,
            steps=30, points=16)),
        "longer": ("Eight flip probabilities, two dimensions, sixteen signal strengths, training four times as long",
                   dict(flip_prob=tuple(round(0.04 * k, 2) for k in range(1, 9)),
                        n_snr2=tuple(float(f"{2 ** (k / 3):.3g}") for k in range(16)), seed=tuple(range(12)),
                        steps=1000)),
    },
)


@experiment.shared()
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that network and rivals train."""
    return problem(s, device)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train one model and record both stages."""
    training = drawn(s, device)
    chosen = rival(training, s.model)
    rule = GradientDescent(step_size(s, training.gram.w_w) if s.model != "frozen" else FROZEN_STEP / s.m)
    return fit(chosen, rule, s.steps, quantities(chosen, s.points), AXES, log_steps(s.steps, 20)).history


run = experiment.run


def problem(setting: Setting, device: str = "cpu") -> GramTraining:
    """The training problems of all (flip_prob, d, seed, n_snr2), in that order of ensemble axes."""
    drawn = draw_training(setting.n, setting.m, setting.d, n_snr2=setting.n_snr2, flip_prob=setting.flip_prob,
                          start=setting.start, seed=setting.seed)
    return drawn.to(devices.device(device), torch.float32)


def step_size(setting: Setting, like: Tensor) -> Tensor:
    """One step size a dimension, shape (flip_prob, d, 1, 1): constant in units of the time that memorising takes."""
    d = torch.tensor(setting.d, dtype=torch.float64)
    return (setting.lr * setting.n * setting.m / d)[:, None, None].expand(len(setting.flip_prob), -1, -1, -1).to(like)


def quantities(training: GramTraining | FrozenGramTraining, points: int = 128) -> list[Quantity]:
    """What is recorded while training."""
    flipped = training.y != training.observed
    groups = {"clean": ~flipped, "flipped": flipped}

    def fitted(params, group):
        return mean((training.predict(params) * training.observed > 0).to(training.y), group)

    def own_noise(params, group):
        return mean(spoken(training, params)[1], group)

    def error(params, test):
        return measures.test_error(test, params, points)

    rows = [
        Quantity(f"fitted_{name}", lambda params, group=group: fitted(params, group), (),
                 f"{name} samples fitted", "fraction") for name, group in groups.items()
    ] + [
        Quantity(f"noise_{name}", lambda params, group=group: own_noise(params, group), (),
                 f"said about the noise of {name} samples, N") for name, group in groups.items()
    ]
    return [
        *rows,
        Quantity("signal", lambda params: spoken(training, params)[0], (), "said about the signal, S"),
        Quantity("test_recycled", lambda params: error(params, RecycledTest(training)), (),
                 "test error, training noise", "fraction"),
        Quantity("test_fresh", lambda params: error(params, training), (), "test error, fresh noise", "fraction"),
        Quantity("train_loss", training.train_loss, (), "training loss", "nats"),
    ]


def limit(setting: Setting, model: str = "network") -> xr.Dataset:
    """The same curves in the limit of orthogonal noise, without a network; dimensions (flip_prob, n_snr2, step)."""
    strength, speed, filters = LIMITS[model]
    n_snr2 = strength * torch.tensor(setting.n_snr2, dtype=torch.float64)
    flip_prob = torch.tensor(setting.flip_prob, dtype=torch.float64)[:, None]
    n_snr2 = n_snr2.expand(len(flip_prob), -1)
    groups = OrthogonalNoise(n_snr2, flip_prob, None if filters is None else filters * setting.m)
    record = [
        Quantity("fitted_flipped", groups.fitted_flipped, (), "flipped samples fitted", "fraction"),
        Quantity("test_recycled", groups.recycled_error, (), "test error, training noise", "fraction"),
        Quantity("signal", lambda params: params["signal"], (), "said about the signal, S"),
        *(Quantity(f"noise_{name}", lambda params, name=name: params[name] @ groups.weight, (),
                   f"said about the noise of {name} samples, N") for name in ("clean", "flipped")),
        Quantity("train_loss", groups.train_loss, (), "training loss", "nats"),
    ]
    rule, axes = GradientDescent(setting.lr * speed), ("flip_prob", "n_snr2")
    history = fit(groups, rule, setting.steps, record, axes, log_steps(setting.steps, 20)).history
    return history.assign_coords(setting.coordinates(*axes))


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: how it ends, seed by seed, and both errors and the fit of flipped samples averaged over seeds."""
    alone = dataset.squeeze("model", drop=True)
    with xr.set_options(keep_attrs=True):
        curves = alone[["test_recycled", "test_fresh", "fitted_flipped"]].mean("seed").astype("float32")
        last = alone[["test_recycled", "test_fresh"]].isel(step=-1, drop=True).astype("float32")
    return curves.assign({f"{name}_last": last[name] for name in last})
