"""Random functions on the unit cube: Fourier bases, laws of their coefficients, and prompts drawn from any basis."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.prompts import Prompts, check_batch
from flbook.domains import Checked, Count, NonNegative
from flbook.lectures.in_context_learning.nonparametric_rates.splines import HiddenSplines, SplineBasis, check_inputs
from flbook.shapes import Context


@dataclass(frozen=True)
class FourierBasis:
    r"""Products of cosines and sines, orthonormal for inputs that are uniform on :math:`[0, 1]^d`.

    .. math:: f_j(x) = \prod_{k:\,r_{jk} \ne 0} \sqrt2 \cos(2\pi r_{jk} x_k) \ \text{(sine where } r_{jk} < 0)

    frequency: one row of d integers for each function; 0 where it does not depend on the input.

    Raises ValueError if there is no function, rows differ in length, or a row occurs twice.
    Source: Okumoto and Suzuki (2022), Section 2; the product runs over the inputs that the function depends on.
    """

    frequency: tuple[tuple[int, ...], ...]

    def __post_init__(self):
        lengths = {len(row) for row in self.frequency}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"frequency must hold at least one row, each of d >= 1 integers; it has {self.size} rows "
                             f"of the lengths {sorted(lengths)}")
        if len(set(self.frequency)) < self.size:
            raise ValueError(f"frequency must hold every row once; {self.size - len(set(self.frequency))} of its rows "
                             "are repeated")

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.frequency)

    @property
    def d(self) -> int:
        """Number of inputs."""
        return len(self.frequency[0])

    def features(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n J"]:
        """Values of all functions at n points."""
        check_inputs(x, self.d)
        rows = torch.tensor(self.frequency, device=x.device)
        if self.d == 1 and bool(rows.all()):
            return _waves(x[..., 0], rows[:, 0])
        values = torch.ones(*x.shape[:-1], self.size, dtype=x.dtype, device=x.device)
        for k in rows.any(0).nonzero()[:, 0].tolist():  # one input at a time: all factors would not fit into the memory
            columns = rows[:, k].nonzero()[:, 0]
            values[..., columns] *= _waves(x[..., k], rows[columns, k])
        return values

    def gram(self) -> Float[Tensor, "J J"]:
        """Inner products of the functions: the identity."""
        return torch.eye(self.size, dtype=torch.float64)


def fourier_line(size: int) -> FourierBasis:
    """The first functions of one input: constant, then cosine and sine of every frequency."""
    return FourierBasis(tuple(((j // 2) * (1 if j % 2 == 0 else -1),) for j in range(1, size + 1)))


def hidden_line(pairs: int, power: int = 2, spread: int = 4, seed: int = 0) -> FourierBasis:
    r"""Pairs of cosine and sine on one input, the i-th at a hidden frequency in :math:`(M(i-1)^p, M i^p]`.

    Who knows the basis has coefficients that decay with i. Who does not has to expect all M frequencies of a first
    group, and ever larger groups: the same functions are p times less smooth to him. power p = spread M = 1 hides
    nothing.

    Raises ValueError if an argument is below 1.
    """
    if min(pairs, power, spread) < 1:
        raise ValueError(f"pairs, power and spread must be at least 1; got pairs={pairs}, power={power}, "
                         f"spread={spread}")
    draw = rng.numpy_generator(seed, "hidden frequencies")
    found = [int(draw.integers(spread * (i - 1) ** power + 1, spread * i**power + 1)) for i in range(1, pairs + 1)]
    return FourierBasis(tuple((sign * r,) for r in found for sign in (1, -1)))


def mixed_blocks(smoothness: tuple[float, ...], bits: float) -> list[tuple[float, tuple[int, ...]]]:
    r"""Dyadic blocks of the mixed-smooth class with their cost up to `bits`, cheapest first.

    A frequency r lies in block :math:`s = 1 + \lfloor\log_2 |r|\rfloor` (0 if r = 0). A coefficient has the variance
    :math:`2^{-\text{cost}}` with the cost :math:`\sum_k (2 a_k + 1) s_k`, so functions of bounded norm
    :math:`\sum_s 2^{2\langle a, s\rangle} \|\delta_s F\|^2`, up to logarithms.

    smoothness: one number for each input, the roughest first.

    Raises ValueError if a smoothness is not positive or they decrease.
    Source: Okumoto and Suzuki (2022); Takakura and Suzuki (2023).
    """
    if not smoothness or min(smoothness) <= 0 or list(smoothness) != sorted(smoothness):
        raise ValueError(f"smoothness must hold positive numbers, none smaller than the one before; got {smoothness}")
    found = [(0.0, ())]
    for a in smoothness:  # the tail of zeros is added once an input has no block any more
        found = [(cost + (2 * a + 1) * s, (*block, s)) for cost, block in found
                 for s in range(1 + int((bits - cost) / (2 * a + 1) + 1e-12))]
    return sorted(found)


@dataclass(frozen=True)
class FunctionPrompts(Checked):
    r"""Prompts whose functions are random combinations of fixed ones.

    .. math:: y_i = F(x_i) + \varepsilon_i, \quad F = \sum_j \beta_j f_j, \quad
              x_i \sim U[0,1]^d, \quad \beta_j \sim N(0, \lambda_j), \quad \varepsilon_i \sim N(0, \sigma_y^2)

    basis: what has ``size``, ``d`` and ``features``. variance: :math:`\lambda_j`, one number for each function.

    Raises ValueError if n or queries are below 1, the noise is negative, or a variance is missing or negative.
    Source: Kim, Nakamaki and Suzuki (2024), Section 2.
    """

    basis: FourierBasis | SplineBasis | HiddenSplines
    variance: tuple[NonNegative, ...]
    n: Count = 64
    noise: NonNegative = 0.0
    queries: Count = 1

    def __post_init__(self):
        super().__post_init__()
        if len(self.variance) != self.basis.size:
            raise ValueError(f"variance must hold {self.basis.size} numbers, one for each function; got "
                             f"{len(self.variance)} of them")

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch of prompts, a pure function of (seed, step); a tuple of seeds gives one leading axis."""
        check_batch(batch)

        def normal(what: str, *shape: int) -> Tensor:
            return rng.normal((batch, *shape), seed, f"function prompts {what}, step {step}", device, dtype)

        x = torch.special.ndtr(normal("inputs", self.n + self.queries, self.basis.d))
        task = normal("tasks", self.basis.size) * torch.tensor(self.variance, dtype=dtype, device=device).sqrt()
        clean = torch.einsum("...j,...nj->...n", task, self.basis.features(x))
        y = clean + self.noise * normal("noise", self.n + self.queries) if self.noise else clean
        n = self.n
        return Prompts(Context(x[..., :n, :], y[..., :n]), x[..., n:, :], clean[..., n:], task, y[..., n:])


def _waves(x: Float[Tensor, "*E n"], r: Tensor) -> Float[Tensor, "*E n J"]:
    """sqrt(2) cos(2 pi r x) where r > 0, and the sine of -r where r < 0."""
    if int(r.abs().max()) > len(r):
        shift = torch.where(r < 0, 0.25, 0.0).to(x)
        return math.sqrt(2) * torch.cos(2 * math.pi * (x[..., None] * r.abs() - shift))
    # many frequencies: all powers of exp(2 pi i x) by doubling, as exact as cosines and several times as fast
    cosine, sine = torch.cos(2 * math.pi * x)[..., None], torch.sin(2 * math.pi * x)[..., None]
    while cosine.shape[-1] < int(r.abs().max()):
        last, other = cosine[..., -1:], sine[..., -1:]
        up = cosine * last - sine * other, sine * last + cosine * other
        cosine, sine = torch.cat([cosine, up[0]], -1), torch.cat([sine, up[1]], -1)
    place = r.abs() - 1 + torch.where(r < 0, cosine.shape[-1], 0)
    return math.sqrt(2) * torch.cat([cosine, sine], -1)[..., place]
