r"""A network for comparison: :math:`f(x) = V(Wx + b)^2 + v` on the same table, trained by AdamW on the squared loss.

Its average gradient outer product M shows which family of features it has: the lower left block of the root of M is
measured as that of the machine is.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices, observe
from flbook.domains import Count, Natural, NonNegative, Positive, Probability
from flbook.lectures.representation.grokking.modular_table import SPLITS, ModularTable, inputs, labels
from flbook.lectures.representation.grokking.recursive_machine import accuracy, explained, root
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis
from flbook.training import losses
from flbook.training.network import Training
from flbook.training.optimizers import Adam, WeightDecay


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    split: tuple[Literal[SPLITS], ...] = axis(["random", "equal a-b", "uneven a-b"], "split")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    p: Count = 31
    share: Probability = 0.61
    width: Count = 256
    lr: Positive = 0.005
    decay: NonNegative = 1.0
    steps: Count = 400
    every: Count = 50

    @property
    def watched(self) -> list[int]:
        """The steps after which the network is looked at."""
        return list(range(0, self.steps + 1, self.every))


NAMES = {
    "accuracy": "test accuracy", "train": "training accuracy",
    "circulant": "variance of C that is a function of a - b", "hankel": "variance of C that is a function of a + b",
}  # fmt: skip

experiment = Experiment(
    Setting, version=1, loops=("split",), chunk={"split": 1}, stored="longer",
    beside={"step": (lambda s: s.watched, "step", "count")},
    gives={name: (words, "1", ("split", "seed", "step")) for name, words in NAMES.items()},
    presets={
        "tiny": ("A blink", dict(p=5, seed=(0, 1), width=8, steps=4, every=2)),
        "longer": ("More steps, minutes", dict(steps=600)),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """What is measured at the watched steps, (seed, step)."""
    train, test = ModularTable(s.p, s.share, s.split).draw(s.seed)
    x, fresh = (inputs(part, s.p).float() for part in (train, test))
    network = MLP((2 * s.p, s.width, s.p), torch.square, gain=1.0, seed=s.seed)
    problem = Training(network, x, labels(train, s.p), losses.SquaredClasses()).to(devices.device(device))
    x, fresh = (part.to(devices.device(device)) for part in (x, fresh))
    rule, params, found = WeightDecay(Adam(s.lr), s.decay), problem.start(), []
    state, products = rule.start(params), observe.members(observe.agop, "x")
    for step in range(s.steps + 1):
        if step % s.every == 0:
            right = [accuracy(problem.predict(params, part), pairs.to(part.device), s.p)
                     for part, pairs in ((fresh, test), (x, train))]
            found.append(torch.stack([*right, *explained(root(products(problem.predict, params, x).double()))]))
        params, state = rule.step(problem, params, state)
    return dict(zip(NAMES, torch.stack(found, -1).double(), strict=True))


run = experiment.run
