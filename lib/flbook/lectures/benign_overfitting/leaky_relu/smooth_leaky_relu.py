r"""Smooth leaky ReLU networks in very high dimension predict like the average of their samples.

Claim (Frei, Chatterji and Bartlett 2022, Theorem 3.1): on :math:`x = y\mu + \xi` in very high dimension, a two-layer
network with a smooth leaky activation, trained by gradient descent on the logistic loss, fits all labels, wrong ones
included, and errs on fresh data at most like :math:`e^{-n\|\mu\|^4/(Cd)}`. The average of the samples has an exact
error, about :math:`\Phi(-(1-2p)\sqrt r)` with :math:`r = n\|\mu\|^4/d`, and the network is held against it.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import check_noise, flipped_labels
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.models.activations import smooth_leaky_relu
from flbook.runs.sweep import sweep
from flbook.training.fit import fit
from flbook.training.losses import logistic
from flbook.training.optimizers import GradientDescent

VERSION = 1


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    d: tuple[float, ...] = (2e4, 2e6)  # dimension
    r: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)  # n |mu|^4 / d
    seed: tuple[int, ...] = tuple(range(40))
    n: int = 100  # training samples
    m: int = 5  # filters a sign
    flip_prob: float = 0.15
    leak: float = 0.1
    sharpness: float = 10.0  # of the smooth kink
    sigma_0: float = 1e-7
    lr: float = 0.5  # step size, in units of n/d
    steps: int = 50
    points: int = 2048

    @classmethod
    def book(cls) -> "Setting":
        """Two dimensions: n |mu|^2 / d is no longer small in the lower one."""
        return cls()

    @classmethod
    def paper(cls) -> "Setting":
        """More dimensions and seeds; the paper has no experiment of its own."""
        return cls(d=(2e4, 2e5, 2e6, 2e7), seed=tuple(range(200)), steps=200)


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    devices.device(device)
    check_noise(1.0, setting.flip_prob)
    check_room(setting.n, 2 * setting.m, int(min(setting.d)))
    cell_bytes = 8 * (8 * setting.n * setting.n + 8 * setting.m * setting.points)
    how = {"memory": 2e8} | how
    return sweep(measure, setting, device=device, split=("seed", "d"), cell_bytes=cell_bytes, **how)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every network; dimensions (d, seed, r)."""
    y, observed = flipped_labels(setting.n, setting.flip_prob, 0)
    d = torch.tensor(setting.d, dtype=torch.float64)
    mu = (torch.tensor(setting.r, dtype=torch.float64) * d[:, None] / setting.n) ** 0.25  # (d, r)
    grams = [draw_gram(setting.n, 2 * setting.m, int(one), sigma_0=setting.sigma_0, seed=setting.seed).with_signals(row)
             for one, row in zip(setting.d, mu, strict=True)]
    gram = SampleGram(*(torch.stack(part) for part in zip(*(SampleGram.added(one, y) for one in grams), strict=True)))
    activation = smooth_leaky_relu(setting.leak, setting.sharpness)
    network = SinglePatchTraining(gram, observed, (2 * setting.m) ** -0.5, activation, logistic)
    network = network.to(devices.device(device))
    rate = (setting.lr * setting.n / d)[:, None, None].to(network.observed)
    params = fit(network, GradientDescent(rate), setting.steps).params
    a, average = network.a, network.observed
    on_x = a @ network.preactivations(params)
    square = torch.einsum("k,...kl,l->...", a, network.weight_gram(params), a)
    length = torch.einsum("n,...np,p->...", average, network.gram.x_x, average)
    columns = {
        "test_error": (measures.test_error(network, params, setting.points), "test error", "fraction"),
        "train_error": (measures.train_error(network, params), "training error", "fraction"),
        "cosine": ((on_x * average).sum(-1) / (square * length).sqrt(), "cosine between readout and average", "1"),
        "bend": ((network.preactivations(params).abs() * setting.sharpness > 2).double().mean((-2, -1)),
                 "share of pre-activations beyond the bend", "fraction"),
    }
    names = {"d": ("dimension d", setting.d), "seed": ("seed", setting.seed), "r": ("r = n|μ|⁴/(σ_ξ⁴ d)", setting.r)}
    return xr.Dataset(
        {key: (tuple(names), value.cpu().numpy(), {"long_name": text, "units": unit})
         for key, (value, text, unit) in columns.items()},
        coords={key: (key, np.array(values), {"long_name": text, "units": "1"})
                for key, (text, values) in names.items()},
    )
