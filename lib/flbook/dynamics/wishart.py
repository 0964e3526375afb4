r"""Gram matrices drawn without ever drawing a d-dimensional vector.

The inner products of N Gaussian vectors in :math:`R^d` are a Wishart matrix, and Bartlett's decomposition draws it as
:math:`L L^\top` from N(N-1)/2 normal numbers and N chi-squared ones. So d = 10^7 costs what d = 10^3 costs.

Source: Bartlett (1933).
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import gammaincinv
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import check_sizes, flipped_labels
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive, Seeds, checked_arguments
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram


@checked_arguments
def draw_gram(
    n: Count,
    k: Count,
    d: Count | tuple[Count, ...],
    *,
    sigma_0: NonNegative,
    sigma_xi: Positive = 1.0,
    orthogonal: bool = False,
    seed: Seeds = 0,
) -> Gram:
    r"""The Gram matrices of n noise patches and k Gaussian filters beside a signal of unit length, in float64.

    The same normal numbers serve every d, so curves over d are smooth. Use ``.with_signals(mu_norm)`` for signals of
    other lengths.

    Parameters
    ----------
    n, k, d
        Samples, filters of both signs, dimension of a patch.
    sigma_0, sigma_xi
        Standard deviations of a filter's and of the noise's coordinates.
    orthogonal
        Is the noise orthogonal to the signal?
    seed
        Of all draws.

    Returns
    -------
    Gram
        Its ensemble axes are ``d`` if a tuple, then ``seed`` if a tuple.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or some d cannot hold n + k independent vectors beside the signal.

    Examples
    --------
    >>> draw_gram(n=4, k=6, d=(10**3, 10**7), sigma_0=0.01, seed=(0, 1, 2)).w_xi.shape
    torch.Size([2, 3, 6, 4])
    """
    dims = d if isinstance(d, tuple) else (d,)
    seeds = seed if isinstance(seed, tuple) else (seed,)
    check_room(n, k, min(dims))
    factor = torch.stack([bartlett(n + k, np.array(dims) - 1, one) for one in seeds], dim=1)
    along = torch.stack([rng.normal((n + k,), one, "along the signal") for one in seeds])  # components on mu
    size = torch.cat([torch.full((n,), sigma_xi), torch.full((k,), sigma_0)]).double()
    factor, along = size[:, None] * factor, (size * along).expand(len(dims), -1, -1)
    if orthogonal:
        along = torch.cat([torch.zeros_like(along[..., :n]), along[..., n:]], -1)
    full = factor @ factor.mT + along[..., :, None] * along[..., None, :]
    gram = Gram(
        mu_mu=torch.ones(full.shape[:2], dtype=torch.float64), mu_xi=along[..., :n], xi_xi=full[..., :n, :n],
        w_mu=along[..., n:], w_xi=full[..., n:, :n], w_w=full[..., n:, n:], b=torch.zeros_like(along[..., n:]),
    )
    if not isinstance(seed, tuple):
        gram = Gram(*(part[:, 0] for part in gram))
    return gram if isinstance(d, tuple) else Gram(*(part[0] for part in gram))


@checked_arguments
def draw_training(
    n: Count,
    m: Count,
    d: tuple[Count, ...],
    *,
    n_snr2: tuple[NonNegative, ...],
    flip_prob: tuple[FlipProbability, ...],
    start: NonNegative,
    seed: tuple[Natural, ...],
) -> GramTraining:
    r"""Training problems of drawn Gram matrices, over (flip_prob, d, seed, n_snr2) in that order, in float64.

    Parameters
    ----------
    n, m, d
        Samples, filters a sign, dimensions of a patch.
    n_snr2
        The signals, as :math:`n\,\mathrm{SNR}^2 = n\|\mu\|^2/(\sigma_\xi^2 d)`.
    flip_prob
        Probabilities of a flipped label.
    start
        Size of the initial responses to noise, :math:`\sigma_0\sigma_\xi\sqrt d`.
    seed
        Of all draws but that of the flips, which all members share.

    Returns
    -------
    GramTraining
        The problems of 2 m ReLU filters without biases, each of weight 1/m in the output.

    Raises
    ------
    ValueError
        As `draw_gram`.
    """
    grams = []
    for one in d:
        drawn = draw_gram(n, 2 * m, one, sigma_0=start / math.sqrt(one), seed=seed)
        grams.append(drawn.with_signals((torch.tensor(n_snr2, dtype=torch.float64) * one / n).sqrt()))
    lead = grams[0].xi_xi.shape[:1]
    gram = Gram(*(torch.stack([part.expand(lead + part.shape[1:]) for part in parts])
                  for parts in zip(*grams, strict=True)))
    labels = [flipped_labels(n, p, 0) for p in flip_prob]
    y, observed = (torch.stack(which)[:, None, None, None] for which in zip(*labels, strict=True))
    return GramTraining(gram, y, observed, scale=1 / m)


def check_room(n: int, k: int, d: int) -> None:
    """Refuse a dimension too small for n noise patches and k filters to be independent beside the signal.

    Parameters
    ----------
    n, k
        Noise patches and filters of both signs.
    d
        Dimension of a patch.
    """
    check_sizes(n, d)
    if d < n + k + 1:
        raise ValueError(f"d must be at least n + k + 1 = {n + k + 1}, so that {n} noise patches and {k} filters are "
                         f"independent beside the signal; got d = {d}")


def bartlett(size: int, degrees: np.ndarray, seed: int) -> Float[Tensor, "degrees N N"]:
    r"""Lower triangular L with :math:`L L^\top` the Gram matrix of `size` standard Gaussian vectors in each dimension.

    Below the diagonal normal numbers, on it the roots of chi-squared numbers with ``degrees - i`` degrees of freedom,
    taken as quantiles at uniform numbers that all dimensions share.

    Parameters
    ----------
    size
        Number N of vectors.
    degrees
        The dimensions, whole numbers, shape ``(degrees,)``.
    seed
        Seed of all draws.

    Returns
    -------
    Tensor
        Shape ``(degrees, N, N)``, in float64.
    """
    normal = rng.normal((size, size), seed, "Bartlett").tril(-1)
    uniform = rng.numpy_generator(seed, "chi squared").random(size)
    chi_squared = 2 * gammaincinv((degrees[:, None] - np.arange(size)) / 2, uniform)
    return normal + torch.diag_embed(torch.from_numpy(np.sqrt(chi_squared)))
