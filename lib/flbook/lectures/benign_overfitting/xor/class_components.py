r"""The strongest rival on exclusive or in one patch: the first principal component of each class.

The samples of label +1 vary most along u, those of label -1 along v. With :math:`\hat u` and :math:`\hat v` the two
components, of length 1, it answers :math:`\langle\hat u, x\rangle^2 - \langle\hat v, x\rangle^2`: two features, found
by linear algebra.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise


def outputs(
    x: Float[Tensor, "n d"], observed: Float[Tensor, " n"], new: Float[Tensor, "p d"]
) -> Float[Tensor, " p"]:
    """What it answers on new samples."""
    plus, minus = (torch.linalg.svd(x[observed == label], full_matrices=False).Vh[0] for label in (1, -1))
    return (new @ plus) ** 2 - (new @ minus) ** 2


def errors(n: int, mu_norm: float, d: int, seed: tuple[int, ...], points: int = 500) -> Float[Tensor, " seeds"]:
    """Share of fresh samples that it gets wrong, seed by seed, on the data sets of `xor_one_patch` without flips."""
    data, wrong = XorSignalNoise(n=n, d=d, mu_norm=mu_norm, flip_prob=0.0), []
    for one in seed:
        train, fresh = data.draw(one), data.draw_test(points, one)
        found = outputs(train.x.sum(-2), train.observed, fresh.x.sum(-2))
        wrong.append((found * fresh.y <= 0).double().mean())
    return torch.stack(wrong)
