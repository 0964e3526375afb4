r"""Solvers that know the link :math:`h_2` and see one prompt alone: a spectral start, then reweighted amplitude flow.

Labels without noise say the size of the index, :math:`\langle x_i, \beta\rangle^2 = 1 + \sqrt2\,y_i`; its sign is lost.
What remains is real phase retrieval, for which solvers of polynomial cost need n of the order of d. Told the subspace,
the same solver looks for r numbers. From r examples on one direction, up to its sign, explains the prompt, and its
answer is Bayes', if a start finds it; for fewer examples the mean with equal weights is close to it.

Source: Wang, Giannakis, Saad and Chen (2018), for the flow; Mondelli and Montanari (2019), for the start.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.shapes import Context

EXACT = 1e-4  # a direction that misses the sizes by less in the mean square explains the prompt


class Found(NamedTuple):
    """Where the flow ended from each start."""

    beta: Float[Tensor, "t k d"]  # unit vectors
    miss: Float[Tensor, "t k"]  # mean squared difference of the sizes of the index


def sizes(labels: Float[Tensor, "*t n"]) -> Float[Tensor, "*t n"]:
    r"""The sizes of the index, :math:`a_i = |\langle x_i, \beta\rangle| = \sqrt{1 + \sqrt2\,y_i}`."""
    return (1 + 2**0.5 * labels).clamp(min=0).sqrt()


def spectral_start(x: Float[Tensor, "t n d"], size: Float[Tensor, "t n"]) -> Float[Tensor, "t d"]:
    r"""The leading eigenvector of the weighted second moment, :math:`T(a) = \frac{a^2 - 1}{a^2 + \sqrt{2n/d} - 1}`."""
    spread = max((2 * x.shape[-2] / x.shape[-1]) ** 0.5, 1.05)  # at 1 the weights of small sizes have no bound
    weight = (size**2 - 1) / (size**2 + spread - 1)
    return torch.linalg.eigh(torch.einsum("tn,tnd,tne->tde", weight, x, x)).eigenvectors[..., -1]


@checked_arguments
def amplitude_flow(context: Context, starts: Count = 16, steps: Count = 400, lr: Positive = 1.0,
                   trust: Positive = 3.0, seed: Natural = 0) -> Found:
    r"""Directions that explain the sizes of the index, from the spectral start and from random ones.

    .. math:: \beta \leftarrow \beta - \frac\eta n\sum_i w_i\big(z_i - a_i\,\mathrm{sign}\,z_i\big)x_i, \qquad
              z_i = \langle x_i, \beta\rangle, \quad w_i = \frac{|z_i|}{|z_i| + b\,a_i}

    The weights trust a sign where the index is large; in the last third of the steps they are 1.

    Parameters
    ----------
    context
        t prompts, without noise.
    starts
        k, the spectral one among them.
    steps, lr
        Steps taken, and their size.
    trust
        b, of the weights.
    seed
        Of the random starts.
    """
    x, size = context.x, sizes(context.y)[:, None]
    tasks, n, d = x.shape
    random = rng.normal((tasks, starts - 1, d), seed, f"starts of the flow, n = {n}", dtype=x.dtype)
    beta = torch.nn.functional.normalize(torch.cat([spectral_start(x, size[:, 0])[:, None], random], 1), dim=-1)
    largest = torch.linalg.matrix_norm(x, 2).square()[:, None, None] / n
    rate = torch.minimum(torch.tensor(lr, dtype=x.dtype), 1.5 / largest) / n
    for step in range(steps):
        z = beta @ x.mT
        weight = z.abs() / (z.abs() + trust * size) if 3 * step < 2 * steps else 1.0
        beta = beta - rate * (weight * (z - size * z.sign())) @ x
    beta = torch.nn.functional.normalize(beta, dim=-1)
    return Found(beta, ((beta @ x.mT).abs() - size).square().mean(-1))


def answers(context: Context, query: Float[Tensor, "t q d"], **how) -> dict[str, Float[Tensor, "t q"]]:
    """Predictions: the mean over the directions that explain a prompt; where none does, the best one's, shrunk.

    By how much to shrink is left to hindsight, a variant for each size.
    """
    found = amplitude_flow(context, **how)
    least = found.miss.min(-1, keepdim=True).values
    good = (found.miss <= least.clamp(min=EXACT)).to(query)
    value = (((query @ found.beta.mT).square() - 1) / 2**0.5 * good[:, None]).sum(-1) / good.sum(-1)[:, None]
    return {f"shrunk to {share}": torch.where(least < EXACT, value, share * value)
            for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)}
