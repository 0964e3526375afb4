r"""True tanh features of Gaussian samples, digits, and Gaussian samples of the digits' covariance; a trained readout.

Features are :math:`\tanh(W x/\sqrt d)/\sqrt m` with rows of W that have the length root d. Moments are means over so
many pairs of a sample and a noise, each sample as often as every other; test moments use samples that were not trained
on.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import pictures
from flbook.domains import Count, Natural, Probability
from flbook.lectures.foundation_models.two_clocks.relaxation import Relaxation, landmarks
from flbook.runs import Experiment, Grid, axis, labelled

DATA = ("normal", "digits", "normal digits")
BLOCK = 4096  # noisy samples at once


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    data: tuple[Literal[DATA], ...] = axis(DATA[1:], "samples")
    n: tuple[Count, ...] = axis([50, 200], "samples n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    m: Count = 768  # features
    d: Count = 16  # of normal samples; digits have 64
    kept: Probability = 0.8
    pairs: Count = 16384  # of a sample and a noise; at least eight times the features

    def check(self) -> None:
        """Refuse what leaves no picture to test on."""
        if max(self.n) > 1500:
            raise ValueError(f"n must be at most 1500, so that pictures are left to test on; got {max(self.n)}")
        if not 0 < self.kept < 1:
            raise ValueError(f"kept must lie between 0 and 1, ends excluded; got {self.kept}")


experiment = Experiment(
    Setting, version=1, loops=("data", "n", "seed"), chunk={"data": 1, "n": 1}, stored="longer",
    devices=("cpu",),  # one small problem after the other
    gives={
        "learned": ("time s when half of what can be learned is learned", "1"),
        "half_gap": ("time s when test minus training loss is half its end", "1"),
        "risen": ("time s when the test loss is 10 % above its best", "1"),
        "best": ("test loss at the best time", "1"),
        "end": ("test loss at the end", "1"),
    },
    presets={
        "tiny": ("A blink", dict(n=(20, 40), seed=(0, 1), m=60, pairs=500)),
        "longer": ("Digits, and Gaussians like digits: some minutes", dict(
            n=(50, 100, 200, 400), seed=tuple(range(10)))),
    },
)  # fmt: skip


def draw(s: Setting, data: str, n: int, seed: int) -> tuple[Float[Tensor, "n d"], Float[Tensor, "t d"]]:
    """Training samples, and new ones; all of mean zero and, over all coordinates, variance one."""
    if data == "normal":
        x = rng.normal((n + 2000, s.d), seed, "normal samples", dtype=torch.float64)
        return x[:n], x[n:]
    x = pictures()[0].flatten(1)
    x = (x - x.mean(0)) / (x - x.mean(0)).std()
    if data == "normal digits":
        values, basis = torch.linalg.eigh(x.T.cov())
        drawn = rng.normal(tuple(x.shape), seed, "normal digits", dtype=torch.float64)
        x = drawn * values.clamp_min(0).sqrt() @ basis.T
    order = torch.randperm(len(x), generator=rng.generator(seed, "split"))
    return x[order[:n]], x[order[1500:]]


def first_layer(m: int, d: int, seed: int) -> Float[Tensor, "m d"]:
    """Rows of length 1."""
    w = rng.normal((m, d), seed, "first layer", dtype=torch.float64)
    return w / torch.linalg.vector_norm(w, dim=-1, keepdim=True)


def moments(x: Tensor, w: Tensor, kept: float, pairs: int, seed: int, role: str) -> tuple[Tensor, Tensor]:
    """U and V over at least so many pairs of a sample and a noise, (m, m) and (m, d)."""
    m, total = len(w), -(-pairs // len(x)) * len(x)
    u, v, w = torch.zeros(m, m), torch.zeros(m, x.shape[1]), w.float()
    noise = rng.normal((total, x.shape[1]), seed, role, dtype=torch.float32)
    which = torch.arange(total) % len(x)
    for i in range(0, total, BLOCK):
        epsilon = noise[i : i + BLOCK]
        phi = torch.tanh((kept**0.5 * x[which[i : i + BLOCK]].float() + (1 - kept) ** 0.5 * epsilon) @ w.T)
        u, v = u + phi.T @ phi, v + phi.T @ epsilon
    return u.double() / (total * m), v.double() / (total * m**0.5)


def relaxation(s: Setting, data: str, n: int, seed: int) -> Relaxation:
    """The readout's training on one draw of samples."""
    x, new = draw(s, data, n, seed)
    w, pairs = first_layer(s.m, x.shape[1], seed), max(s.pairs, 8 * s.m)
    train = moments(x, w, s.kept, pairs, seed, "noise")
    return Relaxation.of(*train, *moments(new, w, s.kept, pairs, seed, "test noise"))


TIMES = torch.logspace(0, 9, 271, dtype=torch.float64)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Landmarks of one run."""
    floor = s.kept if s.data == "normal" else None
    found = landmarks(*(part[None] for part in relaxation(s, s.data, s.n, s.seed).losses(TIMES)), TIMES, floor)
    return {name: value[0] for name, value in found.items()}


@experiment.also
def curves(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training and test loss over the time s at the first seed: (data, n, s)."""
    found = [relaxation(setting, data, n, setting.seed[0]).losses(TIMES) for data in setting.data for n in setting.n]
    table = torch.stack([torch.stack(pair) for pair in found]).unflatten(0, (len(setting.data), -1)).permute(2, 0, 1, 3)
    values = {name: (("data", "n", "s"), part, words, "1") for name, part, words in
              zip(("train", "test"), table, ("training loss", "test loss"), strict=True)}  # fmt: skip
    time = {"s": ("s", TIMES.numpy(), {"long_name": "training time s", "units": "1"})}
    return labelled(values, setting.coordinates("data", "n") | time)


run = experiment.run
