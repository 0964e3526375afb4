r"""How long noise vectors are, and how little they overlap with each other and with the signal.

Claim, exact for every d: if :math:`\xi_i, \xi_k \sim N(0, \sigma_\xi^2 I_d)` are independent, then :math:`\|\xi_i\|^2`
has mean :math:`\sigma_\xi^2 d` and variance :math:`2\sigma_\xi^4 d`, and the cosine of the angle between :math:`\xi_i`
and :math:`\xi_k`, or :math:`\xi_i` and a fixed :math:`\mu`, has mean 0 and variance 1/d.

Source: derived in the lecture `signal_noise_model`.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
import xarray as xr

from flbook import devices
from flbook.data.signal_noise import SignalNoise
from flbook.domains import Natural, Range
from flbook.runs import Grid, axis, labelled, sweeps

VERSION = 1

NAMES = {
    "noise_length": "spread of |ξ|² over its mean",
    "noise_overlap": "root mean square cosine, noise with noise",
    "signal_overlap": "root mean square cosine, noise with signal",
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a second of one core."""

    d: tuple[Annotated[int, Range(2)], ...] = axis([4, 16, 64, 256, 1024], "dimension d")  # of a noise vector
    seed: tuple[Natural, ...] = axis(range(16), "seed")
    n: Annotated[int, Range(2)] = 300  # noise vectors a seed

    @classmethod
    def tiny(cls) -> "Setting":
        """Forty vectors a seed."""
        return cls(d=(3, 50), seed=(0, 1, 2), n=40)


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Spreads and root mean square cosines; dimensions (d, seed)."""
    rows = [torch.stack(spreads(setting, d, device)) for d in setting.d]
    return labelled({name: (("d", "seed"), part, text)
                     for (name, text), part in zip(NAMES.items(), torch.stack(rows, 1), strict=True)},
                    setting.coordinates())


run = sweeps(measure)


def spreads(setting: Setting, d: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For one d: the spread of squared lengths, and the cosines with other noise and with the signal, one a seed."""
    sample = SignalNoise(n=setting.n, d=d).draw(setting.seed)
    xi, mu = sample.xi.to(devices.device(device)), sample.mu.to(devices.device(device))
    square = xi.square().sum(-1)
    unit = xi / square.sqrt()[..., None]
    all_pairs = torch.einsum("...id,...kd->...ik", unit, unit).square().sum((-2, -1))
    different = (all_pairs - setting.n) / (setting.n * (setting.n - 1))  # less n cosines of 1
    with_mu = (unit @ mu / mu.norm()).square().mean(-1)
    return square.std(-1) / d, different.sqrt(), with_mu.sqrt()
