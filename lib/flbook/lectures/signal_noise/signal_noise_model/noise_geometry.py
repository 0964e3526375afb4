r"""How long noise vectors are, and how little they overlap with each other and with the signal.

Claim, exact for every d: if :math:`\xi_i, \xi_k \sim N(0, \sigma_\xi^2 I_d)` are independent, then :math:`\|\xi_i\|^2`
has mean :math:`\sigma_\xi^2 d` and variance :math:`2\sigma_\xi^4 d`, and the cosine of the angle between :math:`\xi_i`
and :math:`\xi_k`, or :math:`\xi_i` and a fixed :math:`\mu`, has mean 0 and variance 1/d.

Source: derived in the lecture `signal_noise_model`.
"""

from dataclasses import dataclass
from typing import Annotated

import torch

from flbook.data.signal_noise import SignalNoise
from flbook.domains import Natural, Range
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a second of one core."""

    d: tuple[Annotated[int, Range(2)], ...] = axis([4, 16, 64, 256, 1024], "dimension d")  # of a noise vector
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    n: Annotated[int, Range(2)] = 300  # noise vectors a seed


experiment = Experiment(
    Setting, version=1, loops=("d",), devices=("cpu",),  # most of the time goes into drawing
    gives={
        "noise_length": ("spread of |ξ|² over its mean", "1"),
        "noise_overlap": ("root mean square cosine, noise with noise", "1"),
        "signal_overlap": ("root mean square cosine, noise with signal", "1"),
    },
    presets={"tiny": ("Forty vectors a seed", dict(d=(3, 50), seed=(0, 1, 2), n=40))},
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """The spread of squared lengths, and root mean square cosines with other noise and with the signal, one a seed."""
    sample = SignalNoise(n=s.n, d=s.d).draw(s.seed)
    xi, mu = sample.xi, sample.mu
    square = xi.square().sum(-1)
    unit = xi / square.sqrt()[..., None]
    all_pairs = torch.einsum("...id,...kd->...ik", unit, unit).square().sum((-2, -1))
    different = (all_pairs - s.n) / (s.n * (s.n - 1))  # less n cosines of 1
    with_mu = (unit @ mu / mu.norm()).square().mean(-1)
    return {"noise_length": square.std(-1) / s.d, "noise_overlap": different.sqrt(), "signal_overlap": with_mu.sqrt()}


run = experiment.run
