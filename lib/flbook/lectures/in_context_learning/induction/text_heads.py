r"""When does an induction head form on real text? A transformer of attention only reads Python's standard library.

The share of windows that repeat their first words is the control. Watched on the way, at steps of equal ratios: how
much each head looks at the word before (previous-token score) and, on random words of which some come twice, at the
word after the earlier occurrence (induction score); losses there, and where a natural text repeats a pair of words. At
the end, the same losses with each head left out. And the statistic of the first gradient, read off the same windows.
"""

import sys
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from flbook import rng
from flbook.domains import Count, Natural, Positive, Probability
from flbook.lectures.in_context_learning.induction.source_words import (
    LookBack,
    RepeatedWindows,
    Windows,
    after_copies,
    after_pairs,
    chunks,
    corpus,
    random_repeats,
    windows,
)
from flbook.lectures.in_context_learning.induction.word_transformer import WordTransformer
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.pretrain import Recipe, pretrain

KINDS = {"two layers": (2, False), "one layer": (1, False), "one layer, smeared keys": (1, True)}
DEEPEST = 2  # layers that a result has room for


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. In the book: ten steps."""

    kind: tuple[Literal[tuple(KINDS)], ...] = axis(["two layers"], "network")
    share: tuple[Probability, ...] = axis([0.0, 0.5], "share of windows that repeat")
    seed: tuple[Natural, ...] = axis(range(2), "seed")  # of a network's start and of its windows
    folder: str = ""  # of the text; this Python's own library if empty
    files: Natural = 0  # of the text, 0: all
    vocabulary: Count = 2000
    length: Count = 128  # words that a network reads
    width: Count = 128
    heads: Count = 4  # of each layer
    sigma_0: Positive = 0.05  # of all weights at the start
    steps: Count = 10
    batch: Count = 8  # windows of a step
    lr: Positive = 3e-3
    warmup: Natural = 200
    precision: Literal["float32", "bfloat16"] = "float32"
    points: Count = 64  # windows of a test
    looks: Count = 60  # steps at which is looked, at most
    counted: Count = 20_000  # windows of the statistic
    lags: Count = 9

    def check(self) -> None:
        """Refuse windows that hold more different words than there are."""
        if self.length > self.vocabulary - 1:
            raise ValueError(f"length must be at most vocabulary - 1 = {self.vocabulary - 1}; got {self.length}")


HEADS = ("kind", "share", "seed", "step", "layer", "head")
LOSSES = ("kind", "share", "seed", "step")
WITHOUT = ("kind", "share", "seed", "layer", "head")
experiment = Experiment(
    Setting, version=1, loops=("kind", "seed"), chunk={"kind": 1, "seed": 1}, stored="gpu",
    gives={
        "previous": ("attention to the word before", "1", HEADS),
        "induction": ("attention to the word after the earlier occurrence, random words", "1", HEADS),
        "natural_induction": ("the same after a repeated pair of words in the text", "1", HEADS),
        "copy_loss": ("loss on random words that come again", "nats", LOSSES),
        "text_loss": ("loss on the text", "nats", LOSSES),
        "pair_loss": ("loss on the text after a repeated pair of words", "nats", LOSSES),
        "copy_without": ("loss on random words that come again, one head left out", "nats", WITHOUT),
        "text_without": ("loss on the text, one head left out", "nats", WITHOUT),
        "pair_without": ("loss on the text after a repeated pair of words, one head left out", "nats", WITHOUT),
        "statistic": ("slope of the first gradient", "1", ("share", "seed", "lag")),
        "right": ("how often the word after the earlier pair is the next one", "1", ("seed",)),
        "text": ("the text: minor version of Python 3, files, words, share without a number", "1", ("item",)),
    },
    beside={
        "step": (lambda s: looked_at(s), "training step", "1"),
        "layer": (lambda s: range(1, DEEPEST + 1), "layer", "1"),
        "head": (lambda s: range(1, s.heads + 1), "head", "1"),
        "lag": (lambda s: range(s.lags), "places back", "1"),
        "item": (["minor version", "files", "words", "without a number"], "fact about the text"),
    },
    missing=("previous", "induction", "natural_induction", "copy_without", "text_without", "pair_without"),
    presets={
        "tiny": ("Three files, a few steps of narrow networks", dict(
            kind=tuple(KINDS), files=3, vocabulary=40, length=16, width=8, heads=2, steps=4, batch=4, points=8,
            looks=3, counted=50, lags=3)),
        "gpu": ("Six shares, four starts, 98 million words each: minutes on a GPU, days on one core", dict(
            share=(0.0, 0.06, 0.12, 0.25, 0.5, 1.0), seed=tuple(range(4)), steps=12_000, batch=64,
            precision="bfloat16")),
        "smeared": ("One layer, with and without smeared keys: a minute on a GPU", dict(
            kind=tuple(KINDS)[1:], share=(0.0, 0.25, 1.0), seed=(0, 1, 2), steps=8000, batch=64, precision="bfloat16")),
        "long": ("Two shares, four times as long: minutes on a GPU", dict(
            share=(0.25, 0.5), seed=(0, 1), steps=48_000, batch=64, precision="bfloat16")),
        "small": ("Narrow networks on a CPU: minutes", dict(
            share=(0.0, 0.1, 0.5), seed=(0, 1, 2), vocabulary=500, length=64, width=64, steps=4000, batch=16)),
    },
)  # fmt: skip
experiment.kept(single_precision)


def looked_at(s: Setting) -> list[int]:
    """The steps before which is looked, 0 first, the end last."""
    inner = np.geomspace(min(50, s.steps), s.steps, max(2, s.looks - 1)).round().astype(int)
    return [0, *np.unique(inner).tolist()]


@dataclass(frozen=True, eq=False)
class Tests:
    """What networks are tested on: random words that come twice, and windows of the text; and where to look there."""

    copies: Int[Tensor, "b L"]
    copied: LookBack
    text: Int[Tensor, "b L"]
    pairs: LookBack

    @classmethod
    def of(cls, s: Setting, words: Int[Tensor, " n"], device: str) -> "Tests":
        """For one seed."""
        copies, first = random_repeats(s.vocabulary, s.length, s.points, s.seed)
        start = torch.randint(len(words) - s.length, (s.points,), generator=rng.generator(s.seed, "test windows"))
        text = windows(words.to(device), start.to(device), s.length)
        return cls(copies.to(device), after_copies(first.to(device), s.length), text, after_pairs(text))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | np.ndarray]:
    """Networks of one kind and start for all shares at once, (share, ...)."""
    found = corpus(s.vocabulary, s.files, s.folder)
    words, tests = found.train.to(device), Tests.of(s, found.test, device)
    layers, smeared = KINDS[s.kind]
    seed = (s.seed,) * len(s.share)
    network = WordTransformer(s.vocabulary, s.length, s.width, layers, s.heads, smeared, s.sigma_0, seed).to(device)
    looks: dict[int, dict[str, Tensor]] = {}

    def watch(step: int) -> None:
        if step in steps:
            looks[step] = look(network, tests)

    steps = set(looked_at(s))
    recipe = Recipe(s.steps, s.batch, s.lr, s.warmup, "constant", beta_2=0.98, precision=s.precision)
    data = RepeatedWindows(words, s.length + 1, s.share, watch)
    pretrain(network, data, recipe, s.seed, device, next_word)
    watch(s.steps)
    given = {name: torch.stack([looks[step][name] for step in looked_at(s)], 1) for name in looks[0]}
    right = tests.text[tests.pairs.row, tests.pairs.place + 1] == tests.text[tests.pairs.row, tests.pairs.after]
    python = float(sys.version_info.minor)
    text = [python, found.files, len(found.train) + len(found.test), (found.train == 0).float().mean().item()]
    return given | without(network, tests, s.heads) | {
        "statistic": statistic(s, words), "right": right.float().mean(), "text": np.array(text)
    }  # fmt: skip


run = experiment.run


def next_word(network: WordTransformer, batch: Windows) -> Float[Tensor, " E"]:
    """Cross-entropy of the next word, in nats, a mean over places and windows."""
    return losses(network(batch.words[..., :-1]), batch.words[..., 1:]).mean((-2, -1))


def losses(logits: Float[Tensor, "*B V"], words: Int[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Cross-entropy at every place."""
    return functional.cross_entropy(logits.flatten(0, -2), words.flatten(), reduction="none").view(words.shape)


@torch.no_grad()
def look(network: WordTransformer, tests: Tests) -> dict[str, Tensor]:
    """Scores (share, layer, head) and losses (share,)."""
    members, far = network.embedding.shape[0], network.answer.__len__()
    maps: list[Tensor] = []
    found = test_losses(network, tests)
    network(tests.copies.expand(members, -1, -1), maps=maps)
    scores = {"previous": [m.diagonal(-1, -2, -1).mean((1, 3)) for m in maps],
              "induction": [at(m, tests.copied).mean(1) for m in maps]}  # fmt: skip
    maps = []
    network(tests.text.expand(members, -1, -1), maps=maps)
    scores["natural_induction"] = [at(m, tests.pairs).mean(1) for m in maps]
    missing = [torch.full_like(scores["previous"][0], torch.nan)] * (DEEPEST - far)
    return {name: torch.stack(part + missing, 1) for name, part in scores.items()} | found


def at(attention: Float[Tensor, "E b h L L"], where: LookBack) -> Float[Tensor, "E k h"]:
    """Attention from the places to those to be looked at."""
    return attention[:, where.row, :, where.place, where.after].movedim(0, 1)


@torch.no_grad()
def test_losses(network: WordTransformer, tests: Tests, kept: Tensor | None = None) -> dict[str, Tensor]:
    """Losses on random words that come again, on the text, and on the text after a repeated pair of words."""
    members, found = network.embedding.shape[0], {}
    for name, words, where in (("copy", tests.copies, tests.copied), ("pair", tests.text, tests.pairs)):
        words = words.expand(members, -1, -1)
        every = losses(network(words[..., :-1], kept), words[..., 1:])
        found[f"{name}_loss"] = every[:, where.row, where.place].mean(1)
    return found | {"text_loss": every.mean((1, 2))}


def without(network: WordTransformer, tests: Tests, heads: int) -> dict[str, Tensor]:
    """The same with one head left out, (share, layer, head)."""
    layers = len(network.answer)
    found = {}
    for layer in range(DEEPEST):
        for head in range(heads):
            kept = torch.ones(layers, heads, device=network.embedding.device)
            if layer < layers:
                kept[layer, head] = 0.0
            for name, values in test_losses(network, tests, kept).items():
                values = values if layer < layers else torch.full_like(values, torch.nan)
                found.setdefault(name.replace("loss", "without"), []).append(values)
    return {name: torch.stack(values, 1).unflatten(1, (DEEPEST, heads)) for name, values in found.items()}


def statistic(s: Setting, words: Int[Tensor, " n"]) -> Float[Tensor, "share lag"]:
    r"""Minus the gradient of the loss at uniform attention with respect to a score of lag l, but for its scale.

    .. math:: g_l = E\,\frac1T \sum_{i=l+1}^{T} 1\{x_{i-l}=x_T\} \Big(\frac{1\{x_i=x_{T+1}\}}{\hat\mu(x_{T+1})}-1\Big)

    over windows of several lengths T; those that do not hold the next word count as 0, and :math:`\hat\mu` is the
    window's own frequency.
    """
    data, total, ends = RepeatedWindows(words, s.length + 1, s.share), 0.0, quarters(s.length)
    for part in chunks(s.counted, 1000):
        window = data.draw(min(1000, s.counted - part.start), s.seed, 10**8 + part.start, words.device).words
        total = total + sum(slopes(window[..., : end + 1], s.lags).sum(-2) for end in ends)
    return total / (s.counted * len(ends))


def quarters(length: int) -> list[int]:
    """Lengths of a quarter, a half, three quarters and the whole."""
    return [length * k // 4 for k in (1, 2, 3, 4)]


def slopes(window: Int[Tensor, "share b T1"], lags: int) -> Float[Tensor, "share b lag"]:
    """The statistic of each window, whose last word is the next one."""
    context, follows, length = window[..., :-1], window[..., -1:], window.shape[-1] - 1
    same = (context == follows).float()
    often = same.mean(-1, keepdim=True)
    ratio = torch.where(often > 0, same / often - 1, 0.0)
    last = (context == context[..., -1:]).float()
    lagged = [(last[..., : length - lag] * ratio[..., lag:]).sum(-1) / length for lag in range(lags)]
    return torch.stack(lagged, -1)
