r"""Mixup and CutMix on pictures: each step trains on mixtures of its batch, labels mixed like the pictures.

Mixup (Zhang et al. 2018): :math:`\lambda x_i + (1-\lambda) x_j` with :math:`\lambda\sim\mathrm{Beta}(\alpha,\alpha)`.
CutMix (Yun et al. 2019): a rectangle of picture j over picture i; :math:`\lambda` is the share that is left of i.
The loss is :math:`\lambda\,\ell(f, y_i) + (1-\lambda)\,\ell(f, y_j)`, which for the logistic loss depends on the mixed
label :math:`\bar y = \lambda y_i + (1-\lambda) y_j` alone:

.. math:: \ell(f,\bar y) = \log(1+e^{f}) - \tfrac{1+\bar y}{2} f.
"""

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Positive
from flbook.training.batches import Batches
from flbook.training.network import Training

MIXES = ("none", "mixup", "cutmix")


class SoftLogistic:
    """The logistic loss of a label from -1 to +1: the mean over the two classes."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return torch.nn.functional.softplus(f) - (1 + y) / 2 * f

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """The second derivative in f, which no label changes."""
        return torch.sigmoid(f) * torch.sigmoid(-f) + 0 * y

    def check(self, labels: Tensor) -> None:
        """Refuse labels outside [-1, 1]."""
        if bool((labels.abs() > 1).any()):
            raise ValueError(f"labels must lie from -1 to 1; found {labels.abs().max():g}")


soft_logistic = SoftLogistic()


@dataclass
class MixedBatches(Batches):
    """Batches whose pictures are mixed with each other, by draws that all members of an ensemble share.

    Attributes
    ----------
    mix
        "mixup", "cutmix" or "none".
    alpha
        Of the Beta distribution of the share of a picture's own.
    """

    mix: Literal[MIXES] = "none"
    alpha: Positive = 1.0

    def at(self, step: int) -> Training:
        """The problem of this step's batch, mixed."""
        part = super().at(step)
        if self.mix == "none":
            return part
        draws = rng.numpy_generator(self.seed, f"mixtures {step}")
        share, order = float(draws.beta(self.alpha, self.alpha)), torch.from_numpy(draws.permutation(self.size))
        order = order.to(part.x.device)
        mixed = copy.copy(part)
        other, their = part.x.index_select(-4, order), part.observed.index_select(-1, order)
        if self.mix == "mixup":
            mixed.x = share * part.x + (1 - share) * other
        else:
            mixed.x, share = pasted(part.x, other, 1 - share, draws.random(2))
        mixed.observed = share * part.observed + (1 - share) * their
        return mixed


def pasted(x: Tensor, other: Tensor, area: float, centre) -> tuple[Tensor, float]:
    """A rectangle of other pictures in these, of this area unless it ends at the border; and the share that is left."""
    h, w = x.shape[-2:]
    half = [edge * area**0.5 / 2 for edge in (h, w)]
    (top, bottom), (left, right) = (
        [round(min(max(c * edge + sign * r, 0), edge)) for sign in (-1, 1)]
        for c, edge, r in zip(centre, (h, w), half, strict=True)
    )
    x = x.clone()
    x[..., top:bottom, left:right] = other[..., top:bottom, left:right]
    return x, 1 - (bottom - top) * (right - left) / (h * w)
