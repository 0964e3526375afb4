r"""Test error on fresh noise against d/n, at the end of either stage.

Claim (Han et al. 2025): at the end of stage I the test error is at most :math:`e^{-\Omega(d/n)}`. Here: it is
:math:`e^{-c d/n}`, with a constant in closed form (`network_parts`), and a smaller one at the end of stage II.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, FlipProbability, Natural, Positive
from flbook.dynamics.wishart import check_room, draw_training
from flbook.lectures.benign_overfitting.label_noise_stages.network_parts import (
    check_flips,
    error_constant,
    mean,
    spoken,
)
from flbook.lectures.benign_overfitting.label_noise_stages.start_size import trained, trained_long
from flbook.lectures.benign_overfitting.shared.rare_noise import log_error
from flbook.runs import Experiment, Grid, axis
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    ratio: tuple[Count, ...] = axis([16, 32, 64, 128, 256], "d/n")
    n_snr2: tuple[Positive, ...] = axis([5.0], "n SNR²")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 100  # training samples
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.2  # p
    start: Positive = 0.003  # sigma_0, in units of sqrt(n)/(sigma_xi d)
    early: Positive = 0.25  # when stage I is looked at, in units of nm/(eta sigma_xi^2 d)
    steps: Count = 25  # steps up to then
    late: Count = 60  # steps of the long run
    growth: Positive = 0.5  # their size, in units of nm/(eta sigma_xi^2 d), times the loss

    def check(self) -> None:
        """Refuse samples without flipped labels, and too few dimensions."""
        check_flips(self.flip_prob, self.n)
        check_room(self.n, 2 * self.m, min(self.ratio) * self.n)


experiment = Experiment(
    Setting, version=1, loops=("ratio",), chunk={"ratio": 1},
    gives={
        "minus_log_first": ("−ln of the test error, end of stage I", "1"),
        "minus_log_last": ("−ln of the test error, end of stage II", "1"),
        "constant_first": ("c from the network's S and N, end of stage I", "1"),
        "constant_last": ("c from the network's S and N, end of stage II", "1"),
        "contradicted": ("flipped samples contradicted, end of stage I", "fraction"),
    },
    presets={
        "tiny": ("Two dimensions, twenty samples", dict(ratio=(8, 16), seed=(0, 1), n=20, m=4, steps=5, late=8)),
        "strengths": ("Six signals, one dimension", dict(ratio=(128,), n_snr2=(3.0, 4.0, 5.0, 7.0, 10.0, 14.0))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train to the end of either stage in one dimension."""
    d = s.ratio * s.n
    drawn = draw_training(s.n, s.m, (d,), n_snr2=s.n_snr2, flip_prob=(s.flip_prob,),
                          start=s.start * math.sqrt(s.n / d), seed=s.seed)
    task = drawn.to(devices.device(device), torch.float64)
    first = trained(task, GradientDescent(s.early / s.steps * s.n * s.m / d), s.steps, task.start())
    last = trained_long(task, s.growth * s.n * s.m / d, s.late)
    strengths = torch.tensor(s.n_snr2).to(task.observed)
    signal, noise = spoken(task, first)
    wrong = (noise < signal[..., None]).to(noise)
    values = {"minus_log_first": -log_error(task, first), "minus_log_last": -log_error(task, last),
              "constant_first": error_constant(task, first, strengths),
              "constant_last": error_constant(task, last, strengths),
              "contradicted": mean(wrong, task.y != task.observed)}
    return {name: value[0, 0].mT for name, value in values.items()}  # (n_snr2, seed)


run = experiment.run
