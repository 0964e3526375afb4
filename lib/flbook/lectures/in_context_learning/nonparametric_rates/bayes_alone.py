r"""The Bayes estimator of one prompt without any pretraining: who knows everything but the hidden frequencies.

One frequency of every group is used, each equally likely; given them the function is Gaussian, so its posterior mean is
ridge regression and its evidence a determinant. The estimator averages the first by the second over all sets of
frequencies, exactly.
"""

from itertools import product

import torch
from torch import Tensor

from flbook.shapes import Context


def bayes_alone(features, groups: list[range], variance: Tensor, noise: float):
    r"""The posterior mean of the function over all choices of one pair of features from every group.

    Parameters
    ----------
    features
        From inputs ``(..., n, d)`` to all candidates ``(..., n, 2 D)``, pairs side by side.
    groups
        The pairs of each group, as ranges of their indices.
    variance
        Of the two coefficients of the i-th group's pair, shape ``(2 * len(groups),)``.
    noise
        Standard deviation :math:`\sigma_y`, above 0.

    Returns
    -------
    callable
        From a context and queries to predictions, shape ``(batch, queries)``.
    """
    chosen = torch.tensor(list(product(*groups[:-1])), dtype=torch.long)
    columns = torch.stack([2 * chosen, 2 * chosen + 1], -1).flatten(1)  # of every choice but the last group's
    last = torch.arange(2 * groups[-1].start, 2 * groups[-1].stop)
    precision = 1 / variance.double()

    def predict(context: Context, query: Tensor) -> Tensor:
        phi = features(context.x)
        known = columns.to(phi.device), last.to(phi.device), precision.to(phi.device)
        gram = torch.einsum("bni,bnj->bij", phi, phi) / noise**2
        moment = torch.einsum("bni,bn->bi", phi, context.y) / noise**2
        means = torch.stack([_mean(*one, *known) for one in zip(gram, moment, strict=True)])
        return torch.einsum("bqi,bi->bq", features(query), means)

    return predict


def _mean(gram: Tensor, moment: Tensor, columns: Tensor, last: Tensor, precision: Tensor) -> Tensor:
    """Posterior mean of all coefficients, shape (2 D,): the last group is eliminated in blocks of two."""
    inner = gram[columns[:, :, None], columns[:, None, :]] + torch.diag(precision[:-2])
    root = torch.linalg.cholesky(inner)
    cross = torch.linalg.solve_triangular(root, gram[columns][..., last], upper=False).unflatten(-1, (-1, 2))
    known = torch.linalg.solve_triangular(root, moment[columns][..., None], upper=False)[..., 0]

    pairs = last.unflatten(0, (-1, 2))
    block = gram[pairs[:, :, None], pairs[:, None, :]] + torch.diag(precision[-2:])
    block = block - torch.einsum("pkoa,pkob->poab", cross, cross)
    left = moment[pairs] - torch.einsum("pkoa,pk->poa", cross, known)
    a, b, c = block[..., 0, 0], block[..., 0, 1], block[..., 1, 1]
    det = a * c - b**2  # two by two, by hand: tens of thousands of them
    solved = torch.stack([c * left[..., 0] - b * left[..., 1], a * left[..., 1] - b * left[..., 0]], -1)
    solved = solved / det[..., None]

    fits = (left * solved).sum(-1) + known.square().sum(-1)[:, None]
    sizes = det.log() + 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None]
    weight = torch.softmax(((fits - sizes) / 2).flatten(), 0).unflatten(0, fits.shape)

    mean = torch.zeros_like(moment)
    mean[last] = (weight[..., None] * solved).sum(0).flatten()
    rest = known * weight.sum(-1, keepdim=True) - torch.einsum("po,pkoa,poa->pk", weight, cross, solved)
    rest = torch.linalg.solve_triangular(root.mT, rest[..., None], upper=True)[..., 0]
    return mean.index_add(0, columns.flatten(), rest.flatten())
