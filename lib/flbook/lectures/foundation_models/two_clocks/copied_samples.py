r"""Samples of denoisers that were trained for a time s: how many of them are copies of a training picture.

Digits in their first eight principal coordinates, each of variance 1; for each of thirteen noises one readout of the
same tanh features, which have a bias. Sampling goes from the largest noise to none without new noise: at each level the
guess of the noise gives a guess of the sample, and both are mixed again in the shares of the next level. A sample is a
copy if its nearest training picture is three times nearer than the second.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import pictures
from flbook.domains import Count, Natural, Positive
from flbook.lectures.foundation_models.two_clocks.tanh_denoiser import first_layer
from flbook.runs import Experiment, Grid, axis

TEST = 300  # pictures that are held against samples


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([20, 80], "training pictures n")
    seed: tuple[Natural, ...] = axis(range(1), "seed")
    s: tuple[Positive, ...] = axis([1e2, 1e3, 1e4, 1e5, 1e6, 1e8], "training time s")
    m: Count = 384  # features
    d: Count = 8  # principal coordinates
    pairs: Count = 6144  # of a picture and a noise
    samples: Count = 300

    def check(self) -> None:
        """Refuse what leaves too few pictures to test on."""
        if max(self.n) > 1400:
            raise ValueError(f"n must be at most 1400, so that pictures are left to test on; got {max(self.n)}")


experiment = Experiment(
    Setting, version=1, loops=("n", "seed"), chunk={"n": 1}, stored="longer",
    devices=("cpu",),  # one small problem after the other
    gives={
        "copied": ("share of samples that are copies", "fraction"),
        "test": ("share of test pictures that would count as copies", "fraction", ("n", "seed")),
    },
    presets={
        "tiny": ("A blink", dict(n=(10,), s=(10.0, 1e5), m=40, pairs=200, samples=20)),
        "longer": ("Ten draws, three sizes: some minutes", dict(n=(20, 40, 80), seed=tuple(range(10)))),
    },
)  # fmt: skip


def levels(count: int = 13) -> list[float]:
    """Variance that is left at each noise, from nearly none to nearly all."""
    times = torch.logspace(torch.tensor(3.0).log10(), torch.tensor(0.02).log10(), count, dtype=torch.float64)
    return torch.exp(-2 * times).tolist()


def draw(s: Setting, n: int, seed: int) -> tuple[Float[Tensor, "n d"], Float[Tensor, "t d"]]:
    """Training and test pictures in principal coordinates of variance 1."""
    x = pictures()[0].flatten(1)
    x = x - x.mean(0)
    x = x @ torch.linalg.svd(x, full_matrices=False).Vh[: s.d].T
    x = (x / x.std(0))[torch.randperm(len(x), generator=rng.generator(seed, "split"))]
    return x[:n], x[n : n + TEST]


def features(w: Tensor, y: Tensor) -> Tensor:
    """Of noisy pictures and a bias, with preactivations of size 3/2."""
    y = torch.cat([y, torch.ones_like(y[..., :1])], -1)
    return torch.tanh(1.5 * y @ w.T) / len(w) ** 0.5


def sampled(s: Setting, x: Tensor, seed: int) -> Float[Tensor, "T samples d"]:
    """Samples of readouts trained for each of the times."""
    w, (n, d), kept = first_layer(s.m, s.d + 1, seed), x.shape, levels()
    y = rng.normal((len(s.s), s.samples, d), seed, "start", dtype=torch.float64)
    x = x.repeat(-(-s.pairs // n), 1)
    for k, (here, after) in enumerate(zip(kept, [*kept[1:], 1.0], strict=True)):
        noise = rng.normal(tuple(x.shape), seed, f"noise {k}", dtype=torch.float64)
        phi = features(w, here**0.5 * x + (1 - here) ** 0.5 * noise)
        rates, basis = torch.linalg.eigh(phi.mT @ phi / len(x))
        rates, c = rates.clamp_min(1e-12), basis.mT @ (phi.mT @ noise / len(x))
        done = (1 - torch.exp(-rates * torch.tensor(s.s, dtype=torch.float64)[:, None])) / rates
        guess = features(w, y) @ (basis @ (done[..., None] * c))
        clean = (y - (1 - here) ** 0.5 * guess) / here**0.5
        y = after**0.5 * clean + (1 - after) ** 0.5 * guess
    return y


def share_of_copies(y: Float[Tensor, "*T samples d"], x: Float[Tensor, "n d"]) -> Float[Tensor, "*T"]:
    """Of samples whose nearest training picture is three times nearer than the second."""
    near = torch.cdist(y, x).topk(2, largest=False).values
    return (near[..., 0] < near[..., 1] / 3).double().mean(-1)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Shares of one draw, (s,) and one for test pictures."""
    x, new = draw(s, s.n, s.seed)
    return {"copied": share_of_copies(sampled(s, x, s.seed), x), "test": share_of_copies(new, x)}


run = experiment.run
