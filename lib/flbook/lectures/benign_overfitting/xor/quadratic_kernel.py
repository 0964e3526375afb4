r"""The rival that knows the degree: the fixed kernel :math:`\langle x, x'\rangle^2` on exclusive or in one patch.

It has no linear part to be blinded by, and learns no feature. Either every sample pulls alike, as in
:math:`f(x) = \sum_i y_i \langle x_i, x\rangle^2`, or the coefficients fit all labels. Other kernels answer in the same
way.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise


def quadratic(x: Float[Tensor, "n d"], z: Float[Tensor, "p d"]) -> Float[Tensor, "n p"]:
    """The kernel, of all pairs of rows."""
    return (x @ z.mT) ** 2


def errors(
    n: int, mu_norm: float, d: int, seed: tuple[int, ...], fitted: bool = True, points: int = 500,
    kernel: Callable[[Tensor, Tensor], Tensor] = quadratic, flip_prob: float = 0.0,
) -> Float[Tensor, " seeds"]:  # fmt: skip
    """Share of fresh samples that it gets wrong, seed by seed, on the data sets of `xor_one_patch`."""
    data, wrong = XorSignalNoise(n=n, d=d, mu_norm=mu_norm, flip_prob=flip_prob), []
    for one in seed:  # n x n matrices, one at a time
        train, fresh = data.draw(one), data.draw_test(points, one)
        x, new = train.x.sum(-2), fresh.x.sum(-2)
        pull = train.observed
        if fitted:
            gram = kernel(x, x)
            tiny = 1e-9 * gram.diagonal().mean()  # there may be more samples than products of coordinates
            pull = torch.linalg.solve(gram + tiny * torch.eye(n).to(gram), pull)
        wrong.append((kernel(new, x) @ pull * fresh.y <= 0).double().mean())
    return torch.stack(wrong)
