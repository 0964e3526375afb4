"""How much of the table is needed, by the modulus: accuracy after a fixed number of rounds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Probability
from flbook.lectures.representation.grokking.modular_table import ModularTable
from flbook.lectures.representation.grokking.recursive_machine import batches, progress, recursion
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    p: tuple[Count, ...] = axis([17, 23], "modulus p")
    share: tuple[Probability, ...] = axis([0.3, 0.4, 0.5, 0.6, 0.7], "share of the table f")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    rounds: Count = 20


experiment = Experiment(
    Setting, version=1, loops=("p", "share"), chunk={"p": 1, "share": 1}, stored="longer",
    gives={"accuracy": ("test accuracy after the last round", "1"), "progress": ("progress R in it", "1")},
    presets={
        "tiny": ("A blink", dict(p=(7,), share=(0.5,), seed=(0, 1), rounds=2)),
        "longer": ("Three moduli, a minute", dict(p=(17, 23, 31))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Accuracy and progress, (seed,) each."""
    table, found = ModularTable(s.p, s.share), []
    for some in batches(s.seed, table.n):
        *_, last = recursion(s.p, table.draw(some), s.rounds, devices.device(device))
        found.append(torch.stack([last.accuracy, progress(last.metric)]))
    accuracy, size = torch.cat(found, 1)
    return {"accuracy": accuracy, "progress": size}


run = experiment.run
