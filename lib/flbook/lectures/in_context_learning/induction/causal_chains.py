r"""Contexts with a causal parent: every token is drawn from a row of a transition matrix that only this context has.

The rows of :math:`\pi` follow a Dirichlet law, :math:`\pi = \rho I + (1 - \rho)\,\pi_0` if tokens are sticky. A root is
drawn from the stationary law :math:`\mu` of :math:`\pi`, any other token i from the row of its parent. Then comes a
query, uniform over the tokens, and the next token is drawn from the query's row.

Source: Nichani, Damian and Lee (2024).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural, Positive, Probability

ROOT = -1  # the parent of a token that has none


class Contexts(NamedTuple):
    """Contexts, what is asked, and what comes next."""

    tokens: Int[Tensor, "*E n T"]
    query: Int[Tensor, "*E n"]
    next: Int[Tensor, "*E n"]
    rows: Float[Tensor, "*E n S"]  # the law of the next token, the query's row of the matrix


def stationary(pi: Float[Tensor, "*E S S"]) -> Float[Tensor, "*E S"]:
    r"""The law that :math:`\pi` leaves as it is: :math:`\mu^\top(I - \pi + 11^\top) = 1^\top`."""
    ones = torch.ones_like(pi)
    return torch.linalg.solve((torch.eye(pi.shape[-1]).to(pi) - pi + ones).mT, ones[..., :1])[..., 0]


def transitions(shape: tuple[int, ...], tokens: int, alpha: float, rho: float, seed: int) -> Float[Tensor, "*E S S"]:
    """Matrices with Dirichlet rows, sticky or not."""
    gamma = rng.numpy_generator(seed, "transitions").standard_gamma(alpha, (*shape, tokens, tokens))
    pi = torch.from_numpy(gamma)
    pi = pi / pi.sum(-1, keepdim=True)
    return rho * torch.eye(tokens, dtype=pi.dtype) + (1 - rho) * pi


@dataclass(frozen=True)
class CausalContexts(Checked):
    """Contexts of one causal graph.

    Parameters
    ----------
    tokens, length
        Different tokens S, and the places T of a context.
    alpha
        Of the Dirichlet law; 1 is uniform.
    rho
        Stickiness.
    tree
        Seed of the graph, in which each place's parent is drawn from those before; a chain if None.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> CausalContexts(tokens=3, length=4).parents
    (-1, 0, 1, 2)
    >>> CausalContexts(tokens=3, length=4).draw(5, seed=(0, 1)).tokens.shape
    torch.Size([2, 5, 4])
    """

    tokens: Count = 3
    length: Count = 20
    alpha: Positive = 1.0
    rho: Probability = 0.0
    tree: Natural | None = None

    @property
    def parents(self) -> tuple[int, ...]:
        """Of every place."""
        if self.tree is None:
            return tuple(range(-1, self.length - 1))
        u = rng.normal((self.length,), self.tree, "graph").mul(0.5**0.5).erf().add(1).div(2)  # uniform
        return (ROOT, *(int(u[i] * i) for i in range(1, self.length)))

    def draw(self, count: int, seed: int | tuple[int, ...] = 0) -> Contexts:
        """So many contexts; a tuple of seeds gives a leading axis."""
        if isinstance(seed, tuple):
            return Contexts(*(torch.stack(part) for part in zip(*(self.draw(count, one) for one in seed), strict=True)))
        pi = transitions((count,), self.tokens, self.alpha, self.rho, seed)
        u = torch.rand(self.length + 2, count, generator=rng.generator(seed, "tokens"), dtype=torch.float64)
        below, mu, every = pi.cumsum(-1), stationary(pi).cumsum(-1), torch.arange(count)
        found: list[Tensor] = []
        for place, parent in enumerate(self.parents):
            law = mu if parent == ROOT else below[every, found[parent]]
            found.append(_pick(law, u[place]))
        query = (u[-2] * self.tokens).long().clamp(max=self.tokens - 1)
        return Contexts(torch.stack(found, -1), query, _pick(below[every, query], u[-1]), pi[every, query])


def _pick(below: Float[Tensor, "n S"], u: Float[Tensor, " n"]) -> Int[Tensor, " n"]:
    """A token each, from the sums of its law."""
    return (u[:, None] > below[:, :-1]).sum(-1)
