r"""How long noise vectors are, and how little they overlap with each other and with the signal.

Claim, exact for every d: if :math:`\xi_i, \xi_k \sim N(0, \sigma_\xi^2 I_d)` are independent, then :math:`\|\xi_i\|^2`
has mean :math:`\sigma_\xi^2 d` and variance :math:`2\sigma_\xi^4 d`, and the cosine of the angle between :math:`\xi_i`
and :math:`\xi_k`, or :math:`\xi_i` and a fixed :math:`\mu`, has mean 0 and variance 1/d.

Source: derived in the lecture `signal_noise_model`.
"""

from dataclasses import dataclass

import torch
import xarray as xr

from flbook import devices
from flbook.data.signal_noise import SignalNoise
from flbook.runs.sweep import sweep

VERSION = 1


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    d: tuple[int, ...] = (4, 16, 64, 256, 1024)  # dimension of a noise vector
    seed: tuple[int, ...] = tuple(range(16))
    n: int = 300  # noise vectors a seed

    @classmethod
    def book(cls) -> "Setting":
        """A second of one core."""
        return cls()


NAMES = {
    "noise_length": "spread of |ξ|² over its mean",
    "noise_overlap": "root mean square cosine, noise with noise",
    "signal_overlap": "root mean square cosine, noise with signal",
}


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Spreads and root mean square cosines; dimensions (d, seed)."""
    rows = [torch.stack(spreads(setting, d, device)) for d in setting.d]
    values = torch.stack(rows, 1).cpu().numpy()
    return xr.Dataset(
        {name: (("d", "seed"), part, {"long_name": text, "units": "1"})
         for (name, text), part in zip(NAMES.items(), values, strict=True)},
        coords={"d": ("d", list(setting.d), {"long_name": "dimension d", "units": "1"}), "seed": list(setting.seed)},
    )


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


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    cell_bytes = 5 * 8 * setting.n * max(setting.d) / len(setting.d)
    return sweep(measure, setting, device=device, split=("seed",), cell_bytes=cell_bytes, **how)
