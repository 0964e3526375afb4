r"""The rival that knows the degree: the fixed kernel :math:`\langle x, x'\rangle^2` on exclusive or in one patch.

It has no linear part to be blinded by, and learns no feature. Either every sample pulls alike, as in
:math:`f(x) = \sum_i y_i \langle x_i, x\rangle^2`, or the coefficients fit all labels.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise


def errors(
    n: int, mu_norm: float, d: int, seed: tuple[int, ...], fitted: bool = True, points: int = 500
) -> Float[Tensor, " seeds"]:
    """Share of fresh samples that it gets wrong, seed by seed, on the data sets of `xor_one_patch` without flips."""
    data, wrong = XorSignalNoise(n=n, d=d, mu_norm=mu_norm, flip_prob=0.0), []
    for one in seed:  # n x n matrices, one at a time
        train, fresh = data.draw(one), data.draw_test(points, one)
        x, new = train.x.sum(-2), fresh.x.sum(-2)
        pull = train.y
        if fitted:
            gram = (x @ x.T) ** 2
            tiny = 1e-9 * gram.diagonal().mean()  # there may be more samples than products of coordinates
            pull = torch.linalg.solve(gram + tiny * torch.eye(n).to(gram), train.y)
        wrong.append(((new @ x.T) ** 2 @ pull * fresh.y <= 0).double().mean())
    return torch.stack(wrong)
