r"""The label alone: two-layer ReLU networks on all bits, trained end to end by Adam on a fixed sample.

Products of two and of four bits they learn from a few thousand samples of 32 bits; of eight they memorise them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis
from flbook.training.pretrain import Recipe, pretrain


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    k: tuple[Count, ...] = axis([4, 8], "hidden bits k")
    n: tuple[Count, ...] = axis([3000], "samples n")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 32
    width: Count = 256
    steps: Count = 1000
    batch: Count = 128
    lr: Positive = 3e-3
    points: Count = 2000  # fresh inputs

    def check(self) -> None:
        """Refuse a tree that does not fit."""
        for k in self.k:
            ParityTree(self.d, k)


experiment = Experiment(
    Setting, version=1, loops=("k",), chunk={"k": 1}, stored="gpu",
    gives={"train": ("training accuracy", "fraction"), "test": ("test accuracy", "fraction")},
    presets={
        "tiny": ("A blink", dict(k=(2, 4), n=(20, 40), seed=(0, 1), d=6, width=8, steps=5, batch=8, points=50)),
        "gpu": ("Two to eight bits, up to 30,000 samples; seconds on a GPU", dict(
            k=(2, 4, 8), n=(300, 1000, 3000, 10000, 30000), steps=6000, batch=256)),
    },
)  # fmt: skip


class Labelled(NamedTuple):
    """A batch."""

    x: Float[Tensor, "S b d"]
    y: Float[Tensor, "S b"]


@dataclass(frozen=True)
class Samples:
    """A fixed sample for each member of an ensemble, of which a step sees some."""

    x: Float[Tensor, "S n d"]
    y: Float[Tensor, "S n"]
    sizes: Int[Tensor, " S"]

    def draw(self, batch: int, seed, step: int, device) -> Labelled:
        """The batch of a step; a pure function of the step."""
        u = torch.rand(batch, generator=rng.generator(0, f"batch {step}", device), device=device)
        places = (u * self.sizes[:, None]).long()
        return Labelled(self.x.gather(1, places[..., None].expand(*places.shape, self.x.shape[-1])),
                        self.y.gather(1, places))


def logistic_loss(network: MLP, drawn: Labelled) -> Float[Tensor, " S"]:
    """Mean over the batch, in nats."""
    return torch.nn.functional.softplus(-drawn.y * network(drawn.x)[..., 0]).mean(-1)


@experiment.cell
@torch.no_grad()
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Accuracies after training, (n, seed), on the training sample and on fresh inputs."""
    where, tree, lead = devices.device(device), ParityTree(s.d, s.k), (len(s.n), len(s.seed))
    drawn, fresh = tree.draw(max(s.n), s.seed), tree.draw(s.points, s.seed, "test")
    x, y, x_test, y_test = (part.to(where).repeat(lead[0], *[1] * (part.ndim - 1)) for part in
                            (drawn.tokens[..., : s.d], drawn.y, fresh.tokens[..., : s.d], fresh.y))
    sizes = torch.tensor(s.n, device=where).repeat_interleave(lead[1])
    network = MLP((s.d, s.width, 1), gain=2.0, seed=s.seed * lead[0])
    with torch.enable_grad():
        recipe = Recipe(s.steps, s.batch, s.lr, clip=0.0)
        pretrain(network, Samples(x, y, sizes), recipe, s.seed, where, logistic_loss)
    used = torch.arange(max(s.n), device=where) < sizes[:, None]
    train = ((network(x)[..., 0] * y > 0) & used).sum(-1) / sizes
    test = (network(x_test)[..., 0] * y_test > 0).double().mean(-1)
    return {"train": train.double().cpu().reshape(lead), "test": test.cpu().reshape(lead)}


run = experiment.run
