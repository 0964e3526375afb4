r"""The race between signal and noise in two-layer ReLU^q CNNs, q > 2, without label noise.

Claim (Cao et al. 2022, Theorems 4.3 and 4.4): with n SNR^q large the network learns the signal and ignores the noise,
with n SNR^q small it memorises the noise and ignores the signal; the training loss vanishes in both cases.

Lengths are measured so that what decides can be held fixed when d changes: the axis `snr` is
:math:`|\mu|/(\sigma_\xi\sqrt d)`, and `start` is :math:`\sigma_0\sigma_\xi\sqrt d`, the size of what a fresh filter
makes of a noise patch. Time is :math:`\eta\sigma_\xi^2 d\,t/m`, the same for every step size and dimension.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import alternating_labels, noise_preactivations
from flbook.domains import Count, Natural, Positive, Range
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.relu_power_phase import blow_up, exchange_law, race
from flbook.models.activations import ReLUPower
from flbook.rivals import RIVALS, Rival, rival
from flbook.runs import Experiment, Grid, axis, labelled, lattice
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params, Problem

TIME = {"long_name": "learning time η σ_ξ² d t / m", "units": "1"}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    model: tuple[Literal[Rival, "forecast"], ...] = axis(["network"], "model")  # a forecast is its closed form
    q: tuple[Annotated[float, Range(1)], ...] = axis([3.0], "power q of the activation")  # 1 is ReLU
    n: tuple[Count, ...] = axis([20], "samples n")
    d: tuple[Count, ...] = axis([4000, 16000, 64000], "patch dimension d")
    snr: tuple[Positive, ...] = axis(lattice(0.2, 0.8, 11), "SNR = |μ|/(σ_ξ √d)")
    seed: tuple[Natural, ...] = axis(range(24), "seed")
    m: Count = 10  # filters a sign
    start: Positive = 0.1  # sigma_0 sigma_xi sqrt d: a fresh filter's response to noise
    lr: Positive = 0.05  # step size, in units of nm/(sigma_xi^2 d)
    steps: Natural = 600
    points: Count = 512  # fresh noise patches to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse forecasts without a finite end, and cells in which vectors are too short."""
        slowest = min(self.q)
        if "forecast" in self.model and not slowest > 2:
            raise ValueError(f"q must be above 2 for a forecast, since slower growth has no finite end; got {slowest}")
        for n, d in product(self.n, self.d):
            check_room(n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=1, loops=("q", "n", "model"), left=("d", "seed", "snr"), chunk={"q": 1, "n": 1, "d": 3},
    stored="longer", missing=("train_error", "train_loss"),
    gives={
        "test_error": ("test error", "fraction"),
        "test_loss": ("test loss", "nats"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
    },
    presets={
        "tiny": ("Either side of the boundary in a blink, every model", dict(
            model=("network", *RIVALS, "forecast"), n=(10,), d=(500, 2000), snr=(0.1, 1.2), seed=(0, 1, 2), steps=10,
            points=64)),
        "book": ("The boundary against the dimension, at q = 3, and its forecast", dict(model=("network", "forecast"))),
        "relu": ("The same data and dimensions with ReLU, q = 1, which has to start far smaller and may step further",
                 dict(q=(1.0,), snr=lattice(0.006, 0.4, 12), start=1e-5, lr=1.0, steps=400)),
        "rivals": ("One dimension, from far below the network's boundary to above it, beside what learns no feature",
                   dict(model=("network", *RIVALS), d=(16000,), snr=lattice(0.02, 1.0, 13), seed=tuple(range(10)),
                        steps=400)),
        "lazy": ("The boundary of the lazy network against the dimension", dict(
            model=("lazy",), snr=lattice(0.12, 0.5, 8), seed=tuple(range(12)), steps=400)),
        "clocks": ("Two regimes and several sample sizes, in steps small enough to time a blow-up", dict(
            n=(10, 20, 40), snr=(0.05, 0.9, 1.2, 1.6), seed=tuple(range(16)), lr=0.004, steps=1500,
            d=(1000000,))),  # costs nothing, and memorised vectors do not meet there
        "longer": ("Two powers, four sample sizes, four dimensions, and every forecast", dict(
            model=("network", "forecast"), q=(3.0, 4.0), n=(10, 20, 40, 80), d=(4000, 16000, 64000, 256000),
            snr=lattice(0.16, 1.0, 13), steps=2000)),
    },
)


@experiment.shared("q", "n")
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that network and rivals train."""
    return problem(s, s.q, s.n, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model to the end, or forecast the network's; a forecast has no training error or loss."""
    if s.model == "forecast":
        chosen = exact(s, s.q, s.n).to(devices.device(device))
        found = tested(chosen, race.forecast(chosen), s.points)
        return found | dict.fromkeys(("train_error", "train_loss"), torch.full_like(found["test_error"], torch.nan))
    training = drawn(s, device)
    chosen = rival(training, s.model)
    params = fit(chosen, GradientDescent(step_size(s, s.n, training.gram.w_w, s.model, s.q)), s.steps).params
    return tested(chosen, params, s.points) | {
        "train_error": measures.train_error(chosen, params), "train_loss": chosen.train_loss(params)}


run = experiment.run


def tested(chosen: Problem, params: Params, points: int) -> dict[str, torch.Tensor]:
    """What fresh samples say, in float32: a forecast is made in float64."""
    return {"test_error": measures.test_error(chosen, params, points).float(),
            "test_loss": measures.test_loss(chosen, params, points).float()}


def problem(setting: Setting, q: float, n: int, device: str = "cpu") -> GramTraining:
    """The training problems of all (d, seed, snr), in that order of ensemble axes, in float32."""
    return exact(setting, q, n).to(devices.device(device), torch.float32)


def exact(setting: Setting, q: float, n: int) -> GramTraining:
    """The same in float64, for closed forms."""
    gram = draw_gram(n, 2 * setting.m, setting.d, sigma_0=1.0, orthogonal=True, seed=setting.seed)
    root = torch.tensor(setting.d, dtype=torch.float64).sqrt()[:, None]
    snr = torch.tensor(setting.snr, dtype=torch.float64)
    gram = gram.with_filters(setting.start / root).with_signals(snr * root[..., None])
    y = alternating_labels(n)
    law = partial(noise_preactivations, sigma_xi=1.0, orthogonal=True)
    return GramTraining(gram, y, y, scale=1 / setting.m, activation=ReLUPower(q), law=law)


def step_size(setting: Setting, n: int, like: torch.Tensor, model: str = "network", q: float = 1.0) -> torch.Tensor:
    """One step size a dimension, shape (d, 1, 1).

    The linear model and the frozen one feel no power and step by the unit. The lazy one is divided by the square of its
    filters' slopes, (q start^(q-1))^2, because its features never grow.
    """
    unit = n * setting.m / torch.tensor(setting.d, dtype=torch.float64)
    factor = {"network": setting.lr, "linear": 1.0, "lazy": (q * setting.start ** (q - 1)) ** -2, "frozen": 1.0}
    return (factor[model] * unit)[:, None, None].to(like)


@experiment.also
def clocks(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """When signal and noise reach 1, measured and in closed form, over (n, seed, snr) at the first q and d.

    signal: mean, over the classes whose signal is well ahead, of the time at which a class's fastest filter has
    j<w, mu> = 1; ahead is a class whose closed form blows up in half the time in which its samples are fitted. noise:
    median over the samples of the time at which a sample's best filter has <w, xi> = 1. NaN where that never happens.
    """
    one, q = setting.thinned(d=setting.d[:1]), setting.q[0]
    rows = [_clock(one, q, n, device) for n in setting.n]
    dims, names = ("n", "seed", "snr"), ("signal", "noise", "signal_theory", "noise_theory")
    return labelled({name: (dims, column, f"{name.replace('_', ' ')}: time")
                     for name, column in zip(names, zip(*rows, strict=True), strict=True)}, setting.coordinates(*dims))


def _clock(setting: Setting, q: float, n: int, device: str) -> list[np.ndarray]:
    """One sample size: measured signal and noise, then both closed forms, each (seed, snr)."""
    unit = setting.lr * n  # learning time of a step
    training = exact(setting, q, n).to(devices.device(device))
    scale = setting.d[0] / setting.m  # from η t to learning time
    own = race.blow_up_times(training)
    clocks = race.class_clocks(training, own[1])[0].cpu().numpy() * scale
    times = [time[0].cpu().numpy() * scale for time in own]
    slowest = np.median(times[1], -1).max()  # a draw may start far behind: train until its median sample has blown up
    setting = setting.thinned(steps=max(setting.steps, math.ceil(1.2 * slowest / unit)))
    history = _watched(setting, q, n, device)
    u = history.u.values.reshape(*history.u.shape[:-1], 2, setting.m).max(-1)
    measured = [_reached(history.step.values, values) * unit for values in (u, history.z.values)]
    noise = np.median(np.nan_to_num(measured[1], nan=np.inf), -1)
    noise[np.isinf(noise)] = np.nan
    a, b = (rate.cpu().numpy()[0] / scale for rate in race.rates(training, q))
    rest = [blow_up.blow_up_time(1.0, a[..., None], q), blow_up.blow_up_time(1.0, b, q)]
    first = times[0].reshape(*times[0].shape[:-1], 2, setting.m).min(-1)
    signal = [_mean_of(time, first < clocks / 2) for time in (measured[0], first - rest[0])]
    return [signal[0], noise, signal[1], np.median(times[1] - rest[1], -1)]


def _mean_of(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Mean over the chosen along the last axis, NaN where none is."""
    with np.errstate(invalid="ignore"):
        return np.where(chosen, values, 0.0).sum(-1) / chosen.sum(-1)


def _watched(setting: Setting, q: float, n: int, device: str) -> xr.Dataset:
    """At the first d, every contestant's position over time, (step, seed, snr, filter or sample)."""
    training = exact(setting, q, n).to(devices.device(device))
    record = [Quantity("u", lambda p: race.positions(training, p)[0], ("filter",), "signal j⟨w, μ⟩ of a filter"),
              Quantity("z", lambda p: race.positions(training, p)[1], ("sample",), "noise ⟨w, ξ⟩ of a sample")]
    rule = GradientDescent(step_size(setting, n, training.gram.w_w))
    axes = ("d", "seed", "snr")
    return fit(training, rule, setting.steps, record, axes, log_steps(setting.steps, 400)).history.isel(d=0)


@experiment.also
def paths(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Every contestant over time at the first q, n and d: u (step, seed, snr, filter), z (step, seed, snr, sample)."""
    history = _watched(setting.thinned(d=setting.d[:1]), setting.q[0], setting.n[0], device)
    time = ("step", setting.lr * setting.n[0] * history.step.values, TIME)
    return history.assign_coords(setting.coordinates("seed", "snr") | {"time": time})


@experiment.also
def square(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Test errors under ReLU^2 at the first d, of networks and as the exchange law tells, over (n, seed, snr)."""
    one = setting.thinned(q=(2.0,), d=setting.d[:1], model=("network",))
    trained = experiment.measure(one, device).test_error.squeeze(("model", "q", "d"), drop=True)
    margin = exchange_law.margin_after(one.steps, one.lr)
    told = [tested(told, exchange_law.square_forecast(told, margin), one.points)["test_error"][0].cpu().numpy()
            for told in (exact(one, 2.0, n).to(devices.device(device)) for n in one.n)]
    dims = ("n", "seed", "snr")
    return labelled({"network": (dims, trained.transpose(*dims).values, "test error [fraction]"),
                     "forecast": (dims, np.stack(told), "forecast of the test error [fraction]")},
                    one.coordinates(*dims))


def responses(run: xr.Dataset, q: float) -> xr.Dataset:
    """Of `paths`, the two numbers per label that the exchange law ties; NaN where a start is not above 0.

    signal: the largest u of the label's filters. noise: the mean, as the law takes it, of its samples' z.
    """
    m, n = run.sizes["filter"] // 2, run.sizes["sample"]
    by_label = [(run.u.isel(filter=slice(k * m, k * m + m)).max("filter"), run.z.isel(sample=slice(k, n, 2)))
                for k in (0, 1)]
    noise = [xr.apply_ufunc(exchange_law.mean_response, z, q, input_core_dims=[["sample"], []]) for _, z in by_label]
    signal = xr.concat([u for u, _ in by_label], "label")
    return xr.Dataset({"signal": signal.where(signal.isel(step=0) > 0), "noise": xr.concat(noise, "label")})


def _reached(steps: np.ndarray, values: np.ndarray, level: float = 1.0) -> np.ndarray:
    """The first step, on straight lines between recorded ones, at which `values` (step, ...) reach a level, or NaN."""
    above = values >= level
    k = np.clip(above.argmax(0), 1, None)
    before, after = (np.take_along_axis(values, (k - i)[None], 0)[0] for i in (1, 0))
    part = np.clip((level - before) / np.where(after == before, 1, after - before), 0, 1)
    return np.where(above.any(0), steps[k - 1] + part * (steps[k] - steps[k - 1]), np.nan)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of the full grid, what the package keeps: test errors seed by seed as 16-bit numbers, the rest as means."""
    with xr.set_options(keep_attrs=True):
        means = dataset.astype("float32")
        for name in ("test_loss", "train_error", "train_loss"):
            means[name] = means[name].mean("seed")
    means["test_error"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return means
