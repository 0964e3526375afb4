"""True tanh features beside Gaussian ones of the same two moments, on the same normal samples and as many of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook.domains import Count, Natural, Probability
from flbook.lectures.foundation_models import two_clocks
from flbook.lectures.foundation_models.two_clocks import tanh_denoiser
from flbook.lectures.foundation_models.two_clocks.relaxation import landmarks
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    each: tuple[Count, ...] = axis([4, 16], "features for each sample")
    n: tuple[Count, ...] = axis([32, 64], "samples n")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    d: Count = 16
    kept: Probability = 0.8

    def check(self) -> None:
        """Refuse what leaves a direction without samples."""
        if min(self.n) <= self.d:
            raise ValueError(f"n must be above d = {self.d}, or some directions have no sample; got {min(self.n)}")
        if not 0 < self.kept < 1:
            raise ValueError(f"kept must lie between 0 and 1, ends excluded; got {self.kept}")


NAMES = {"learned": "half learned", "half_gap": "half of the end's gap", "best": "best test loss",
         "end": "test loss at the end"}  # fmt: skip

experiment = Experiment(
    Setting, version=1, loops=("each", "n", "seed"), chunk={"each": 1, "n": 1}, stored="longer",
    devices=("cpu",),  # one small problem after the other
    gives={f"{kind}_{name}": (f"{kind} features: {words}", "1")
           for kind in ("tanh", "gaussian") for name, words in NAMES.items()},
    presets={
        "tiny": ("A blink", dict(each=(4,), n=(12, 24), seed=(0, 1), d=8)),
        "longer": ("Ten seeds: a minute", dict(seed=tuple(range(10)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Landmarks of one draw, of both kinds of features."""
    m, times = s.each * s.n, tanh_denoiser.TIMES
    true = tanh_denoiser.Setting(data=("normal",), n=(s.n,), seed=(s.seed,), m=m, d=s.d, kept=s.kept)
    x, _ = tanh_denoiser.draw(true, "normal", s.n, s.seed)
    flows = {"tanh": tanh_denoiser.relaxation(true, "normal", s.n, s.seed),
             "gaussian": two_clocks.equivalent(x[None], m, s.kept, (s.seed,))}  # fmt: skip
    found = {}
    for kind, flow in flows.items():
        curves = (torch.atleast_2d(part) for part in flow.losses(times))
        marks = landmarks(*curves, times, s.kept)
        found |= {f"{kind}_{name}": marks[name][0] for name in NAMES}
    return found


run = experiment.run
