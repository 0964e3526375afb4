r"""Copies at one distance: a head that counts places passes for an induction head, until the distance changes.

The networks of `flbook.lectures.in_context_learning.induction.text_heads`, smaller, on windows of which a share repeats
its first half, at one distance, or its first words at distances that vary. Attention from a word to the one after its
earlier occurrence, on random words whose copy has the distance of a half, or a shorter one.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.in_context_learning.induction.source_words import (
    LookBack,
    RepeatedWindows,
    after_copies,
    corpus,
    random_repeats,
    repeated,
)
from flbook.lectures.in_context_learning.induction.text_heads import at, next_word
from flbook.lectures.in_context_learning.induction.word_transformer import WordTransformer
from flbook.runs import Experiment, Grid, axis
from flbook.training.pretrain import Recipe, pretrain

DISTANCES = ("one", "varied")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    distance: tuple[Literal[DISTANCES], ...] = axis(DISTANCES, "distances of copies in training")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    share: Probability = 0.5  # of windows that repeat
    folder: str = ""  # of the text; this Python's own library if empty
    files: Natural = 0  # of the text, 0: all
    vocabulary: Count = 500
    length: Count = 48
    width: Count = 64
    heads: Count = 2
    sigma_0: Positive = 0.1
    steps: Count = 20
    batch: Count = 32
    lr: Positive = 3e-3
    warmup: Natural = 100
    points: Count = 64


AXES = ("distance", "seed", "step", "layer")
experiment = Experiment(
    Setting, version=1, left=("distance", "seed"), stored="cpu",
    gives={"half": ("attention to the word after the earlier occurrence, half a window away", "1", AXES),
           "other": ("the same at shorter distances", "1", AXES)},
    beside={"step": (lambda s: looked_at(s.steps), "training step"), "layer": ((1, 2), "layer")},
    presets={
        "tiny": ("A blink", dict(files=3, vocabulary=40, length=16, width=8, steps=4, batch=4, points=8)),
        "cpu": ("1,500 steps: minutes on one core", dict(seed=(0, 1, 2), steps=1500)),
    },
)  # fmt: skip


def looked_at(steps: int) -> list[int]:
    """Equally spaced steps."""
    return list(range(0, steps + 1, max(1, steps // 10)))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Scores of the best head, (distance, seed, step, layer)."""
    found, members = corpus(s.vocabulary, s.files, s.folder), len(s.distance) * len(s.seed)
    network = WordTransformer(s.vocabulary, s.length, s.width, 2, s.heads, False, s.sigma_0, s.seed * len(s.distance))
    network, tests, looks = network.to(device), on_copies(s, device), {}

    def watch(step: int) -> None:
        if step in looked_at(s.steps):
            looks[step] = {name: best(network, *test) for name, test in tests.items()}

    halves = tuple(distance == "one" for distance in s.distance for _ in s.seed)
    data = RepeatedWindows(found.train.to(device), s.length + 1, (s.share,) * members, watch, halves)
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, "constant", beta_2=0.98)
    pretrain(network, data, recipe, 0, device, next_word)  # the same windows for all
    watch(s.steps)
    shape = (len(s.distance), len(s.seed))
    return {name: torch.stack([looks[k][name] for k in looked_at(s.steps)], 1).unflatten(0, shape) for name in tests}


run = experiment.run


def on_copies(s: Setting, device: str) -> dict[str, tuple[Tensor, LookBack]]:
    """Random words that come again half a window later, or earlier."""
    words, _ = random_repeats(s.vocabulary, s.length, s.points, 0, half=True)
    first = {"half": torch.full((s.points,), s.length // 2),
             "other": torch.arange(s.points) % (s.length // 4) + s.length // 4}  # fmt: skip
    plain = words[:, : s.length // 2].repeat(1, 2)
    return {name: (repeated(plain, of).to(device), after_copies(of.to(device), s.length)) for name, of in first.items()}


@torch.no_grad()
def best(network: WordTransformer, words: Tensor, where: LookBack) -> Tensor:
    """The score of each layer's best head, (member, layer)."""
    maps: list[Tensor] = []
    network(words.expand(network.embedding.shape[0], -1, -1), maps=maps)
    return torch.stack([at(attention, where).mean(1).amax(-1) for attention in maps], -1)
