"""Concepts in a layer's features: what a linear probe reads, and the smallest edit after which none reads anything."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, NonNegative, Positive, checked_arguments
from flbook.observe.hessian import Estimate

HELD_OUT = 0.5  # share of the samples that a probe is asked about
MOST_CLASSES = 100


class Reading(NamedTuple):
    """What a linear probe finds on samples that it has not seen."""

    accuracy: Estimate  # share of right answers, with Wilson's 95 % interval
    chance: Estimate  # the same probe after its labels were permuted: mean and 95 % range over permutations
    weights: Float[Tensor, "k classes"]
    threshold: Float[Tensor, " classes"]  # the answer is the class with the largest h w - threshold


@checked_arguments
def probe(h: Float[Tensor, "n k"], z: Tensor, ridge: NonNegative = 1e-3, permutations: Count = 40, seed: Natural = 0
          ) -> Reading:
    r"""How much of a concept can be read linearly from features?

    .. math:: W = (\mathrm{Cov}(h) + \lambda\bar s I)^{-1}\,\mathrm{Cov}(h, e_z), \qquad
              \hat z(h) = \arg\max_c \langle w_c, h - \bar h\rangle + \bar e_c

    with one indicator :math:`e_c` a class and the mean variance :math:`\bar s` of a feature. Half of the samples, drawn
    by the seed, fit it; the others are asked. Its rival is itself after a permutation of the labels that it is fitted
    to: what lies in that range is chance, with these classes and so many features.

    Parameters
    ----------
    h
        Features of n samples, shape ``(n, k)``.
    z
        The concept, shape ``(n,)``: whole numbers (of any dtype) or truth values, at most 100 different ones.
    ridge
        :math:`\lambda`.
    permutations
        Of the rival.
    seed
        Of the split and the permutations.

    Returns
    -------
    Reading
        Accuracy, chance, and the probe.

    Raises
    ------
    ValueError
        If shapes clash, the concept is not one of classes, or a class is too rare to stand in both halves.

    Source: Alain and Bengio (2017); Hewitt and Liang (2019) for permuted labels as a control.

    Examples
    --------
    >>> z = torch.arange(200) % 2
    >>> h = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) + 4 * z[:, None]
    >>> found = probe(h, z)
    >>> found.accuracy.value > 0.95, found.chance.value < 0.6
    (True, True)
    """
    indicators = _indicators(h, z).to(h)
    order = torch.randperm(len(h), generator=rng.generator(seed, "halves of a probe")).to(h.device)
    asked, fitted = order.split([round(HELD_OUT * len(h)), len(h) - round(HELD_OUT * len(h))])
    for half in (fitted, asked):
        if not bool((indicators[half].sum(0) > 0).all()):
            raise ValueError(f"every class must stand among the samples that a probe is fitted to and among those that "
                             f"it is asked about; the rarest of {indicators.shape[1]} classes has "
                             f"{int(indicators.sum(0).min())} of {len(h)} samples")
    truth = indicators[asked].argmax(-1)
    found = ridge_probe(h[fitted], indicators[fitted], ridge)

    def right(found: tuple[Tensor, Tensor]) -> float:
        answers = (h[asked] @ found[0] - found[1]).argmax(-1)
        return (answers == truth).double().mean().item()

    shuffled = [fitted[torch.randperm(len(fitted), generator=rng.generator(seed, f"permutation {p}")).to(h.device)]
                for p in range(permutations)]
    chances = torch.tensor([right(ridge_probe(h[fitted], indicators[other], ridge)) for other in shuffled])
    low, high = (chances.quantile(q).item() for q in (0.025, 0.975))
    accuracy = right(found)
    return Reading(Estimate(accuracy, _wilson(accuracy, len(asked))),
                   Estimate(chances.mean().item(), (low, high)), *found)


class Eraser(NamedTuple):
    r"""The affine map :math:`r(h) = h - U V^\top (h - \bar h)` after which no linear probe finds a concept."""

    mean: Float[Tensor, "*E k"]
    u: Float[Tensor, "*E k q"]
    v: Float[Tensor, "*E k q"]

    def __call__(self, h: Float[Tensor, "*E n k"]) -> Float[Tensor, "*E n k"]:
        """Features without the concept."""
        return h - (h - self.mean[..., None, :]) @ self.v @ self.u.mT


@checked_arguments
def erase(h: Float[Tensor, "*E n k"], z: Float[Tensor, "..."], smallest: bool = True, floor: Positive = 1e-6) -> Eraser:
    r"""The edit of features after which no linear probe, of whatever loss, beats the one that answers a constant.

    .. math:: r(h) = h - s\,(s^\top S^+ s)^+ s^\top S^+ (h - \bar h), \qquad
              s = \mathrm{Cov}(h, z), \quad S = \mathrm{Cov}(h)

    leaves :math:`\mathrm{Cov}(r(h), z) = 0`, which is all that a linear probe could use, and moves h the least in mean
    square of all affine maps that do. This is exact on the samples that it was found on. Ask it about others: on its
    own a held-out probe falls *below* chance, since the covariances of the two halves are opposite there.

    Parameters
    ----------
    h
        Features, shape ``(*E, n, k)``; leading axes are members of an ensemble.
    z
        The concept, numbers: one a sample, shape ``(*E, n)``, or q of them, shape ``(*E, n, q)``, such as an indicator
        for each class (``torch.nn.functional.one_hot(z).to(h)``).
    smallest
        The map above; or else the orthogonal projection that takes s away, which needs no inverse and moves h more.
    floor
        Directions in which h varies less than this share of the most are left out of :math:`S^+`.

    Returns
    -------
    Eraser
        The map, to be called with features.

    Raises
    ------
    ValueError
        If shapes clash, or the concept is the same for all samples.

    Source: Belrose et al. (2023), Theorem 4.2 and equation 1.

    Examples
    --------
    >>> z = torch.tensor([1.0, -1.0]).repeat(50).double()
    >>> h = torch.randn(100, 3, generator=torch.Generator().manual_seed(0)).double() + z[:, None]
    >>> left = erase(h, z)(h)
    >>> float((left - left.mean(0)).mT.matmul(z).abs().max()) < 1e-10
    True
    """
    mean, centred, target = _centred(h, z)
    if h.device.type != "meta" and not bool(target.any()):
        raise ValueError("z must differ between samples, or there is nothing to erase")
    n = target.shape[-2]
    s = centred.mT @ target / n
    if not smallest:
        left, size, _ = torch.linalg.svd(s, full_matrices=False)
        basis = left * (size > floor * size[..., :1])[..., None, :]
        return Eraser(mean, basis, basis)
    size, axes = torch.linalg.eigh(centred.mT @ centred / n)
    alive = size > floor * size[..., -1:]
    inverse = torch.where(alive, 1 / size.clamp(min=torch.finfo(h.dtype).tiny), 0.0)
    v = axes @ (inverse[..., None] * (axes.mT @ s))
    return Eraser(mean, s @ torch.linalg.pinv(s.mT @ v, hermitian=True), v)


def mean_difference(h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E k"]:
    """A concept's direction: the mean of h where z is positive, less the mean where it is not.

    Parameters
    ----------
    h, z
        Features and a concept of one number a sample.

    Returns
    -------
    Tensor
        Shape ``(*E, k)``.
    """
    yes = (z > 0).to(h)[..., None]
    return (h * yes).sum(-2) / yes.sum(-2) - (h * (1 - yes)).sum(-2) / (1 - yes).sum(-2)


def ridge_probe(h: Float[Tensor, "*E n k"], z: Float[Tensor, "..."], ridge: float = 1e-3) -> tuple[Tensor, Tensor]:
    """The linear probe behind `probe`: ridge regression of z on h, for an ensemble.

    Parameters
    ----------
    h, z
        Features and a concept of one number or of q numbers a sample, as for `erase`.
    ridge
        In units of the mean variance of a feature.

    Returns
    -------
    tuple
        Weights, shape ``(*E, k)``, and threshold, shape ``*E``; with q numbers ``(*E, k, q)`` and ``(*E, q)``. The
        prediction is h w - threshold.
    """
    mean, centred, target = _centred(h, z)
    n = target.shape[-2]
    covariance = centred.mT @ centred / n
    size = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)
    w = torch.linalg.solve(covariance + ridge * size * eye, centred.mT @ target / n)
    one = z.ndim == h.ndim - 1
    threshold = (mean[..., None, :] @ w)[..., 0, :] - (z[..., None] if one else z).to(h).mean(-2)
    return (w[..., 0], threshold[..., 0]) if one else (w, threshold)


def probed(found: tuple[Tensor, Tensor], h: Float[Tensor, "*E n k"], z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E"]:
    """Share of samples whose concept, of two signs, a ridge probe gets right.

    Parameters
    ----------
    found
        What `ridge_probe` returned for one number a sample.
    h, z
        Features, and the concept, of size 1.

    Returns
    -------
    Tensor
        Shape ``*E``; an answer of 0 up to rounding is half right.
    """
    output = torch.einsum("...k,...nk->...n", found[0], h) - found[1][..., None]
    right = ((output > 0) == (z > 0)).to(h)
    return torch.where(output.abs() < torch.finfo(h.dtype).eps ** 0.5, 0.5, right).mean(-1)


def _centred(h: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean of the features, and features and concept without their means; the concept gets a last axis."""
    if h.ndim < 2 or not (z.ndim in (h.ndim - 1, h.ndim) and z.shape[: h.ndim - 1] == h.shape[:-1]):
        raise ValueError(f"h must have the shape (*E, n, k), and z (*E, n) or (*E, n, q); got {tuple(h.shape)} and "
                         f"{tuple(z.shape)}")
    target = (z[..., None] if z.ndim == h.ndim - 1 else z).to(h)
    mean = h.mean(-2)
    return mean, h - mean[..., None, :], target - target.mean(-2, keepdim=True)


def _indicators(h: Tensor, z: Tensor) -> Tensor:
    """One column a class, 1 for its samples."""
    if h.ndim != 2 or z.shape != h.shape[:1] or len(h) < 4:
        raise ValueError(f"h must have the shape (n, k) and z (n,), with n at least 4; got {tuple(h.shape)} and "
                         f"{tuple(z.shape)}")
    classes = z.unique()
    if z.is_floating_point() and bool((classes != classes.round()).any()) or not 2 <= len(classes) <= MOST_CLASSES:
        raise ValueError(f"z must name classes, 2 to {MOST_CLASSES} whole numbers or truth values; got {len(classes)} "
                         f"different values from {classes.min().item():g} to {classes.max().item():g}")
    return z[:, None] == classes


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's interval of a share of n independent samples."""
    z = 1.96
    middle, half = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
