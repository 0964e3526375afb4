r"""When a denoiser learns and when it memorises: fixed tanh features, a trained readout, Gaussian samples.

The features are replaced by Gaussian ones with the same first two moments (Bonnaire, Urfin, Biroli and Mezard 2025),

.. math:: \varphi = \frac1{\sqrt m}\Big[\frac{a}{\sqrt d} W x + v\,\Omega_\nu + r z\Big],

with W of m rows, one vector :math:`\Omega_\nu` for each sample and a new z for each noise. All that enters is the Gram
matrix of m-dimensional Gaussian vectors, so m = 10^6 costs what m = 10^3 costs.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Probability
from flbook.dynamics.wishart import bartlett
from flbook.lectures.foundation_models.two_clocks.clocks import strengths
from flbook.lectures.foundation_models.two_clocks.relaxation import Relaxation, landmarks
from flbook.runs import Experiment, Grid, axis, labelled


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    kept: tuple[Probability, ...] = axis([0.95, 0.8], "variance that is left ᾱ")
    m: tuple[Count, ...] = axis([10**6], "features m")
    n: tuple[Count, ...] = axis([32, 64, 128, 256], "samples n")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 8

    def check(self) -> None:
        """Refuse what has no noise, or fewer samples than directions."""
        if not all(0 < kept < 1 for kept in self.kept):
            raise ValueError(f"kept must lie between 0 and 1, ends excluded; got {self.kept}")
        if min(self.n) <= self.d:
            raise ValueError(f"n must be above d = {self.d}, or some directions have no sample; got {min(self.n)}")


GIVES = {
    "learned": ("time s when half of what can be learned is learned", "1"),
    "half_gap": ("time s when test minus training loss is half its end", "1"),
    "slow": ("mean of the d slowest rates", "1"),
    "bulk": ("mean of the n - d rates above them", "1"),
    "best": ("test loss at the best time", "1"),
    "end": ("test loss at the end", "1"),
    "ridge": ("test loss of the best ridge", "1"),
}

experiment = Experiment(
    Setting, version=1, loops=("kept", "m", "n"), chunk={"kept": 1, "m": 1}, gives=GIVES,
    devices=("cpu",),  # a second a run
    presets={
        "tiny": ("A blink", dict(kept=(0.8,), n=(12, 24), seed=(0, 1), d=6)),
        "features": ("From fewer features than samples to a hundred thousand times as many", dict(
            kept=(0.8,), m=tuple(4**k for k in range(3, 12)), n=(128,))),
        "noises": ("From little noise to much", dict(
            kept=(0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2), n=(128,))),
    },
)  # fmt: skip


def times(last: float = 1e9, first: float = 1.0, each: int = 30) -> Tensor:
    """Times s, so many a decade."""
    count = round(each * np.log10(last / first)) + 1
    return torch.logspace(np.log10(first), np.log10(last), count, dtype=torch.float64)


def samples(n: int, d: int, seeds: tuple[int, ...]) -> Float[Tensor, "E n d"]:
    """Standard normal samples."""
    return rng.normal((n, d), seeds, "samples", dtype=torch.float64)


def gram(vectors: int, m: int, seeds: tuple[int, ...]) -> Float[Tensor, "E N N"]:
    """Inner products of Gaussian vectors in m dimensions, over m."""
    if m > vectors:
        lower = torch.cat([bartlett(vectors, np.array([m]), one) for one in seeds])
        return lower @ lower.mT / m
    drawn = rng.normal((m, vectors), seeds, "few features", dtype=torch.float64)
    return drawn.mT @ drawn / m


def equivalent(x: Float[Tensor, "E n d"], m: int, kept: float, seeds: tuple[int, ...]) -> Relaxation:
    r"""The Gaussian features on given samples.

    With the columns :math:`F = [G/\sqrt n, \sqrt{1-\bar\alpha}\,a W/\sqrt d]`, samples and noise, the moment is
    :math:`U = (F F^\top + r^2)/m`, of which the eigenvectors of :math:`F^\top F` are all that V reaches.
    """
    (a, v2, r2), (n, d) = strengths(kept), x.shape[-2:]
    mix = x.new_zeros(len(x), d + n, n + d)  # what [W, Omega] makes of samples and noise
    mix[:, :d, :n] = a * (kept / (d * n)) ** 0.5 * x.mT
    mix[:, :d, n:] = a * ((1 - kept) / d) ** 0.5 * torch.eye(d)
    mix[:, d:, :n] = (v2 / n) ** 0.5 * torch.eye(n)
    values, basis = torch.linalg.eigh(mix.mT @ gram(n + d, m, seeds) @ mix)
    size = values.clamp_min(0).sqrt()
    c = size[..., None] * basis[:, n:].mT  # (E, k, d)
    cc = c @ c.mT
    # a new sample has variance 1 in each direction, and memories that no training sample shares
    seen = cc / (1 - kept) + (v2 + r2) / m * torch.eye(n + d)
    return Relaxation(values.clamp_min(0) + r2 / m, c, seen * cc, cc.diagonal(dim1=-2, dim2=-1))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Landmarks of the loss curves and means of the rates, (seed,)."""
    flow = equivalent(samples(s.n, s.d, s.seed), s.m, s.kept, s.seed)
    found = landmarks(*flow.losses(times()), times(), s.kept)
    penalties = torch.logspace(-9, 0, 181, dtype=torch.float64)
    groups = {"slow": flow.rates[:, : s.d].mean(-1), "bulk": flow.rates[:, s.d : s.n].mean(-1)}
    found |= groups | {"ridge": flow.ridge(penalties).amin(-1)}
    return {name: found[name] for name in GIVES}


@experiment.also
def curves(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training and test loss over the time s, at the first ᾱ and m: (n, seed, s); and all rates of the largest n."""
    kept, m, s, found = setting.kept[0], setting.m[0], times(1e8, each=20), []
    for n in setting.n:
        flow = equivalent(samples(n, setting.d, setting.seed), m, kept, setting.seed)
        found.append(torch.stack(flow.losses(s)))
    table = torch.stack(found, 1)
    dims = ("n", "seed", "s")
    values = {name: (dims, part, words, "1") for name, part, words in
              zip(("train", "test"), table, ("training loss", "test loss"), strict=True)}  # fmt: skip
    time = {"s": ("s", s, {"long_name": "training time s", "units": "1"})}
    rates = {"rates": (("seed", "mode"), flow.rates, "rate", "1"),
             "weights": (("seed", "mode"), flow.c.square().sum(-1), "share of the noise's image", "1")}  # fmt: skip
    count = {"mode": ("mode", range(flow.rates.shape[-1]), {"long_name": "mode", "units": "count"})}
    return labelled(values | rates, setting.coordinates("n", "seed") | time | count)


run = experiment.run
