"""A linear probe of many classes: ridge regression of the one-hot labels on features, each of variance 1."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.domains import Positive, checked_arguments
from flbook.estimators.regression import ridge
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import CLASSES


@checked_arguments
def linear_probe(
    h: Float[Tensor, "*E n k"], label: Int[Tensor, "*E n"], strength: Positive = 1e-3
) -> Callable[[Tensor], Tensor]:
    """A function from features to classes, fitted to these; strength: of the ridge, in units of a feature's variance.

    Examples
    --------
    >>> h = torch.eye(10).repeat(2, 1)
    >>> linear_probe(h, h.argmax(-1))(torch.eye(10)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    h = h.double()
    mean, size = h.mean(-2, keepdim=True), h.std(-2, keepdim=True).clamp(min=torch.finfo(h.dtype).eps)
    target = torch.nn.functional.one_hot(label, CLASSES).double()
    level = target.mean(-2, keepdim=True)
    standard = ((h - mean) / size)[..., None, :, :]
    weights = ridge(standard, (target - level).mT, strength * h.shape[-1])  # (*E, classes, k)
    return lambda other: (((other.double() - mean) / size) @ weights.mT + level).argmax(-1)
