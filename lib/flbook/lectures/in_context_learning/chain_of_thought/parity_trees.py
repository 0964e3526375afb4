r"""A parity that is written down step by step, and one layer of attention that learns the steps.

An input is d uniform signs, and its label the product of k hidden ones, k a power of 2. The *chain* multiplies them in
pairs: k/2 products of two hidden bits, then k/4 products of two of these, until one is left, which is the label. Token
m > d of a sequence is such a node; its two *parents* are the earlier tokens that it is the product of.

Node m looks back by its own scores and squares what it sees,

.. math:: z_m = \sum_{j<m} \mathrm{softmax}(w_m)_j x_j, \qquad \hat x_m = \phi(z_m) = 2 z_m^2 - 1,

so that attention of 1/2 on each parent answers with their product.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, FlipProbability, Natural, checked_arguments
from flbook.training.problem import Params, PopulationProblem


class Chains(NamedTuple):
    """A sample of `ParityTree`."""

    tokens: Float[Tensor, "*E n T"]  # the bits, then the nodes as they are seen
    parents: Int[Tensor, "*E nodes 2"]  # places of the two tokens that a node is the product of
    y: Float[Tensor, "*E n"]  # the label, without flips


@dataclass(frozen=True)
class ParityTree(Checked):
    """Signs, the parity of k hidden ones, and the chain of products that leads to it.

    Parameters
    ----------
    d
        Bits of an input.
    k
        How many of them count, a power of 2.
    flip
        The chance that a node is seen with the wrong sign, as a target and as a token alike; the label is the last
        node.

    Raises
    ------
    ValueError
        If k is no power of 2 from 2 to d.

    Examples
    --------
    >>> chains = ParityTree(d=6, k=4).draw(n=3, seed=0)
    >>> chains.tokens.shape, chains.parents[..., -1, :].tolist()
    (torch.Size([3, 9]), [6, 7])
    >>> bool((chains.tokens[..., -1] == chains.y).all())
    True
    """

    d: Count = 32
    k: Count = 8
    flip: FlipProbability = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.k < 2 or self.k & (self.k - 1) or self.k > self.d:
            raise ValueError(f"k must be a power of 2 from 2 to d = {self.d}; got {self.k}")

    @property
    def length(self) -> int:
        """T, tokens of a sequence."""
        return self.d + self.k - 1

    @property
    def levels(self) -> Int[Tensor, " nodes"]:
        """The level of each node, 1 for products of two bits."""
        sizes = [self.k >> level for level in range(1, self.k.bit_length())]
        return torch.repeat_interleave(torch.arange(1, len(sizes) + 1), torch.tensor(sizes))

    def hidden(self, seed: int | tuple[int, ...]) -> Int[Tensor, "*E k"]:
        """Places of the bits that count, in the order of the tree."""
        return rng.over_seeds(lambda one: torch.randperm(self.d, generator=rng.generator(one, "hidden bits"))[: self.k],
                              seed)

    @checked_arguments
    def draw(self, n: Count, seed: Natural | tuple[Natural, ...] = 0, role: str = "chains") -> Chains:
        """A sample; a tuple of seeds gives one leading ensemble axis, with other hidden bits for each.

        A larger n keeps the first samples of a smaller one. Another `role` is another sample of the same tree.
        """
        hidden = self.hidden(seed)
        tokens = rng.over_seeds(lambda one: _signs(n, self.d, one, role), seed)
        leaves = hidden[..., None, :].expand(*hidden.shape[:-1], n, self.k)
        below, nodes, places, parents, first = tokens.gather(-1, leaves), [], hidden, [], self.d
        while below.shape[-1] > 1:
            below = below[..., ::2] * below[..., 1::2]
            nodes.append(below)
            parents.append(places.unflatten(-1, (-1, 2)))
            places = torch.arange(first, first + below.shape[-1]).expand(*hidden.shape[:-1], -1)
            first += below.shape[-1]
        chain, y = torch.cat(nodes, -1), below[..., 0]
        if self.flip:
            chain = chain * rng.over_seeds(lambda one: _flips(n, self.k - 1, self.flip, one, role), seed)
        return Chains(torch.cat([tokens, chain], -1), torch.cat(parents, -2), y)


def _signs(n: int, d: int, seed: int, role: str) -> Tensor:
    """Uniform signs, float32."""
    return 2.0 * torch.randint(2, (n, d), generator=rng.generator(seed, role)).float() - 1


def _flips(n: int, nodes: int, chance: float, seed: int, role: str) -> Tensor:
    """-1 with the given chance, else 1."""
    return 1.0 - 2 * (torch.rand(n, nodes, generator=rng.generator(seed, f"{role} flips")) < chance).float()


def activation(z: Tensor) -> Tensor:
    r""":math:`\phi(z) = 2 z^2 - 1`: the product of two signs, from their mean."""
    return 2 * z.square() - 1


def before(length: int, d: int) -> Bool[Tensor, "nodes T"]:
    """Which tokens a node may look at: the earlier ones."""
    return torch.arange(length) < torch.arange(d, length)[:, None]


@dataclass(frozen=True, eq=False)
class ChainTraining(PopulationProblem):
    """Attention from positions alone, trained on chains with the true earlier nodes as tokens (teacher forcing).

    The loss is the mean over samples of half the squared error, summed over nodes; parameter ``w`` of shape
    ``(*E, k - 1, T)``, the scores of each node, of which those of later tokens are not used.

    Parameters
    ----------
    tokens
        Bits and nodes.
    d
        How many of the tokens are bits.

    Examples
    --------
    >>> from flbook import GradientDescent, fit
    >>> tree = ParityTree(d=12, k=4)
    >>> chains = tree.draw(2000, seed=(0, 1))
    >>> problem = ChainTraining(chains.tokens, 12)
    >>> params, _ = fit(problem, GradientDescent(12 * 15**2 / 4), 1)
    >>> right = tree.draw(500, seed=(0, 1), role="test")
    >>> (problem.answers(params, right.tokens[..., :12])[..., -1] == right.y).float().mean(-1).tolist()
    [1.0, 1.0]
    """

    tokens: Float[Tensor, "*E n T"]
    d: int

    def to(self, *where: Any) -> "ChainTraining":
        """On another device or in another precision."""
        return replace(self, tokens=self.tokens.to(*where))

    def start(self) -> Params:
        """All scores zero: each node looks at all earlier tokens alike."""
        *lead, _, length = self.tokens.shape
        return {"w": self.tokens.new_zeros(*lead, length - self.d, length)}

    def attention(self, params: Params) -> Float[Tensor, "*E nodes T"]:
        """Where each node looks."""
        seen = before(params["w"].shape[-1], self.d).to(params["w"].device)
        return params["w"].masked_fill(~seen, -torch.inf).softmax(-1)

    def looked(self, params: Params, tokens: Tensor | None = None) -> Float[Tensor, "*E n nodes"]:
        """What each node sees, :math:`z_m`."""
        return (self.tokens if tokens is None else tokens) @ self.attention(params).mT

    def train_loss(self, params: Params, **change: Tensor) -> Float[Tensor, "*E"]:
        """Half the squared error, summed over nodes, mean over samples."""
        wrong = activation(self.looked(params)) - self.tokens[..., self.d :]
        return wrong.square().sum(-1).mean(-1) / 2

    def slope(self, params: Params) -> Params:
        r"""Gradient :math:`a_{mj}\,\mathbb E[(\phi(z_m) - x_m)\,4 z_m\,(x_j - z_m)]`, a the attention."""
        a, z = self.attention(params), self.looked(params)
        pulled = (activation(z) - self.tokens[..., self.d :]) * 4 * z / self.tokens.shape[-2]
        return {"w": a * (pulled.mT @ self.tokens - (pulled * z).sum(-2)[..., None])}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """The Frobenius norm."""
        return torch.linalg.matrix_norm(direction["w"])

    def answers(self, params: Params, bits: Float[Tensor, "*E n d"],
                rounded: bool = True) -> Float[Tensor, "*E n nodes"]:  # fmt: skip
        """The chain that the layer writes by itself from the bits, node after node, each rounded to a sign."""
        a, tokens = self.attention(params), bits
        for m in range(a.shape[-2]):
            z = (tokens @ a[..., m, : self.d + m, None])[..., 0]
            node = activation(z)
            said = torch.where(node > 0, 1.0, -1.0).to(node) if rounded else node
            tokens = torch.cat([tokens, said[..., None]], -1)
        return tokens[..., self.d :]


def first_gradient(tokens: Float[Tensor, "*E n T"], d: int) -> Float[Tensor, "*E nodes T"]:
    r"""Minus the gradient at zero scores, :math:`G_{mj} = \frac4M\,\mathbb E[(1 + x_m - 2z^2)\,z\,(x_j - z)]`.

    z is the mean of the M tokens before m; later tokens have 0.
    """
    length = tokens.shape[-1]
    seen = torch.arange(d, length, device=tokens.device)
    z = tokens.cumsum(-1)[..., d - 1 : -1] / seen  # (*E, n, nodes)
    pulled = (1 + tokens[..., d:] - 2 * z.square()) * z / tokens.shape[-2]
    g = pulled.mT @ tokens - (pulled * z).sum(-2)[..., None]
    return torch.where(before(length, d).to(tokens.device), 4 * g / seen[:, None], 0)


def found(scores: Float[Tensor, "*E nodes T"], parents: Int[Tensor, "*#E nodes 2"], d: int) -> Bool[Tensor, "*E nodes"]:
    """Are both parents of a node ahead of all other earlier tokens?"""
    seen = before(scores.shape[-1], d).to(scores.device)
    parents = parents.expand(*scores.shape[:-1], 2)
    least = scores.gather(-1, parents).amin(-1)
    others = scores.masked_fill(~seen, -torch.inf).scatter(-1, parents, -torch.inf)
    return least > others.amax(-1)
