"""A small network of which every weight is trained, beside the theory of fixed features: three layers, tanh, Adam.

Samples are standard normal; every step draws samples of the training set and fresh noises. Losses are read on a
geometric grid of steps, on pairs that no step sees.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.foundation_models.two_clocks.relaxation import landmarks
from flbook.runs import Experiment, Grid, axis

READ = 2048  # pairs on which losses are read


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    n: tuple[Count, ...] = axis([12, 24, 48, 96], "samples n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    d: Count = 8
    kept: Probability = 0.8
    width: Count = 64
    batch: Count = 64
    steps: Count = 100
    lr: Positive = 5e-4

    @property
    def watched(self) -> list[int]:
        """After how many steps the losses are read."""
        return sorted({round(k) for k in np.geomspace(1, self.steps, round(10 * np.log10(self.steps)) + 1)})


experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1}, stored="longer",
    beside={"step": (lambda s: s.watched, "step of Adam", "count")},
    gives={
        "train": ("training loss", "1", ("n", "seed", "step")),
        "test": ("test loss", "1", ("n", "seed", "step")),
    },
    presets={
        "tiny": ("A blink", dict(n=(8, 16), width=8, batch=8, steps=20)),
        "longer": ("Ten seeds: some minutes", dict(seed=tuple(range(10)), steps=4000)),
    },
)  # fmt: skip


def start(s: Setting) -> list[Tensor]:
    """Weights and biases, seeds first."""
    sizes = ((s.d, s.width), (s.width, s.width), (s.width, s.d))
    weights = [rng.normal(size, s.seed, f"layer {k}", dtype=torch.float32) * size[0] ** -0.5
               for k, size in enumerate(sizes)]  # fmt: skip
    weights[-1] = 0.1 * weights[-1]  # near the answer zero
    return weights + [torch.zeros(len(s.seed), 1, s.width) for _ in range(2)]


def denoise(params: list[Tensor], x: Tensor) -> Tensor:
    """The noise in noisy samples."""
    first, second, last, b, c = params
    return torch.tanh(torch.tanh(x @ first + b) @ second + c) @ last


def loss(params: list[Tensor], x: Tensor, noise: Tensor, kept: float) -> Tensor:
    """Per coordinate, (seed,)."""
    return (denoise(params, kept**0.5 * x + (1 - kept) ** 0.5 * noise) - noise).square().mean((-2, -1))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Losses along training, (seed, step)."""
    x, new = (rng.normal((count, s.d), s.seed, role, dtype=torch.float32).to(device)
              for count, role in ((s.n, "samples"), (READ, "new samples")))  # fmt: skip
    noise = rng.normal((READ, s.d), s.seed, "noise of the readings", dtype=torch.float32).to(device)
    shown = x[:, torch.arange(READ) % s.n]
    params = [part.to(device).requires_grad_() for part in start(s)]
    adam, found = torch.optim.Adam(params, s.lr), []
    streams = [rng.generator(seed, f"batches {s.n}") for seed in s.seed]
    for k in range(1, s.steps + 1):
        which = torch.stack([torch.randint(s.n, (s.batch, 1), generator=stream) for stream in streams]).to(device)
        epsilon = torch.stack([torch.randn(s.batch, s.d, generator=stream) for stream in streams]).to(device)
        adam.zero_grad()
        loss(params, x.gather(1, which.expand(-1, -1, s.d)), epsilon, s.kept).sum().backward()
        adam.step()
        if k in s.watched:
            with torch.no_grad():
                found.append(torch.stack([loss(params, part, noise, s.kept) for part in (shown, new)]))
    train, test = torch.stack(found, -1).double()
    return {"train": train, "test": test}


def clocks_of(found: xr.Dataset) -> xr.Dataset:
    """When half is learned and when the test loss is 10 % above its best, in steps: (n, seed)."""
    step, marks = torch.tensor(found.step.values, dtype=torch.float64), {"learned": [], "risen": []}
    for n in found.n:
        parts = (torch.tensor(found[name].sel(n=n).values) for name in ("train", "test"))
        read = landmarks(*parts, step)
        for name, rows in marks.items():
            rows.append(read[name].numpy())
    coordinates = {"n": found.n, "seed": found.seed}
    return xr.Dataset({name: (("n", "seed"), np.stack(rows)) for name, rows in marks.items()}, coordinates)


run = experiment.run
