r"""The race between signal and noise in two-layer ReLU^q CNNs, q > 2, without label noise.

Claim (Cao et al. 2022, Theorems 4.3 and 4.4): with n SNR^q large the network learns the signal and ignores the noise,
with n SNR^q small it memorises the noise and ignores the signal; the training loss vanishes in both cases.

Lengths are measured so that what decides can be held fixed when d changes: the axis `snr` is
:math:`|\mu|/(\sigma_\xi\sqrt d)`, and `start` is :math:`\sigma_0\sigma_\xi\sqrt d`, the size of what a fresh filter
makes of a noise patch. Time is :math:`\eta\sigma_\xi^2 d\,t/m`, the same for every step size and dimension.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import torch
import xarray as xr

from flbook import devices, measures, rivals
from flbook.data.signal_noise import flipped_labels, noise_preactivations
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.relu_power_phase import blow_up, race
from flbook.models.activations import relu_power
from flbook.runs.settings import among, lattice
from flbook.runs.sweep import sweep
from flbook.shapes import Quantity
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent

VERSION = 1

MODELS = {"network": lambda problem: problem, "linear": rivals.linear, "lazy": rivals.lazy, "frozen": rivals.frozen}


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    model: tuple[str, ...] = ("network",)  # its rivals, linear, lazy, frozen; and forecast, its closed form
    q: tuple[float, ...] = (3.0,)  # power of the activation; 1 is ReLU
    n: tuple[int, ...] = (20,)  # training samples
    d: tuple[int, ...] = (4000, 16000, 64000)  # patch dimension
    snr: tuple[float, ...] = lattice(0.2, 0.8, 11)  # |mu| / (sigma_xi sqrt d)
    seed: tuple[int, ...] = tuple(range(24))
    m: int = 10  # filters a sign
    start: float = 0.1  # sigma_0 sigma_xi sqrt d: a fresh filter's response to noise
    lr: float = 0.05  # step size, in units of nm/(sigma_xi^2 d)
    steps: int = 600
    points: int = 512  # fresh noise patches to measure the test error on, each under both labels

    @classmethod
    def book(cls) -> "Setting":
        """The boundary against the dimension, at q = 3, and its forecast."""
        return cls(model=("network", "forecast"))

    @classmethod
    def relu(cls) -> "Setting":
        """The same data and dimensions with ReLU, q = 1, which has to start far smaller and may step further."""
        return cls(q=(1.0,), snr=lattice(0.006, 0.4, 12), start=1e-5, lr=1.0, steps=400)

    @classmethod
    def rivals(cls) -> "Setting":
        """One dimension, from far below the network's boundary to above it, with what learns no feature beside it."""
        return cls(model=tuple(MODELS), d=(16000,), snr=lattice(0.02, 1.0, 13), seed=tuple(range(10)), steps=400)

    @classmethod
    def lazy(cls) -> "Setting":
        """The boundary of the lazy network against the dimension."""
        return cls(model=("lazy",), snr=lattice(0.12, 0.5, 8), seed=tuple(range(12)), steps=400)

    @classmethod
    def clocks(cls) -> "Setting":
        """Two regimes and several sample sizes in steps small enough to time a blow-up, in a dimension that costs
        nothing: memorised vectors do not meet."""
        return cls(n=(10, 20, 40), d=(1000000,), snr=(0.05, 0.9, 1.2, 1.6), seed=tuple(range(16)), lr=0.004, steps=1500)

    @classmethod
    def paper(cls) -> "Setting":
        """Two powers, four sample sizes, four dimensions, and every forecast."""
        return cls(model=("network", "forecast"), q=(3.0, 4.0), n=(10, 20, 40, 80), d=(4000, 16000, 64000, 256000),
                   snr=lattice(0.16, 1.0, 13), steps=2000)

    def thinned(self, **axes: tuple) -> "Setting":
        """The same setting on fewer values of some axes."""
        return replace(self, **axes)


def problem(setting: Setting, q: float, n: int, device: str = "cpu") -> GramTraining:
    """The training problems of all (d, seed, snr), in that order of ensemble axes, in float32."""
    return exact(setting, q, n).to(devices.device(device), torch.float32)


def exact(setting: Setting, q: float, n: int) -> GramTraining:
    """The same in float64, for closed forms."""
    gram = draw_gram(n, 2 * setting.m, setting.d, sigma_0=1.0, orthogonal=True, seed=setting.seed)
    root = torch.tensor(setting.d, dtype=torch.float64).sqrt()[:, None, None]
    size = setting.start / root  # sigma_0, one a dimension
    gram = gram._replace(
        w_mu=size * gram.w_mu, w_xi=size[..., None] * gram.w_xi, w_w=size[..., None] ** 2 * gram.w_w
    ).with_signals(torch.tensor(setting.snr, dtype=torch.float64) * root)
    y, _ = flipped_labels(n, 0.0, setting.seed[0])
    law = partial(noise_preactivations, sigma_xi=1.0, orthogonal=True)
    return GramTraining(gram, y, y, scale=1 / setting.m, activation=relu_power(q), law=law)


def step_size(setting: Setting, n: int, like: torch.Tensor, model: str = "network", q: float = 1.0) -> torch.Tensor:
    """One step size a dimension, shape (d, 1, 1).

    The linear model and the frozen one feel no power and step by the unit. The lazy one is divided by the square of its
    filters' slopes, (q start^(q-1))^2, because its features never grow.
    """
    unit = n * setting.m / torch.tensor(setting.d, dtype=torch.float64)
    factor = {"network": setting.lr, "linear": 1.0, "lazy": (q * setting.start ** (q - 1)) ** -2, "frozen": 1.0}
    return (factor[model] * unit)[:, None, None].to(like)


def coordinates(setting: Setting) -> dict[str, tuple]:
    """The axes with their names and units."""
    labels = {"model": "model", "q": "power q of the activation", "n": "samples n", "d": "patch dimension d",
              "seed": "seed", "snr": "SNR = |μ|/(σ_ξ √d)"}
    return {name: (name, list(getattr(setting, name)), {"long_name": label, "units": "1"})
            for name, label in labels.items()}


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (q, n, model, d, seed, snr). A forecast has no training error or loss."""
    check(setting)
    cells = [_cell(setting, q, n, name, device) for q, n, name in product(setting.q, setting.n, setting.model)]
    dims = ("q", "n", "model", "d", "seed", "snr")
    shape = [len(getattr(setting, name)) for name in dims]
    names = {"test_error": ("test error", "fraction"), "test_loss": ("test loss", "nats"),
             "train_error": ("training error", "fraction"), "train_loss": ("training loss", "nats")}
    return xr.Dataset(
        {name: (dims, torch.stack(column).reshape(shape).cpu().numpy(), {"long_name": words, "units": units})
         for (name, (words, units)), column in zip(names.items(), zip(*cells, strict=True), strict=True)},
        coords=coordinates(setting),
    )


def _cell(setting: Setting, q: float, n: int, name: str, device: str) -> tuple[torch.Tensor, ...]:
    """Test error, test loss, training error and training loss of one model, each of shape (d, seed, snr)."""
    if name == "forecast":
        network = exact(setting, q, n).to(devices.device(device))
        params, rival = race.forecast(network), network
    else:
        network = problem(setting, q, n, device)
        rival = MODELS[name](network)
        rule = GradientDescent(step_size(setting, n, network.gram.w_w, name, q))
        params = fit(rival, rule, setting.steps).params
    test = [of(rival, params, setting.points).float() for of in (measures.test_error, measures.test_loss)]
    if name == "forecast":
        return *test, *[torch.full_like(test[0], torch.nan)] * 2
    return *test, measures.train_error(rival, params), rival.train_loss(params)


def growth(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Signal learned and noise memorised over time, first q and n: largest gamma and rho; (step, d, seed, snr)."""
    check(setting)
    q, n = setting.q[0], setting.n[0]
    network = problem(setting, q, n, device)
    rule = GradientDescent(step_size(setting, n, network.gram.w_w))
    every = log_steps(setting.steps, 150)
    axes = ("d", "seed", "snr")
    history = fit(network, rule, setting.steps, measures.coefficients(network), axes, every).history
    history = history.assign_coords({name: coordinates(setting)[name] for name in axes})
    time = {"long_name": "learning time η σ_ξ² d t / m", "units": "1"}
    return history.assign_coords(time=("step", setting.lr * n * history.step.values, time))


def clocks(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """When signal and noise reach 1, measured and in closed form, over (n, seed, snr) at the first q and d.

    signal: mean over the two classes of the time at which a class's fastest filter has j<w, mu> = 1; noise: median over
    the samples of the time at which a sample's best filter has <w, xi> = 1. NaN where that never happens.
    """
    check(setting)
    setting, q = replace(setting, d=setting.d[:1]), setting.q[0]
    rows = [_clock(setting, q, n, device) for n in setting.n]
    time = {"long_name": "learning time η σ_ξ² d t / m", "units": "1"}
    return xr.Dataset(
        {name: (("n", "seed", "snr"), np.stack(column), time | {"long_name": f"{name.replace('_', ' ')}: time"})
         for name, column in zip(("signal", "noise", "signal_theory", "noise_theory"), zip(*rows, strict=True),
                                 strict=True)},
        coords={name: coordinates(setting)[name] for name in ("n", "seed", "snr")},
    )


def _clock(setting: Setting, q: float, n: int, device: str) -> list[np.ndarray]:
    """One sample size: measured signal and noise, then both closed forms, each (seed, snr)."""
    unit = setting.lr * n  # learning time of a step
    network = exact(setting, q, n).to(devices.device(device))
    scale = setting.d[0] / setting.m  # from η t to learning time
    times = [time[0].cpu().numpy() * scale for time in race.blow_up_times(network)]
    slowest = np.median(times[1], -1).max()  # a draw may start far behind: train until its median sample has blown up
    setting = replace(setting, steps=max(setting.steps, math.ceil(1.2 * slowest / unit)))
    history = _watched(setting, q, n, device)[1]
    u = history.u.values.reshape(*history.u.shape[:-1], 2, setting.m).max(-1)
    measured = [_reached(history.step.values, values) * unit for values in (u, history.z.values)]
    noise = np.median(np.nan_to_num(measured[1], nan=np.inf), -1)
    noise[np.isinf(noise)] = np.nan
    a, b = (rate.cpu().numpy()[0] / scale for rate in race.rates(network, q))
    rest = [blow_up.blow_up_time(1.0, a[..., None], q), blow_up.blow_up_time(1.0, b, q)]
    signal = (times[0].reshape(*times[0].shape[:-1], 2, setting.m).min(-1) - rest[0]).mean(-1)
    return [measured[0].mean(-1), noise, signal, np.median(times[1] - rest[1], -1)]


def _watched(setting: Setting, q: float, n: int, device: str) -> tuple[GramTraining, xr.Dataset]:
    """A problem at the first d, and every contestant's position over time, (step, seed, snr, filter or sample)."""
    network = exact(setting, q, n).to(devices.device(device))
    record = [Quantity("u", lambda p: race.positions(network, p)[0], ("filter",), "signal j⟨w, μ⟩ of a filter"),
              Quantity("z", lambda p: race.positions(network, p)[1], ("sample",), "noise ⟨w, ξ⟩ of a sample")]
    rule = GradientDescent(step_size(setting, n, network.gram.w_w))
    axes = ("d", "seed", "snr")
    return network, fit(network, rule, setting.steps, record, axes, log_steps(setting.steps, 400)).history.isel(d=0)


def paths(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Every contestant over time at the first q, n and d: u (step, seed, snr, filter), z (step, seed, snr, sample)."""
    check(setting)
    history = _watched(replace(setting, d=setting.d[:1]), setting.q[0], setting.n[0], device)[1]
    history = history.assign_coords({name: coordinates(setting)[name] for name in ("seed", "snr")})
    time = {"long_name": "learning time η σ_ξ² d t / m", "units": "1"}
    return history.assign_coords(time=("step", setting.lr * setting.n[0] * history.step.values, time))


def _reached(steps: np.ndarray, values: np.ndarray, level: float = 1.0) -> np.ndarray:
    """The first step, on straight lines between recorded ones, at which `values` (step, ...) reach a level, or NaN."""
    above = values >= level
    k = np.clip(above.argmax(0), 1, None)
    before, after = (np.take_along_axis(values, (k - i)[None], 0)[0] for i in (1, 0))
    part = np.clip((level - before) / np.where(after == before, 1, after - before), 0, 1)
    return np.where(above.any(0), steps[k - 1] + part * (steps[k] - steps[k - 1]), np.nan)


def check(setting: Setting) -> None:
    """Refuse cells that the model does not have, before any other cell is computed."""
    among("model", setting.model, (*MODELS, "forecast"))
    for q, name in product(setting.q, setting.model):
        if name == "forecast" and not q > 2:
            raise ValueError(f"q must be above 2 for a forecast, since slower growth has no finite end; got {q}")
    for n, d in product(setting.n, setting.d):
        check_room(n, 2 * setting.m, d)
    if not min(setting.snr) > 0:
        raise ValueError(f"snr must be positive, so that noise can be orthogonal to the signal; got {min(setting.snr)}")


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    devices.device(device)
    check(setting)
    cell_bytes = 4 * 8 * 2 * setting.m * max(*setting.n, 2 * setting.points)
    return sweep(measure, setting, device=device, split=("q", "n", "d", "model"), cell_bytes=cell_bytes, **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """Of the full grid, what the package keeps: test errors seed by seed as 16-bit numbers, the rest as means."""
    with xr.set_options(keep_attrs=True):
        kept = dataset.astype("float32")
        for name in ("test_loss", "train_error", "train_loss"):
            kept[name] = kept[name].mean("seed")
    kept["test_error"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return kept
