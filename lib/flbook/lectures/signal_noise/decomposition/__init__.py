r"""The signal-noise decomposition: what gamma and rho do while a network trains, at any dimension.

Claim (Cao et al. 2022, Definition 5.1, and the recursion that follows it): the filters stay in
:math:`w_{j,r}(0) + \mathrm{span}\{\mu, \xi_1, \dots, \xi_n\}`, and their coefficients obey a recursion in which d
appears only through inner products. Two consequences are measured here. At the start the signal coefficient of a ReLU
filter grows :math:`(1 - 2p)\, n\,\mathrm{SNR}^2 / 2` times as fast as the noise coefficients of the samples that it
sees. Later, without flipped labels, the ratio stays; with them it falls.

The sweep trains from drawn Gram matrices, so a dimension of 10^7 costs what 10^3 costs; how long both take, here and in
d dimensions, is stored with the larger result.
"""

import math
import time
from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import devices, measures
from flbook.data.signal_noise import Sample, SignalNoise
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics import weights
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_training
from flbook.models.cnn import TwoLayerCNN
from flbook.rivals import rival
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity, signs
from flbook.training.fit import fit, log_steps
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: two dimensions, a factor of 1000 apart, with and without flipped labels.
    """

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network"], "model")
    d: tuple[Count, ...] = axis([1_000, 1_000_000], "patch dimension d")
    flip_prob: tuple[FlipProbability, ...] = axis([0.0, 0.1], "flip probability p")  # exactly pn labels flipped
    n_snr2: tuple[Positive, ...] = axis([0.1, 0.3, 1.0, 3.0, 10.0], "n SNR²")  # sets |mu|
    seed: tuple[Natural, ...] = axis(range(32), "seed")
    n: Count = 40  # training samples
    m: Count = 10  # filters a sign
    start: NonNegative = 0.01  # sigma_0 sigma_xi sqrt(d): size of <w(0), xi>
    lr: Positive = 0.5  # step size, in units of nm/(sigma_xi^2 d): then an active rho grows by lr/2 in the first step
    steps: Count = 300

    def check(self) -> None:
        """Refuse cells in which vectors are too short."""
        for d in self.d:
            check_room(self.n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=1, loops=("model",), stored="longer",
    chunk={"d": 1, "flip_prob": 1, "seed": 25},  # arrays that stay in the processor's cache: half the time
    presets={
        "tiny": ("Every model, two dimensions far apart, in a blink", dict(
            model=("network", "linear", "lazy"), d=(300, 10**7), flip_prob=(0.0, 0.2), n_snr2=(0.5, 4.0),
            seed=(0, 1, 2), n=10, m=8, steps=12)),
        "rivals": ("One dimension, without flips, with the models whose features do not move beside the network", dict(
            model=("network", "linear", "lazy"), d=(10_000,), flip_prob=(0.0,), n_snr2=(0.3, 1.0, 3.0))),
        "longer": ("Five dimensions, three flip probabilities, nine signals, a hundred seeds, and more steps", dict(
            d=(1_000, 10_000, 100_000, 1_000_000, 10_000_000), flip_prob=(0.0, 0.1, 0.2),
            n_snr2=(0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0), seed=tuple(range(100)), steps=1000)),
    },
)


@experiment.shared()
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that every model trains."""
    return problem(s, device)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train one model and record gamma and rho; dimensions (d, flip_prob, n_snr2, seed, step)."""
    training = drawn(s, device)
    unit = torch.tensor(s.d, dtype=torch.float64).reciprocal()[:, None, None] * s.n * s.m
    rule = GradientDescent((s.lr * unit).expand(len(s.flip_prob), -1, -1, -1).to(training.observed))
    axes, chosen = ("flip_prob", "d", "seed", "n_snr2"), rival(training, s.model)
    return fit(chosen, rule, s.steps, quantities(chosen), axes, log_steps(s.steps, 30)).history


run = experiment.run


def problem(setting: Setting, device: str = "cpu") -> GramTraining:
    """The training problems of all (flip_prob, d, seed, n_snr2), in that order of ensemble axes."""
    drawn = draw_training(setting.n, setting.m, setting.d, n_snr2=setting.n_snr2, flip_prob=setting.flip_prob,
                          start=setting.start, seed=setting.seed)
    return drawn.to(devices.device(device))


def active(problem: GramTraining) -> Bool[Tensor, "*E k n"]:
    r"""Filters and samples with :math:`j = \tilde y_i` for which the filter is active on the noise before training."""
    own = signs(problem.gram.w_xi.shape[-2], problem.observed)[:, None] * problem.observed[..., None, :] > 0
    return own & (problem.slope(problem.patches(problem.start())["noise"], "noise") > 0)


def quantities(problem: GramTraining) -> list[Quantity]:
    """Mean signal coefficient, mean noise coefficient of active pairs, training loss and error."""
    pairs = active(problem)

    def gamma(params):
        return problem.signal_learned(params).mean((-2, -1))

    def rho(params):
        every = problem.noise_memorised(params).flatten(-3, -2)
        return (every * pairs).sum((-2, -1)) / pairs.sum((-2, -1))

    return [
        Quantity("gamma", gamma, (), "signal coefficient γ"),
        Quantity("rho", rho, (), "noise coefficient ρ"),
        Quantity("train_loss", problem.train_loss, (), "training loss", "nats"),
        Quantity("train_error", lambda params: measures.train_error(problem, params), (), "training error", "fraction"),
    ]


def ratio(dataset: xr.Dataset, step: int = 1) -> xr.DataArray:
    """Signal coefficient over noise coefficient at a step; -1 is the last."""
    at = dataset.isel(step=-1) if step == -1 else dataset.sel(step=step)
    name = {1: "first", -1: "last"}.get(step, str(step))
    return (at.gamma / at.rho).drop_vars("step").assign_attrs(long_name=f"γ/ρ, {name} step", units="1")


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: the two ratios seed by seed, the curves averaged over seeds; of the longer one also what d costs."""
    one = dataset.squeeze("model", drop=True)
    with xr.set_options(keep_attrs=True):
        mean = one[["gamma", "rho"]].mean("seed").astype("float32")
        error = one.train_error.isel(step=-1).mean("seed").drop_vars("step").astype("float32")
        mean = mean.assign(ratio_first=ratio(one, 1).astype("float32"), ratio_last=ratio(one, -1).astype("float32"),
                           train_error=error)
    return mean.assign_attrs(timed() if dataset.attrs.get("scale") == "longer" else {})


def decompose(
    move: Float[Tensor, "*E 2 m d"], sample: Sample
) -> tuple[Float[Tensor, "*E 2 m"], Float[Tensor, "*E 2 m n"]]:
    r"""Coefficients c of a move: what of it lies along :math:`\mu`, and along each :math:`\xi_i`.

    Nothing of training is used. They are unique, since :math:`\mu, \xi_1, \dots, \xi_n` are independent when d > n.
    """
    return weights.decompose(move, sample.mu, sample.xi)[:2]


def outside(move: Float[Tensor, "*E 2 m d"], sample: Sample) -> Float[Tensor, "*E 2 m"]:
    r"""Share of each filter's squared move that no :math:`\mu` and no :math:`\xi_i` explains."""
    return weights.decompose(move, sample.mu, sample.xi)[2].square().sum(-1) / move.square().sum(-1)


def train_drawn(d: int, setting: Setting) -> None:
    """Draw Gram matrices for one network and train it in coefficients."""
    one = setting.thinned(d=(d,), flip_prob=(0.1,), n_snr2=(1.0,), seed=(0,))
    fit(problem(one), GradientDescent(setting.lr * setting.n * setting.m / d), setting.steps)


def train_direct(d: int, setting: Setting) -> None:
    """Draw d-dimensional data and filters for the same network and train it by autograd."""
    sample = SignalNoise(n=setting.n, d=d, mu_norm=math.sqrt(d / setting.n), flip_prob=0.1).draw(0)
    cnn = TwoLayerCNN(d, setting.m, sigma_0=setting.start / math.sqrt(d), dtype=torch.float64)
    rule = GradientDescent(setting.lr * setting.n * setting.m / d)
    fit(Training(cnn, sample.x, sample.observed), rule, setting.steps)


def timed(
    setting: Setting | None = None,
    repeats: int = 5,
    dimensions: tuple[int, ...] = (10**3, 10**4, 10**5, 10**6, 10**7),
    direct: tuple[int, ...] = (10**3, 10**4, 10**5),
) -> dict[str, list[float] | int]:
    """Seconds to set up and train one network, both ways, in turn: the minimum of the repeats, one thread."""
    setting = setting or Setting(steps=100)
    jobs = [(train_drawn, d) for d in dimensions] + [(train_direct, d) for d in direct]
    threads, taken = torch.get_num_threads(), {job: [] for job in jobs}
    torch.set_num_threads(1)
    for _ in range(repeats + 1):  # the first round warms up
        for way, d in jobs:
            begin = time.perf_counter()
            way(d, setting)
            taken[way, d].append(time.perf_counter() - begin)
    torch.set_num_threads(threads)
    best = {job: min(times[1:]) for job, times in taken.items()}
    return {
        f"{way.__name__.removeprefix('train_')}_{what}": [value for (each, _), value in values.items() if each is way]
        for way in (train_drawn, train_direct)
        for what, values in (("d", {job: float(job[1]) for job in jobs}), ("seconds", best))
    } | {"timed_steps": setting.steps}


def clock(stored: xr.Dataset, way: str) -> xr.DataArray:
    """Seconds over d that a stored result took to train one network, "drawn" in coefficients or "direct"."""
    d = ("d", stored.attrs[f"{way}_d"], {"long_name": "patch dimension d", "units": "1"})
    about = {"long_name": f"set-up and {stored.attrs['timed_steps']} steps", "units": "s"}
    return xr.DataArray(stored.attrs[f"{way}_seconds"], dims="d", coords={"d": d}, attrs=about)
