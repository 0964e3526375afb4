r"""Exclusive or hidden in one patch: cluster and noise are added, and only a network that learns features finds it.

The data of `clusters` with the two patches summed, x = cluster + noise. The lazy network's kernel is then nearly
linear in high dimension, and XOR is invisible to what is linear; the network turns its filters towards the clusters.
"""

import math
from dataclasses import dataclass
from itertools import product

import torch
import xarray as xr

from flbook import devices, measures, rivals
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.models import TwoLayerCNN, identity
from flbook.runs.settings import among
from flbook.runs.sweep import sweep
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

VERSION = 1

MODELS = ("network", "lazy", "linear")


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    model: tuple[str, ...] = MODELS
    n: tuple[int, ...] = (200,)  # training samples
    d: tuple[int, ...] = (150,)  # dimension
    mu: tuple[float, ...] = (1.5, 2.5, 3.5, 5.0)  # |mu|
    seed: tuple[int, ...] = tuple(range(10))
    m: int = 10  # filters a sign
    flip_prob: float = 0.0  # p
    start: float = 0.05  # sigma_0 sigma_xi sqrt(d)
    lr: float = 0.4  # step size, in units of m min(1, n/d)
    steps: int = 100
    points: int = 500  # fresh samples

    @classmethod
    def book(cls) -> "Setting":
        """One sample size and dimension."""
        return cls()

    @classmethod
    def paper(cls) -> "Setting":
        """Three sample sizes, three dimensions, seven signal strengths."""
        return cls(n=(100, 200, 400), d=(100, 200, 400), mu=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0),
                   seed=tuple(range(10)))


def task(setting: Setting, model: str, n: int, d: int, mu: float, device: str = "cpu") -> Training:
    """The training problem of all seeds: cluster and noise in one patch."""
    sample = XorSignalNoise(n=n, d=d, mu_norm=mu, flip_prob=setting.flip_prob).draw(setting.seed)
    shape = {} if model != "linear" else {"activation": identity}
    network = TwoLayerCNN(d, setting.m, setting.start / math.sqrt(d), seed=setting.seed, **shape)
    where = devices.device(device)
    x = sample.x.sum(-2, keepdim=True).to(where, torch.float32)
    plain = Training(network.to(where), x, sample.observed.to(where))
    return rivals.lazy(plain) if model == "lazy" else plain


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell; dimensions (model, n, d, mu, seed)."""
    cells = []
    for model, n, d, mu in product(setting.model, setting.n, setting.d, setting.mu):
        problem = task(setting, model, n, d, mu, device)
        rule = GradientDescent(setting.lr * setting.m * min(1.0, n / d))
        params = fit(problem, rule, setting.steps).params
        fresh = XorSignalNoise(n=n, d=d, mu_norm=mu).draw_test(setting.points, setting.seed)
        x = fresh.x.sum(-2, keepdim=True).to(problem.x)
        error = measures.test_error_on(problem, params, x, fresh.y.to(problem.x))
        cells.append([error, measures.train_error(problem, params)])
    dims = ("model", "n", "d", "mu", "seed")
    sizes = [len(getattr(setting, name)) for name in dims]
    columns = [torch.stack(column).reshape(sizes).cpu().numpy() for column in zip(*cells, strict=True)]
    labels = {"model": "model", "n": "samples n", "d": "dimension d", "mu": "signal strength |μ|", "seed": "seed"}
    units = {"mu": "σ_ξ"}
    return xr.Dataset(
        {
            "test_error": (dims, columns[0], {"long_name": "test error", "units": "fraction"}),
            "train_error": (dims, columns[1], {"long_name": "training error", "units": "fraction"}),
        },
        coords={name: (name, list(getattr(setting, name)), {"long_name": label, "units": units.get(name, "1")})
                for name, label in labels.items()},
    )


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    among("model", setting.model, MODELS)
    for n, d, mu in product(setting.n, setting.d, setting.mu):
        XorSignalNoise(n=n, d=d, mu_norm=mu, flip_prob=setting.flip_prob)
    how = {"memory": 2**26} | how
    cell_bytes = 4 * max(setting.n) * (max(setting.d) + 8 * setting.m)
    return sweep(measure, setting, device=device, split=("model", "n", "d", "mu"), cell_bytes=cell_bytes, **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """Of a paper run: everything, as 32-bit numbers."""
    return dataset.astype("float32")


