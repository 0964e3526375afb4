r"""The size of the start decides who carries a sample's noise, and so where both stages of label noise begin.

A filter of a sample's observed sign that does not answer to its noise patch at the start is pushed by the noise of the
other samples, by about :math:`\sqrt{n/d}` times what they have memorised. If that is more than its start, of size
:math:`\sigma_0\sigma_\xi\sqrt d`, it may come to answer. The unit of sigma_0 is therefore
:math:`\sqrt n/(\sigma_\xi d)`. With the share phi of carriers the borders are

.. math:: n\,\mathrm{SNR}^2 = \frac{2\varphi}{1 - 2p} \quad\text{(first stage)}, \qquad
          n\,\mathrm{SNR}^2 = \frac{2\varphi}{1 - 4p} \quad\text{(error on repeated noise, in the end)}.

Source: derived in the lecture on label noise.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, fits
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.wishart import check_room, draw_training
from flbook.lectures.benign_overfitting.label_noise_stages.network_parts import carriers, check_flips, mean, spoken
from flbook.rivals import rival
from flbook.runs import Experiment, Grid, axis
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params, Problem, Rule


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    model: tuple[str, ...] = axis(["network"], "model")  # or "linear", "lazy"
    d: tuple[Count, ...] = axis([10**9], "patch dimension d")
    start: tuple[Positive, ...] = axis([0.0001], "σ_0 in units of √n/(σ_ξ d)")
    n_snr2: tuple[Positive, ...] = axis([1.0, 1.3, 1.7, 2.2, 2.8], "n SNR²")
    seed: tuple[Natural, ...] = axis(range(96), "seed")
    n: Count = 100  # training samples
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.1  # p, exactly pn labels flipped
    early: Positive = 0.1  # when the first stage is looked at, in units of nm/(eta sigma_xi^2 d)
    steps: Count = 20  # steps up to then
    late: Count = 60  # steps of the long run
    growth: Positive = 0.5  # their size, in units of nm/(eta sigma_xi^2 d), times the loss

    def check(self) -> None:
        """Refuse samples without flipped labels, unknown models, and too few dimensions."""
        check_flips(self.flip_prob, self.n)
        for name in self.model:
            if name not in ("network", "linear", "lazy"):
                raise ValueError(f"model must be network, linear or lazy; got {name}")
        for d in self.d:
            check_room(self.n, 2 * self.m, d)


experiment = Experiment(
    Setting, version=1, loops=("model", "d", "start"), chunk={"start": 1}, stored="longer",
    gives={
        "phi_early": ("own filters that carry a flipped sample's noise", "fraction"),
        "phi_late": ("own filters that carry a sample's noise, harmonic mean", "fraction"),
        "lead_early": ("(N − S)/(|N| + |S|) of flipped samples, first stage", "1"),
        "lead_late": ("(N − S)/(|N| + |S|) of clean samples, in the end", "1"),
    },
    presets={
        "tiny": ("A small and a large start", dict(
            model=("network", "lazy"), d=(10**6,), start=(0.01, 1.0), n_snr2=(1.0, 2.0), seed=(0, 1), n=20, m=4,
            steps=4, late=8)),
        "rivals": ("A linear classifier and the lazy network beside the network, from a large start, early", dict(
            model=("network", "linear", "lazy"), start=(0.3,), n_snr2=(1.3, 1.7, 2.2, 2.8, 3.6, 4.5),
            seed=tuple(range(30)), flip_prob=0.2, early=0.02, late=1)),
        "longer": ("Twelve sizes of the start in two dimensions", dict(
            d=(10**6, 10**9), start=(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
            seed=tuple(range(24)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one model from one size of the start, for a short and for a long time."""
    start = s.start * math.sqrt(s.n / s.d)  # sigma_0 sigma_xi sqrt(d)
    drawn = draw_training(s.n, s.m, (s.d,), n_snr2=s.n_snr2, flip_prob=(s.flip_prob,), start=start, seed=s.seed)
    training = drawn.to(devices.device(device), torch.float64)
    task = rival(training, s.model)
    flipped = training.y != training.observed
    short = GradientDescent(s.early / s.steps * s.n * s.m / s.d)
    half = trained(task, short, s.steps // 2, task.start())
    params = trained(task, short, s.steps - s.steps // 2, half)
    long = trained_long(task, s.growth * s.n * s.m / s.d, s.late)
    return {
        "phi_early": squeezed(mean(carriers(task, half), flipped)),
        "phi_late": squeezed(1 / (1 / carriers(task, long).clamp(min=0.5 / s.m)).mean(-1)),
        "lead_early": squeezed(lead(task, params, flipped)),
        "lead_late": squeezed(lead(task, long, ~flipped)),
    }


run = experiment.run


def trained(task: Problem, rule: Rule, steps: int, params: Params) -> Params:
    """Parameters after some steps of a rule that remembers nothing."""
    for _ in range(steps):
        params, _ = rule.step(task, params, None)
    return params


def trained_long(task: Problem, size: float, steps: int) -> Params:
    """Parameters after gradient steps that are as large as the loss is small: margins grow by a constant at each."""
    params = task.start()
    for _ in range(steps):
        params = trained(task, GradientDescent(size / task.train_loss(params)), 1, params)
    return params


def lead(task: GramTraining, params: Params, group: Tensor) -> Tensor:
    """By how much the noise of a group is ahead of the signal in what the network says, from -1 to 1, shape ``*E``."""
    signal, noise = spoken(task, params)
    noise = mean(noise, group)
    return (noise - signal) / (noise.abs() + signal.abs())


def squeezed(values: Tensor) -> Tensor:
    """Without the axes of one flip probability and one dimension, shape ``(seed, n_snr2)`` transposed to the grid's."""
    return values[0, 0].mT


def border(lead: xr.DataArray) -> fits.Fit:
    """The n SNR² at which the mean lead of the noise falls through zero, on straight lines between its logarithms."""
    x = np.log(lead.n_snr2.to_numpy())

    def zero(means: np.ndarray) -> np.ndarray:
        """Where each row of means falls through zero."""
        after = np.where((means <= 0).any(-1), np.argmax(means <= 0, -1), means.shape[-1] - 1).clip(min=1)
        rows = np.arange(len(means))
        high, low = means[rows, after - 1], means[rows, after]
        return np.exp(x[after - 1] + (x[after] - x[after - 1]) * high / (high - low))

    return fits.statistic(lead, zero, ("n_snr2",))


def kicked_share(signal_part: float) -> float:
    r"""The share phi of carriers from a very small start, by a count (see the lecture's Checks).

    Half of the filters answer at the start. A silent one comes to answer if the pushes of the carried noise add up to
    something positive, at first or later, when phi has grown. With the variance v of the signal's push, in units of
    :math:`n/(2d)`,

    .. math:: \varphi = 1 - \tfrac12\Big(\tfrac14 + \tfrac{1}{2\pi}\arcsin
              \sqrt{\frac{1/2 + v}{\varphi + v}}\Big), \qquad v = \tfrac12(1 - 2p)^2\,n\,\mathrm{SNR}^2.

    Examples
    --------
    >>> round(kicked_share(0.0), 3), round(kicked_share(1e9), 3)
    (0.803, 0.75)
    """
    phi = 0.75
    for _ in range(100):
        shared = math.sqrt((0.5 + signal_part) / (phi + signal_part))
        phi = 1 - (0.25 + math.asin(min(shared, 1.0)) / (2 * math.pi)) / 2
    return phi
