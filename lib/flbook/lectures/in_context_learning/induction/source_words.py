"""The source of Python's own standard library as words: a text that lies on every machine, and what repeats in it.

A word is a name, a number, a mark or the end of a line. The most frequent words of the training files have numbers from
1 on, all others the number 0. Every tenth file is kept for tests. Files differ from one version of Python to the next.
"""

import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from flbook import rng

WORD = re.compile(r"\n|\w+|[^\w\s]")
LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
HELD_OUT = 10  # every tenth file


class Corpus(NamedTuple):
    """Words as numbers, and how many files they come from."""

    train: Int[Tensor, " n"]
    test: Int[Tensor, " m"]
    files: int


@lru_cache(maxsize=2)
def corpus(vocabulary: int, files: int = 0, folder: str = "") -> Corpus:
    """The words of all files below a folder, or of the first few; the folder is that of the standard library if empty.

    Raises ValueError if there are fewer than two files.
    """
    root = Path(folder or sysconfig.get_paths()["stdlib"])
    found = sorted(path for path in root.rglob("*.py") if not LEFT_OUT & set(path.relative_to(root).parts))
    found = found[: files or None]
    if len(found) < 2:
        raise ValueError(f"the folder must hold at least two files of Python; {root} holds {len(found)}")
    words = [WORD.findall(path.read_text(encoding="utf-8", errors="replace")) for path in found]
    test = [k % HELD_OUT == 1 for k in range(len(found))]
    counted = Counter(word for part, held in zip(words, test, strict=True) if not held for word in part)
    ranked = sorted(counted, key=lambda word: (-counted[word], word))[: vocabulary - 1]
    number = {word: k for k, word in enumerate(ranked, 1)}

    def numbers(held_out: bool) -> Tensor:
        rows = (part for part, held in zip(words, test, strict=True) if held is held_out)
        return torch.tensor([number.get(word, 0) for part in rows for word in part], dtype=torch.int32)

    return Corpus(numbers(False), numbers(True), len(found))


def windows(words: Int[Tensor, " n"], start: Int[Tensor, "*B"], length: int) -> Int[Tensor, "*B L"]:
    """The words from each start on."""
    return words[start[..., None] + torch.arange(length, device=words.device)].long()


def repeated(window: Int[Tensor, "*B L"], first: Int[Tensor, "*B"]) -> Int[Tensor, "*B L"]:
    """A window whose first words, `first` many, come twice before it goes on."""
    place = torch.arange(window.shape[-1], device=window.device)
    return window.gather(-1, torch.where(place < first[..., None], place, place - first[..., None]))


def lengths(shape: tuple[int, ...], length: int, draw: torch.Generator, device="cpu") -> Int[Tensor, "*B"]:
    """Lengths of what is repeated: from a quarter of the window to a half, so that no fixed distance tells the copy."""
    return torch.randint(length // 4, length // 2 + 1, shape, generator=draw, device=device)


class Windows(NamedTuple):
    """Windows of a text; the networks of an ensemble read those of their own share of repetition."""

    words: Int[Tensor, "*E b L"]


class RepeatedWindows:
    """Windows of a text, of which a share repeats its first words; the same windows for every share.

    Parameters
    ----------
    words
        The text.
    length
        Words of a window, the last of which is only predicted.
    share
        Of the windows that repeat, one for each member of an ensemble.
    watch
        Called with a step before its windows are drawn.
    halves
        For each member whether what repeats is always a half, so that copies have one distance.
    """

    def __init__(self, words: Int[Tensor, " n"], length: int, share: tuple[float, ...], watch=None,
                 halves: tuple[bool, ...] | None = None):  # fmt: skip
        self.words, self.length, self.watch, self.halves = words, length, watch, halves
        self.share = torch.tensor(share)

    def draw(self, batch: int, seed: int, step: int = 0, device="cpu") -> Windows:
        """The windows of a step, shape ``(share, batch, length)``."""
        if self.watch:
            self.watch(step)
        draw = rng.generator(seed, f"windows {step}", device)
        start = torch.randint(len(self.words) - self.length, (batch,), generator=draw, device=device)
        plain = windows(self.words, start, self.length)
        twice = repeated(plain, lengths((batch,), self.length, draw, device))
        if self.halves:
            half = repeated(plain, torch.full((batch,), self.length // 2, device=device))
            twice = torch.where(torch.tensor(self.halves, device=device)[:, None, None], half, twice)
        chosen = torch.rand(batch, generator=draw, device=device) < self.share.to(device)[:, None]
        return Windows(torch.where(chosen[..., None], twice, plain))


def random_repeats(vocabulary: int, length: int, rows: int, seed: int,
                   half: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Rows of words drawn without replacement, the first of which come twice; and how many these are."""
    draw = rng.generator(seed, "random words")
    words = torch.stack([torch.randperm(vocabulary - 1, generator=draw)[:length] + 1 for _ in range(rows)])
    first = torch.full((rows,), length // 2) if half else lengths((rows,), length, draw)
    return repeated(words, first), first


class LookBack(NamedTuple):
    """Places of a window from which an earlier one tells the next word: the row, the place, and where to look."""

    row: Int[Tensor, " k"]
    place: Int[Tensor, " k"]
    after: Int[Tensor, " k"]


def after_copies(first: Int[Tensor, " b"], length: int) -> LookBack:
    """In windows that repeat their first words: the places in the copy whose next word is in the copy, too."""
    place = torch.arange(length, device=first.device)
    row, at = ((place >= first[:, None]) & (place < (2 * first[:, None] - 1).clamp(max=length - 1))).nonzero(
        as_tuple=True
    )
    return LookBack(row, at, at - first[row] + 1)


def after_pairs(window: Int[Tensor, "b L"]) -> LookBack:
    """In a natural text: places whose word and the one before came before as a pair, and the place after the last one.

    Pairs with a word that has no number are left out. The word there need not be the next one.
    """
    pair = window[:, 1:] + window[:, :-1] * (window.max() + 1)
    known = (window[:, 1:] > 0) & (window[:, :-1] > 0)
    length = pair.shape[-1]
    same: Bool[Tensor, "b l l"] = (pair[:, :, None] == pair[:, None]) & known[:, :, None]
    same &= torch.ones(length, length, dtype=torch.bool, device=window.device).tril(-2)
    latest = torch.where(same, torch.arange(length, device=window.device), -1).amax(-1)  # index of the earlier pair
    row, at = (latest[:, :-1] >= 0).nonzero(as_tuple=True)  # the last place has no next word in the window
    return LookBack(row, at + 1, latest[row, at] + 2)


def chunks(count: int, size: int) -> Iterator[slice]:
    """Slices of at most `size`, one after the other."""
    return (slice(k, k + size) for k in range(0, count, size))
