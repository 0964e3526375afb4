r"""Mean-field Langevin dynamics of tanh neurons with one weight each: N particles beside the density they approximate.

Claims: the objective falls at least like :math:`e^{-2\lambda\alpha t}` under a log-Sobolev inequality (Nitanda, Wu and
Suzuki 2022; Chizat 2022), and N particles stay within O(1/N) of the density for all times (Chen, Ren and Wang 2022;
Suzuki, Nitanda and Wu 2023).

Differs from the theorems: the density lives on a grid of cells, particles take Euler steps.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.mean_field_langevin.convergence import (
    bakry_emery,
    chaos_constant,
    holley_stroock,
    kramers,
)
from flbook.lectures.in_context_learning.mean_field_langevin.fokker_planck import GridFlow, kullback
from flbook.lectures.in_context_learning.mean_field_langevin.langevin import Langevin
from flbook.lectures.in_context_learning.mean_field_langevin.neurons import Neurons, tanh_unit
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one temperature, three widths, ten seeds."""

    lam: tuple[Positive, ...] = axis([0.1], "temperature λ")
    width: tuple[Count, ...] = axis([8, 32, 128], "neurons N")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    neurons: Count = 1024  # a seed's particles, in copies of the network
    n: Count = 20  # samples, equally spaced in [-2, 2]
    decay: Positive = 0.2  # lambda'
    mean: float = -2.5  # of the start
    spread: NonNegative = 0.5  # its standard deviation
    lr: Positive = 0.05  # Euler step of the particles
    dt: Positive = 0.01  # step of the density
    time: Positive = 40.0
    every: Positive = 1.0  # between recorded times
    cells: Count = 801  # on [-9, 9]

    def check(self) -> None:
        """Refuse networks wider than the particles that there are."""
        if self.neurons < max(self.width):
            raise ValueError(f"neurons must be at least the largest width = {max(self.width)}; got {self.neurons}")

    @property
    def times(self) -> np.ndarray:
        """The recorded times."""
        return np.arange(round(self.time / self.every) + 1) * self.every

    @property
    def clock(self) -> dict[str, tuple]:
        """The recorded times, as an axis of a Dataset."""
        return {"time": ("time", self.times, {"long_name": "time t", "units": "1"})}

    @property
    def inputs(self) -> np.ndarray:
        """The samples' inputs."""
        return np.linspace(-2.0, 2.0, self.n)

    @property
    def targets(self) -> np.ndarray:
        """A target that no average of tanh neurons makes exactly."""
        return 0.5 * np.tanh(3 * self.inputs) + 0.3 * np.sin(2 * self.inputs)


DIMS = ("lam", "width", "seed", "time")
experiment = Experiment(
    Setting, version=1, loops=("width",), stored="longer",
    gives={"deviation": ("N times the squared deviation", "1", DIMS)},
    beside={"time": (lambda s: s.times, "time t", "1")},
    presets={
        "tiny": ("Two temperatures and two widths for three units of time, on a coarse grid", dict(
            lam=(0.1, 0.3), width=(4, 16), seed=(0, 1), neurons=32, time=3.0, cells=201, dt=0.05)),
        "densities": ("Six temperatures, for the density alone", dict(
            lam=(0.05, 0.1, 0.2, 0.3, 0.5, 1.0), width=(8,), seed=(0, 1), time=20.0, every=0.25)),
        "longer": ("Three temperatures, seven widths, twenty seeds, Euler steps of 0.02", dict(
            lam=(0.05, 0.1, 0.3), width=(4, 8, 16, 32, 64, 128, 256), seed=tuple(range(20)), lr=0.02)),
    },
)


@experiment.shared()
def expected(s: Setting, device: str) -> xr.DataArray:
    """What the density answers to the samples at the recorded times."""
    flow = grid(s)
    path = flow.flow(flow.normal(s.mean, s.spread**2), s.times, s.dt)
    return xr.DataArray(flow.outputs(path), dims=("time", "lam", "sample"))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, np.ndarray]:
    """N times the squared deviation of particles from the density, in outputs."""
    square = (particles(s, s.width, device).drop_vars("time") - expected(s, device)) ** 2
    deviation = s.width / 2 * square.mean(("copy", "sample"))
    return {"deviation": deviation.transpose("lam", "seed", "time").to_numpy()}


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a longer run, every fourth time, in single precision."""
    return dataset.isel(time=slice(None, None, 4)).astype("float32")


run = experiment.run


def grid(setting: Setting) -> GridFlow:
    """The density's flow at every temperature."""
    theta = np.linspace(-9.0, 9.0, setting.cells)
    features = np.tanh(np.outer(theta, setting.inputs))
    return GridFlow(theta, features, setting.targets, np.array(setting.lam), setting.decay)


def mirrored(setting: Setting, tilt: float = 0.0) -> GridFlow:
    r"""The flow of neurons :math:`\cos\theta x + \varepsilon\sin\theta x` with the target :math:`\frac32\cos 2x`.

    The minimiser is even in the weight, with two wells. tilt: :math:`\varepsilon`, by which the data see its sign.
    """
    theta = np.linspace(-9.0, 9.0, setting.cells)
    product, targets = np.outer(theta, setting.inputs), 1.5 * np.cos(2 * setting.inputs)
    return GridFlow(theta, np.cos(product) + tilt * np.sin(product), targets, np.array(setting.lam), setting.decay)


def seen(flow: GridFlow) -> np.ndarray:
    r"""m_h, the mean square of :math:`\frac12(E_+h - E_-h)`: how well the data see on which side of 0 neurons are."""
    right = flow.equilibrium() * (flow.theta > 0)
    side = (right - right[:, ::-1]) / (2 * right.sum(-1, keepdims=True))
    return (flow.outputs(side) ** 2).mean(-1)


def densities(setting: Setting) -> tuple[GridFlow, np.ndarray, np.ndarray]:
    """The flow, its distributions at the recorded times, shape (time, lam, grid), and the minimiser."""
    flow = grid(setting)
    path = flow.flow(flow.normal(setting.mean, setting.spread**2), setting.times, setting.dt)
    return flow, path, flow.equilibrium()


@experiment.also
def descent(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The objective along the density's flow, and everything that bounds it; dimensions (lam, time)."""
    flow, path, end = densities(setting)
    gibbs = np.stack([flow.gibbs(mu) for mu in path])
    varies = np.stack([np.ptp(flow.forces(mu), axis=-1) for mu in path])
    curved = np.stack([bakry_emery(flow.potential(mu), flow.cell, flow.lam) for mu in path])
    alpha = np.maximum(holley_stroock(varies, flow.lam, flow.decay), curved)
    steps = np.diff(setting.times)[:, None] * np.minimum(alpha[1:], alpha[:-1])
    gap = np.stack([flow.free_energy(mu) for mu in path]) - flow.free_energy(end)
    bound = gap[0] * np.exp(-2 * flow.lam * np.vstack([np.zeros_like(alpha[:1]), np.cumsum(steps, 0)]))
    over_time = {
        "gap": (gap, "objective above its minimum"),
        "bound": (bound, "bound from the log-Sobolev constants on the way"),
        "certificate": (flow.lam * kullback(path, gibbs), "λ KL(μ | Gibbs of μ)"),
        "divergence": (flow.lam * kullback(path, end), "λ KL(μ | minimiser)"),
        "back": (flow.lam * kullback(end, gibbs), "λ KL(minimiser | Gibbs of μ)"),
        "distance": (flow.distance(path, end), "half the mean squared distance"),
    }
    return labelled({name: (("time", "lam"), *column) for name, column in over_time.items()},
                    setting.coordinates("lam") | setting.clock).transpose("lam", "time")


def rates(flow: GridFlow, dt: float = 0.01) -> xr.Dataset:
    """How fast the objective falls near its minimum: measured, linearised, and guaranteed; over (lam)."""
    end = flow.equilibrium()
    slowest, mode = flow.slowest(end)
    varies = np.ptp(flow.forces(end), axis=-1)
    largest = 2 * (1 + np.abs(flow.y)).mean()  # |f - y| <= 1 + |y| and h takes values in [-1, 1]
    columns = {
        "measured": (flow.relaxation(end, mode, dt), "measured rate of the objective"),
        "rate": (slowest, "slowest rate of the objective, linearised"),
        "frozen_rate": (flow.slowest(end, frozen=True)[0], "the same in the frozen potential"),
        "at_rest": (2 * flow.lam * holley_stroock(varies, flow.lam, flow.decay), "guaranteed rate at the minimiser"),
        "curved": (2 * flow.lam * bakry_emery(flow.potential(end), flow.cell, flow.lam), "the same, by the curvature"),
        "a_priori": (2 * flow.lam * holley_stroock(largest, flow.lam, flow.decay), "guaranteed rate, a priori"),
        "kramers": (kramers(flow.potential(end), flow.cell, flow.lam), "rate of a symmetric double well"),
    }
    axis_of_rates = {"lam": ("lam", flow.lam, {"long_name": "temperature λ", "units": "1"})}
    return labelled({name: ("lam", *column) for name, column in columns.items()}, axis_of_rates)


@experiment.also
def constants(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """N times the mean squared deviation, predicted to leading order: interacting, and independent; over (lam)."""
    flow = grid(setting)
    rows = []
    for lam, mu in zip(flow.lam, flow.equilibrium(), strict=True):
        centred = flow.features - mu @ flow.features
        rows.append(chaos_constant((centred * mu[:, None]).T @ centred, float(lam)))
    interacting, independent = zip(*rows, strict=True)
    return labelled({"interacting": ("lam", interacting, "N times the deviation, interacting neurons"),
                     "independent": ("lam", independent, "N times the deviation, independent neurons")},
                    setting.coordinates("lam"))


def particles(setting: Setting, width: int, device: str = "cpu") -> xr.DataArray:
    """Outputs of networks of N neurons at the recorded times; dimensions (time, lam, seed, copy, sample)."""
    copies = max(1, setting.neurons // width)
    place = devices.device(device)
    drawn = rng.normal((copies, width, 1), setting.seed, "start").float()
    theta = (setting.mean + setting.spread * drawn).expand(len(setting.lam), *drawn.shape)
    x, y = (torch.tensor(part, dtype=torch.float32, device=place) for part in (setting.inputs, setting.targets))
    problem = Training(Neurons(tanh_unit, theta).to(place), x[:, None], y, squared)
    rule = Langevin(setting.lr, torch.tensor(setting.lam)[:, None, None], setting.decay, setting.seed, axis=1)
    steps = round(setting.time / setting.lr)
    record = [Quantity("outputs", problem.predict, ("sample",), "outputs")]
    at = np.rint(setting.times / setting.lr).astype(int).tolist()
    return fit(problem, rule, steps, record, ("lam", "seed", "copy"), at).history.outputs.rename(step="time")
