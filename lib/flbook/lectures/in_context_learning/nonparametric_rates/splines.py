"""Splines on the unit cube: tensor products of cardinal B-splines, their Gram matrices, and a few hidden ones."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural


@dataclass(frozen=True)
class SplineBasis(Checked):
    r"""Products of cardinal B-splines of one order, at one level or at several for each input.

    .. math:: M_{a,b}(x) = \prod_k \mathcal N_m(2^{a} x_k - b_k), \qquad
              \mathcal N_m = \mathcal N * \dots * \mathcal N \ \ (m+1 \text{ times})

    with all shifts b that reach into the cube. Several levels together are linearly dependent, because a spline is a
    sum of splines of the next level; one level alone is independent, but not orthonormal.

    order: m, the degree of the pieces. levels: each contributes :math:`(2^a + m)^d` functions. whiten: orthonormalise
    by :math:`G^{-1/2}`, G the Gram matrix; possible at one level.

    Raises ValueError for a negative order or level, no or a repeated level, or several levels to be whitened.
    Source: Kim, Nakamaki and Suzuki (2024), Section 4, as in the talk.
    """

    d: Count = 1
    order: Natural = 2
    levels: tuple[Natural, ...] = (3,)
    whiten: bool = False

    def __post_init__(self):
        super().__post_init__()
        if len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels must differ from each other; got {self.levels}")
        if self.whiten and len(self.levels) > 1:
            raise ValueError(f"whiten needs one level, since several are linearly dependent; got levels {self.levels}")

    @property
    def size(self) -> int:
        """Number of functions."""
        return sum((2**a + self.order) ** self.d for a in self.levels)

    def features(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n J"]:
        """Values of all functions at n points."""
        check_inputs(x, self.d)
        parts = []
        for a in self.levels:
            shift = torch.arange(-self.order, 2**a, dtype=x.dtype, device=x.device)
            factors = cardinal(2**a * x[..., None] - shift, self.order)  # (*E, n, d, shifts)
            product = factors[..., 0, :]
            for k in range(1, self.d):
                product = (product[..., :, None] * factors[..., k, None, :]).flatten(-2)
            parts.append(product)
        values = torch.cat(parts, -1)
        return torch.einsum("...j,jk->...k", values, self._root().to(values)) if self.whiten else values

    def gram(self) -> Float[Tensor, "J J"]:
        """Inner products of the functions under uniform inputs, exactly: Gauss points in every cell of the finest."""
        if self.whiten:
            return torch.eye(self.size, dtype=torch.float64)
        return torch.cat([torch.cat([self._between(a, b) for b in self.levels], 1) for a in self.levels])

    def mean(self) -> Float[Tensor, " J"]:
        """Integrals of the functions of one level over the cube; splines of a level add up to one."""
        return SplineBasis(self.d, self.order, self.levels).gram().sum(0)

    def _between(self, a: int, b: int) -> Float[Tensor, "A B"]:
        node, weight = np.polynomial.legendre.leggauss(self.order + 1)
        cells = 2 ** max(a, b)
        x = torch.tensor((np.arange(cells)[:, None] + (node + 1) / 2).ravel() / cells)
        line = [SplineBasis(1, self.order, (one,)).features(x[:, None]) for one in (a, b)]
        inner = torch.einsum("pi,pj,p->ij", *line, torch.tensor(np.tile(weight / 2, cells) / cells))
        whole = inner
        for _ in range(1, self.d):
            whole = torch.kron(whole, inner)
        return whole

    def _root(self) -> Float[Tensor, "J J"]:
        return inverse_root(SplineBasis(self.d, self.order, self.levels).gram())


def cardinal(t: Float[Tensor, "*E"], order: int) -> Float[Tensor, "*E"]:
    r"""The cardinal B-spline :math:`\mathcal N_m(t)`: the (m+1)-fold convolution of the indicator of [0, 1).

    By the Cox-de Boor recursion; its support is [0, m + 1].
    """
    pieces = [((t >= k) & (t < k + 1)).to(t) for k in range(order + 1)]  # those of degree 0
    for m in range(1, order + 1):
        pieces = [((t - k) * left + (k + m + 1 - t) * right) / m
                  for k, (left, right) in enumerate(itertools.pairwise(pieces))]
    return pieces[0]


@dataclass(frozen=True)
class HiddenSplines(Checked):
    r"""A few products of splines in a few inputs of many, orthonormalised: features that have to be learned.

    .. math:: f = G^{-1/2} M, \qquad M_j(x) = \prod_{k \in K_j} \mathcal N_m(2^a x_k - b_{jk})

    with sets :math:`K_j` of `active` inputs and shifts that are drawn by (seed), all functions different.

    Raises ValueError if an argument is below 1 (order, level: 0), or there are fewer different functions than `size`.
    """

    size: Count = 8
    d: Count = 8
    active: Count = 2
    order: Natural = 2
    level: Natural = 1
    seed: Natural = 0

    def __post_init__(self):
        super().__post_init__()
        if self.active > self.d:
            raise ValueError(f"active must be at most d = {self.d}; got {self.active}")
        known = math.comb(self.d, self.active) * (2**self.level + self.order) ** self.active
        if 2 * self.size > known:
            raise ValueError(f"size must be at most {known // 2}, half of the {known} different functions; got "
                             f"{self.size}")

    def places(self) -> list[tuple[tuple[int, int], ...]]:
        """For every function its inputs, each with a shift."""
        return _places(self, rng.entropy(self.seed, "hidden splines"))

    def features(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n J"]:
        """Values of all functions at n points."""
        check_inputs(x, self.d)
        columns = []
        for place in self.places():  # one at a time: all shifts of all inputs would not fit into the memory
            column = torch.ones_like(x[..., 0])
            for k, b in place:
                column *= cardinal(2**self.level * x[..., k] - b, self.order)
            columns.append(column)
        return torch.einsum("...j,jk->...k", torch.stack(columns, -1), self._root().to(x))

    def gram(self) -> Float[Tensor, "J J"]:
        """Inner products of the orthonormalised functions: the identity."""
        return torch.eye(self.size, dtype=torch.float64)

    def raw_gram(self) -> Float[Tensor, "J J"]:
        """Inner products before they are orthonormalised, input by input from those of one line."""
        line = SplineBasis(1, self.order, (self.level,))
        inner, mean = line.gram(), line.mean()
        gram = torch.ones(self.size, self.size, dtype=torch.float64)
        places = [dict(place) for place in self.places()]
        for (i, one), (j, other) in itertools.product(enumerate(places), repeat=2):
            for k in one.keys() | other.keys():
                shifts = [place[k] + self.order for place in (one, other) if k in place]
                gram[i, j] *= inner[tuple(shifts)] if len(shifts) == 2 else mean[shifts[0]]
        return gram

    def _root(self) -> Float[Tensor, "J J"]:
        return _inverse_root(self, rng.entropy(self.seed, "hidden splines"))


@cache
def _places(basis: HiddenSplines, entropy: int) -> list[tuple[tuple[int, int], ...]]:
    draw, found = np.random.default_rng(entropy), {}
    while len(found) < basis.size:
        inputs = sorted(draw.choice(basis.d, basis.active, replace=False).tolist())
        found[tuple((k, int(draw.integers(-basis.order, 2**basis.level))) for k in inputs)] = True
    return list(found)


@cache
def _inverse_root(basis: HiddenSplines, entropy: int) -> Tensor:
    return inverse_root(basis.raw_gram())


def inverse_root(gram: Float[Tensor, "J J"]) -> Float[Tensor, "J J"]:
    r""":math:`G^{-1/2}` of a positive definite matrix.

    Raises ValueError if G is singular to rounding, when the functions are linearly dependent.
    """
    values, vectors = torch.linalg.eigh(gram)
    if not values[0] > 1e-12 * values[-1]:
        raise ValueError(f"gram must be positive definite, the functions linearly independent; its eigenvalues run "
                         f"from {values[0]:.3g} to {values[-1]:.3g}")
    return torch.einsum("jk,k,lk->jl", vectors, values.rsqrt(), vectors)


def check_inputs(x: Tensor, d: int) -> None:
    """Refuse points of another dimension."""
    if x.shape[-1] != d:
        raise ValueError(f"x must hold points of d = {d} inputs; its shape is {tuple(x.shape)}")
