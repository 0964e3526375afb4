r"""The signal-noise decomposition: what gamma and rho do while a network trains, at any dimension.

Claim (Cao et al. 2022, Definition 5.1, and the recursion that follows it): the filters stay in
:math:`w_{j,r}(0) + \mathrm{span}\{\mu, \xi_1, \dots, \xi_n\}`, and their coefficients obey a recursion in which d
appears only through inner products. Measured here: at the first step the signal coefficient of a ReLU filter grows
:math:`(1 - 2p)\, n\,\mathrm{SNR}^2 / 2` times as fast as the noise coefficients of the samples that it sees. Later,
without flipped labels, the ratio stays; with them it falls, to where depends on the share of filters that are active on
a sample's noise, and that share is decided by the size of the start.

The sweep trains from drawn Gram matrices, so a dimension of 10^7 costs what 10^3 costs.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import devices, measures
from flbook.data.signal_noise import Sample
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics import weights
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_training
from flbook.rivals import rival
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity, signs
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: one dimension, a start far below and one far above the overlaps of noise vectors, with and without
    flipped labels.
    """

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network"], "model")
    start: tuple[NonNegative, ...] = axis([1e-5, 0.1], "size of the start σ_0 σ_ξ √d")  # of <w(0), xi>
    d: tuple[Count, ...] = axis([10_000_000], "patch dimension d")
    flip_prob: tuple[FlipProbability, ...] = axis([0.0, 0.1], "flip probability p")  # exactly pn labels flipped
    n_snr2: tuple[Positive, ...] = axis([0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "n SNR²")  # sets |mu|
    seed: tuple[Natural, ...] = axis(range(32), "seed")
    n: Count = 40  # training samples
    m: Count = 10  # filters a sign
    lr: Positive = 0.5  # step size, in units of nm/(sigma_xi^2 d): then an active rho grows by lr/2 in the first step
    steps: Count = 300

    def check(self) -> None:
        """Refuse cells in which vectors are too short."""
        for d in self.d:
            check_room(self.n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=2, loops=("model", "start"), stored="longer",
    chunk={"d": 1, "flip_prob": 1, "seed": 25},  # arrays that stay in the processor's cache: half the time
    presets={
        "tiny": ("Every model, two dimensions far apart, in a blink", dict(
            model=("network", "linear", "lazy"), start=(0.01, 0.1), d=(300, 10**7), flip_prob=(0.0, 0.2),
            n_snr2=(0.5, 4.0), seed=(0, 1, 2), n=10, m=8, steps=12)),
        "rivals": ("The models whose features do not move beside the network", dict(
            model=("network", "linear", "lazy"), start=(0.1,), n_snr2=(1.0, 10.0))),
        "longer": ("Three dimensions and nine starts, three flip probabilities, fifty seeds, and more steps", dict(
            start=(1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0), d=(1_000, 100_000, 10_000_000),
            flip_prob=(0.0, 0.1, 0.2), n_snr2=(1.0, 10.0), seed=tuple(range(50)), steps=1000)),
    },
)


@experiment.shared("start")
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that every model trains, over (flip_prob, d, seed, n_snr2)."""
    problem = draw_training(s.n, s.m, s.d, n_snr2=s.n_snr2, flip_prob=s.flip_prob, start=s.start, seed=s.seed)
    return problem.to(devices.device(device))


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train one model and record gamma and rho; dimensions (d, flip_prob, n_snr2, seed, step)."""
    training = drawn(s, device)
    unit = torch.tensor(s.d, dtype=torch.float64).reciprocal()[:, None, None] * s.n * s.m
    rule = GradientDescent((s.lr * unit).expand(len(s.flip_prob), -1, -1, -1).to(training.observed))
    axes, chosen = ("flip_prob", "d", "seed", "n_snr2"), rival(training, s.model)
    return fit(chosen, rule, s.steps, quantities(chosen), axes, log_steps(s.steps, 30)).history


run = experiment.run


def active(problem: GramTraining, params: Params) -> tuple[Bool[Tensor, "*#E k n"], Bool[Tensor, "*E k n"]]:
    r"""Filters and samples with :math:`j = \tilde y_i`, and those of them where the filter is active on the noise."""
    own = signs(problem.gram.w_xi.shape[-2], problem.observed)[:, None] * problem.observed[..., None, :] > 0
    return own, own & (problem.slope(problem.patches(params)["noise"], "noise") > 0)


def quantities(problem: GramTraining) -> list[Quantity]:
    """Mean signal coefficient, mean noise coefficient of initially active pairs, active share, training error."""
    pairs = active(problem, problem.start())[1]

    def gamma(params):
        return problem.signal_learned(params).mean((-2, -1))

    def rho(params):
        every = problem.noise_memorised(params).flatten(-3, -2)
        return (every * pairs).sum((-2, -1)) / pairs.sum((-2, -1))

    def share(params):
        own, seen = active(problem, params)
        return seen.double().sum((-2, -1)) / own.double().sum((-2, -1))

    return [
        Quantity("gamma", gamma, (), "signal coefficient γ"),
        Quantity("rho", rho, (), "noise coefficient ρ"),
        Quantity("share", share, (), "share s of a label's filters that are active on a sample", "fraction"),
        Quantity("train_error", lambda params: measures.train_error(problem, params), (), "training error", "fraction"),
    ]


def ratio(dataset: xr.Dataset, step: int = 1) -> xr.DataArray:
    """Signal coefficient over noise coefficient at a step; -1 is the last."""
    at = dataset.isel(step=-1) if step == -1 else dataset.sel(step=step)
    name = {1: "first", -1: "last"}.get(step, str(step))
    return (at.gamma / at.rho).drop_vars("step").assign_attrs(long_name=f"γ/ρ, {name} step", units="1")


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: ratios and shares at the first and last step seed by seed, the curves averaged over seeds."""
    one = dataset.squeeze("model", drop=True)
    with xr.set_options(keep_attrs=True):
        mean = one[["gamma", "rho"]].mean("seed").astype("float32")
        ends = {"first": one.sel(step=1, drop=True), "last": one.isel(step=-1, drop=True)}
        mean = mean.assign({f"share_{end}": at.share.astype("float32") for end, at in ends.items()})
        error = ends["last"].train_error.mean("seed").astype("float32")
        return mean.assign(ratio_first=ratio(one, 1).astype("float32"), ratio_last=ratio(one, -1).astype("float32"),
                           train_error=error)


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
