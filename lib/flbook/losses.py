"""Losses of an output f against a label y, and their slopes in f."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Logistic:
    r""":math:`\ell(f, y) = \log(1 + e^{-yf})`; for two logits, whose difference is f, the cross entropy."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return torch.nn.functional.softplus(-y * f)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f."""
        return -y * torch.sigmoid(-y * f)


@dataclass(frozen=True)
class Hinge:
    r""":math:`\ell(f, y) = \max(1 - yf, 0)`, with slope 0 at the kink."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return (1 - y * f).relu()

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f."""
        return -y * (y * f < 1).to(f.dtype)


@dataclass(frozen=True)
class Squared:
    r""":math:`\ell(f, y) = (f - y)^2 / 2`."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return (f - y) ** 2 / 2

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f."""
        return f - y


logistic = Logistic()
hinge = Hinge()
squared = Squared()


def check_labels(labels: Tensor) -> None:
    """Refuse labels other than -1 and +1."""
    if not bool((labels.abs() == 1).all()):
        wrong = labels[labels.abs() != 1].flatten()[0].item()
        raise ValueError(f"labels must be -1 or +1; found {wrong:g} (map 0/1 labels by y = 2 * label - 1)")
