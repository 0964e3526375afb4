r"""Two layers of attention on contexts with a parent, and the first gradient of the first.

With the attention :math:`a_{ij}` of place i to j, a softmax over :math:`j \le i` of the matrix A, and a scalar
:math:`\beta` for the second layer, the network says the next token y after the query q by

.. math:: f(y) = \sum_i w_i\, 1\{s_i = y\}, \quad w = \mathrm{softmax}(\beta z), \quad z_i = \sum_j a_{ij} 1\{s_j = q\}.

At A = 0 and small beta minus the slope of the cross-entropy in :math:`a_{ij}` is :math:`\beta g_{ij}/T` with

.. math:: g_{ij} = E\,1\{s_j = q\}\Big(\frac{1\{s_i = y\}}{\hat\mu(y)} - 1\{y \text{ in the context}\}\Big),

:math:`\hat\mu` the frequencies of the context. With the law of y for y itself, the mean over y is taken: a soft label.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.lectures.in_context_learning.induction.causal_chains import ROOT, Contexts, stationary, transitions
from flbook.training.problem import Params, PopulationProblem

LABELS = ("sampled", "soft")


def labels(drawn: Contexts, kind: str) -> Float[Tensor, "*E n S"]:
    """The next token as a law: certain, or the row that it is drawn from."""
    if kind == "soft":
        return drawn.rows
    return torch.nn.functional.one_hot(drawn.next, drawn.rows.shape[-1]).to(drawn.rows)


def gains(drawn: Contexts, kind: str) -> Float[Tensor, "*E n T"]:
    """The bracket of the gradient at every place, :math:`y/\\hat\\mu - 1` in short."""
    law = labels(drawn, kind)
    often = torch.nn.functional.one_hot(drawn.tokens, law.shape[-1]).to(law).mean(-2)
    present = (law * (often > 0)).sum(-1, keepdim=True)
    return (law / often.clamp(min=1e-300)).gather(-1, drawn.tokens) - present


def gradient(drawn: Contexts, kind: str = "sampled") -> Float[Tensor, "*E T T"]:
    """g of every place i and j, a mean over the contexts; row i, column j."""
    asked = (drawn.tokens == drawn.query[..., None]).to(drawn.rows)
    return gains(drawn, kind).mT @ asked / drawn.tokens.shape[-2]


def pooled(drawn: Contexts) -> Float[Tensor, "*E T T"]:
    """The chi-square information of pairs of places, counted over all contexts as if they had one matrix."""
    count, places, size = *drawn.tokens.shape[-2:], drawn.rows.shape[-1]
    hot = torch.nn.functional.one_hot(drawn.tokens, size).to(drawn.rows).flatten(-2)
    pairs = (hot.mT @ hot / count).unflatten(-1, (places, size)).unflatten(-3, (places, size)).transpose(-2, -3)
    alone = hot.mean(-2).unflatten(-1, (places, size))
    product = alone[..., :, None, :, None] * alone[..., None, :, None, :]
    return ((pairs - product).square() / product.clamp(min=1e-300)).sum((-1, -2))


def largest(table: Float[Tensor, "*E T T"], itself: bool = True) -> Int[Tensor, "*E T"]:
    """The place with the largest entry in each row, among those up to itself or before."""
    places = table.shape[-1]
    open_ = torch.ones(places, places, dtype=torch.bool, device=table.device).tril(0 if itself else -1)
    return table.masked_fill(~open_, -torch.inf).argmax(-1)


def right(table: Float[Tensor, "*E T T"], parents: tuple[int, ...], itself: bool = True) -> Float[Tensor, "*E"]:
    """The share of places with a parent whose largest entry is at the parent."""
    true = torch.tensor(parents, device=table.device)
    return (largest(table, itself) == true)[..., true != ROOT].double().mean(-1)


def limits(tokens: int, alpha: float, lags: int, count: int, seed: int, rho: float = 0.0) -> dict[str, Tensor]:
    r"""In long contexts, of a chain, by lag from 0 on: S times g, and the chi-square information of the pair.

    .. math:: S g_l = E\,\mathrm{tr}(\pi^l \tilde\pi) - 1, \qquad \tilde\pi(s', s) = \pi(s, s')\,\mu(s)/\mu(s'),

    a mean over so many matrices; and :math:`\sum_{s,s'} \mu(s)\,\pi^l(s, s')^2/\mu(s') - 1`.
    """
    pi = transitions((count,), tokens, alpha, rho, seed)
    mu = stationary(pi)
    back = pi.mT * mu[:, None, :] / mu[:, :, None]
    power, slope, information = torch.eye(tokens, dtype=pi.dtype).expand_as(pi), [], []
    for _ in range(lags):
        slope.append(torch.einsum("nst,nts->n", power, back).mean() - 1)
        information.append((mu[:, :, None] * power.square() / mu[:, None, :]).sum((-1, -2)).mean() - 1)
        power = power @ pi
    return {"slope": torch.stack(slope), "information": torch.stack(information)}


@dataclass(frozen=True, eq=False)
class ParentTraining(PopulationProblem):
    """The network on given contexts: parameters ``a``, the matrix A, shape ``(*E, T, T)``, and ``beta``, ``(*E,)``.

    Parameters
    ----------
    asked
        Is a token the query?
    tokens
        The contexts.
    law
        The next token's law, certain or soft.
    first
        Beta before training.
    still
        Whether beta stays there.
    floor
        Added to f under the logarithm, since a context may lack the next token.

    Examples
    --------
    >>> from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
    >>> problem = ParentTraining.of(CausalContexts(length=4).draw(50, seed=(0, 1)), "soft")
    >>> problem.slope(problem.start())["a"].shape
    torch.Size([2, 4, 4])
    """

    asked: Float[Tensor, "*E n T"]
    tokens: Int[Tensor, "*E n T"]
    law: Float[Tensor, "*E n S"]
    first: float = 0.01
    still: bool = False
    floor: float = 1e-4

    @classmethod
    def of(cls, drawn: Contexts, kind: str = "sampled", **how: Any) -> "ParentTraining":
        """On drawn contexts; the other arguments are fields."""
        law = labels(drawn, kind)
        return cls((drawn.tokens == drawn.query[..., None]).to(law), drawn.tokens, law, **how)

    def to(self, *where: Any) -> "ParentTraining":
        """On another device or in another precision."""
        tokens = self.tokens.to(self.asked.to(*where).device)
        return replace(self, asked=self.asked.to(*where), tokens=tokens, law=self.law.to(*where))

    def start(self) -> Params:
        """Uniform attention."""
        places, members = self.asked.shape[-1], self.asked.shape[:-2]
        return {"a": self.asked.new_zeros(*members, places, places), "beta": self.asked.new_full(members, self.first)}

    def attention(self, params: Params) -> Float[Tensor, "*E T T"]:
        """Of the first layer."""
        ahead = torch.ones(params["a"].shape[-2:], dtype=torch.bool, device=params["a"].device).triu(1)
        return params["a"].masked_fill(ahead, -torch.inf).softmax(-1)

    def _passed(self, params: Params) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        a = self.attention(params)
        z = self.asked @ a.mT
        w = (params["beta"][..., None, None] * z).softmax(-1)
        f = torch.zeros_like(self.law).scatter_add(-1, self.tokens, w)
        return a, z, w, f

    def train_loss(self, params: Params, **change: Tensor) -> Float[Tensor, "*E"]:
        """Cross-entropy in nats."""
        return -(self.law * (self._passed(params)[-1] + self.floor).log()).sum(-1).mean(-1)

    def slope(self, params: Params) -> Params:
        """The gradient, by hand."""
        a, z, w, f = self._passed(params)
        ratio = self.law / (f + self.floor)
        pull = w * (ratio.gather(-1, self.tokens) - (ratio * f).sum(-1, keepdim=True)) / self.law.shape[-2]
        beta = -(pull * z).sum((-1, -2)) * (not self.still)
        towards = a * ((params["beta"][..., None, None] * pull).mT @ self.asked)
        return {"a": a * towards.sum(-1, keepdim=True) - towards, "beta": beta}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean."""
        return (direction["a"].square().sum((-1, -2)) + direction["beta"].square()).sqrt()
