"""Single-index prompts: every prompt bends its inputs along a direction of its own, all directions in one subspace."""

from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import hermite, rng
from flbook.domains import Checked, Count, NonNegative, require
from flbook.shapes import Context


class IndexPrompts(NamedTuple):
    """A batch of `SingleIndexPrompts`. What a predictor is given comes first, the hidden truth after."""

    context: Context  # the labelled examples, x (*E n d) and y (*E n), noise included
    query: Float[Tensor, "*E q d"]
    target: Float[Tensor, "*E q"]  # the link at the queries, without noise
    task: Float[Tensor, "*E d"]  # the direction beta, a unit vector
    observed: Float[Tensor, "*E q"]  # labels of the queries, noise included
    coefficients: Float[Tensor, "*E k"]  # of each prompt's link, in normalised Hermite polynomials


@dataclass(frozen=True)
class SingleIndexPrompts(Checked):
    r"""A nonlinear function of one direction, another one in every prompt.

    .. math:: y_i = \sigma_*(\langle x_i, \beta\rangle) + \varepsilon_i, \qquad x_i \sim N(0, I_d), \quad
              \beta \sim \mathrm{Unif}\{\beta \in S : \|\beta\| = 1\}, \quad
              \sigma_*(z) = \sum_k (c_k + s_k u_k)\,h_k(z)

    with normalised Hermite polynomials :math:`h_k`, and :math:`u_k \sim \mathrm{Unif}[-1, 1]` drawn once a prompt. S is
    spanned by the first r coordinate axes, which loses nothing where everything else is rotation invariant.

    Parameters
    ----------
    n
        Examples of a prompt.
    d
        Dimension of an input.
    r
        Dimension of the subspace S, at most d.
    link
        The coefficients :math:`c_0, c_1, \dots`; the sum of their squares is the mean square of a fixed link.
    spread
        The widths :math:`s_0, s_1, \dots`; a missing one is 0.
    noise
        Its size, :math:`\tau` or the standard deviation.
    law
        The noise is plus or minus `noise` at equal odds ("signs", as in the source) or normal with this standard
        deviation ("normal").
    queries
        Queries on one context.

    Raises
    ------
    ValueError
        If a field is outside its domain, r exceeds d, or there is no link.

    Source: Oko et al. (2024).

    Examples
    --------
    >>> prompts = SingleIndexPrompts(n=16, d=8).draw(batch=3, seed=(0, 1))
    >>> prompts.context.x.shape, prompts.coefficients[0, 0].tolist()
    (torch.Size([2, 3, 16, 8]), [0.0, 0.0, 1.0])
    """

    n: Count = 64
    d: Count = 32
    r: Count = 2
    link: tuple[float, ...] = (0.0, 0.0, 1.0)
    spread: tuple[float, ...] | tuple[()] = ()
    noise: NonNegative = 0.0
    law: Literal["signs", "normal"] = "signs"
    queries: Count = 1

    def __post_init__(self):
        super().__post_init__()
        if self.r > self.d:
            raise ValueError(f"r must be at most d = {self.d}; got {self.r}")
        if not any((*self.link, *self.spread)):
            raise ValueError(f"link must have a coefficient that is not 0, or spread one; got {self.link}")

    @property
    def degree(self) -> int:
        """The highest degree that a link may have."""
        return max(len(self.link), len(self.spread)) - 1

    @property
    def mean_square(self) -> float:
        r"""The risk of predicting 0, :math:`E\,\sigma_*^2 = \sum_k c_k^2 + s_k^2/3`."""
        return sum(c**2 for c in self.link) + sum(s**2 for s in self.spread) / 3

    def draw(self, batch: int, seed: int | tuple[int, ...] = 0, step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> IndexPrompts:
        """One batch of prompts, a pure function of (seed, step) on each kind of device; seeds give one leading axis.

        Directions, inputs, links and noise are drawn one by one, so inputs and directions stay when the others change.
        """
        require("batch", batch, Count)
        role = f"single-index prompts {{}}, step {step}"

        def drawn(how, what: str, *shape: int) -> Tensor:
            def one_seed(one):
                generator = rng.generator(one, role.format(what), device)
                return how((batch, *shape), generator=generator, dtype=dtype, device=device)

            return rng.over_seeds(one_seed, seed)

        x = drawn(torch.randn, "inputs", self.n + self.queries, self.d)
        inside = torch.nn.functional.normalize(drawn(torch.randn, "directions", self.r), dim=-1)
        task = torch.nn.functional.pad(inside, (0, self.d - self.r))
        coefficients = self._coefficients(drawn(torch.rand, "links", self.degree + 1))
        y = clean = self._link(coefficients, torch.einsum("...r,...nr->...n", inside, x[..., : self.r]))
        if self.noise:
            noise = drawn(torch.randn, "noise", self.n + self.queries)
            y = clean + self.noise * (noise.sign() if self.law == "signs" else noise)
        n = self.n
        return IndexPrompts(Context(x[..., :n, :], y[..., :n]), x[..., n:, :], clean[..., n:], task, y[..., n:],
                            coefficients)

    def _terms(self) -> list[tuple[float, float]]:
        """c_k and s_k of every degree, missing ones 0."""
        return list(zip_longest(self.link, self.spread, fillvalue=0.0))

    def _coefficients(self, uniform: Float[Tensor, "*E k"]) -> Float[Tensor, "*E k"]:
        """The coefficients of each prompt's link, from uniform numbers between 0 and 1."""
        of_degree = zip(self._terms(), uniform.unbind(-1), strict=True)
        return torch.stack([fixed + spread * (2 * u - 1) for (fixed, spread), u in of_degree], -1)

    def _link(self, coefficients: Float[Tensor, "*E k"], z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n"]:
        r"""The links :math:`\sum_k c_k h_k(z)`, one for each prompt; degrees that no prompt has cost nothing."""
        of_degree = zip(self._terms(), coefficients.unbind(-1), strict=True)
        return reduce(torch.add, [c[..., None] * hermite.polynomial(k, z)
                                  for k, (term, c) in enumerate(of_degree) if any(term)])
