"""The table of addition modulo p: which of its p^2 entries a learner is shown."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural, Probability, checked_arguments

SPLITS = ("random", "equal a-b", "uneven a-b", "equal a+b")


class TablePairs(NamedTuple):
    """Pairs that are shown, and pairs that are kept for the test."""

    train: Int[Tensor, "*E n 2"]
    test: Int[Tensor, "*E t 2"]


@dataclass(frozen=True)
class ModularTable(Checked):
    """Pairs (a, b) modulo p, of which a share is shown; the label of a pair is a + b modulo p.

    Parameters
    ----------
    p
        The modulus, at least 3.
    share
        The share of the table that is shown, rounded to a multiple of p pairs.
    split
        ``"random"``: all sets of this size are equally likely; ``"equal a-b"`` and ``"equal a+b"``: all that show
        every value of a - b, or of a + b, equally often; ``"uneven a-b"``: half of the values of a - b in all their
        pairs but one, the others seldom.

    Raises
    ------
    ValueError
        If p or the share is out of its domain, or nothing is left to show or to test.

    Examples
    --------
    >>> table = ModularTable(p=5, share=0.6, split="equal a-b")
    >>> differences(table.draw(0).train, 5).tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0]
    """

    p: Count = 31
    share: Probability = 0.61
    split: Literal[SPLITS] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p < 3 or not 0 < self.n < self.p**2:
            raise ValueError(f"p must be at least 3 and leave pairs to show and to test; got p = {self.p} and the "
                             f"share {self.share}, {self.n} of {self.p**2} pairs")

    @property
    def n(self) -> int:
        """How many pairs are shown."""
        return self.p * round(self.share * self.p)

    @checked_arguments
    def draw(self, seed: Natural | tuple[Natural, ...] = 0) -> TablePairs:
        """The pairs of one split; a tuple of seeds gives one leading ensemble axis."""
        order = rng.over_seeds(self._order, seed)
        pairs = torch.stack([order // self.p, order % self.p], -1)
        return TablePairs(pairs[..., : self.n, :], pairs[..., self.n :, :])

    def _order(self, seed: int) -> Int[Tensor, " pairs"]:
        """All p^2 pairs, a p + b, those that are shown first."""
        p, mix = self.p, rng.generator(seed, "table")
        if self.split == "random":
            return torch.randperm(p * p, generator=mix)
        b = torch.rand(p, p, generator=mix).argsort(-1)  # a row for each value of a - b or a + b
        group = torch.randperm(p, generator=mix)[:, None].expand(p, p)
        a = (group - b if self.split == "equal a+b" else group + b) % p
        often, half = self.n // p, p // 2
        more = min(p - 1 - often, often - 1) if self.split == "uneven a-b" else 0
        count = often + more * torch.tensor([1] * half + [-1] * half + [0] * (p % 2))
        hidden = torch.arange(p) >= count[:, None]
        return (a * p + b).flatten()[hidden.flatten().long().argsort(stable=True)]


def labels(pairs: Int[Tensor, "*E n 2"], p: int) -> Int[Tensor, "*E n"]:
    """The sums a + b modulo p."""
    return pairs.sum(-1) % p


def differences(pairs: Int[Tensor, "*E n 2"], p: int) -> Float[Tensor, "*E p"]:
    """The histogram N_t: how many pairs have a - b = t modulo p."""
    t = (pairs[..., 0] - pairs[..., 1]) % p
    return torch.nn.functional.one_hot(t, p).sum(-2).double()


def inputs(pairs: Int[Tensor, "*E n 2"], p: int) -> Float[Tensor, "*E n q"]:
    """Both numbers one-hot, one behind the other: the vector with the ones at a and p + b."""
    return torch.nn.functional.one_hot(pairs, p).flatten(-2).double()


def targets(pairs: Int[Tensor, "*E n 2"], p: int) -> Float[Tensor, "*E n p"]:
    """The labels one-hot."""
    return torch.nn.functional.one_hot(labels(pairs, p), p).double()
