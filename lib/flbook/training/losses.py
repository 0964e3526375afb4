"""Losses of an output f against a label y, and their slopes in f."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class Logistic:
    r""":math:`\ell(f, y) = \log(1 + e^{-yf})`; for two logits, whose difference is f, the cross entropy.

    Examples
    --------
    >>> f, y = torch.tensor([0.0, 3.0]), torch.tensor([1.0, -1.0])
    >>> logistic(f, y), logistic.slope(f, y)
    (tensor([0.6931, 3.0486]), tensor([-0.5000,  0.9526]))
    """

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return torch.nn.functional.softplus(-y * f)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``.
        y
            Labels, -1 or +1, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`-y/(1 + e^{yf})`, shape ``(*E, n)``.
        """
        return -y * torch.sigmoid(-y * f)

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """The second derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``.
        y
            Labels, -1 or +1, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`y^2 e^f/(1 + e^f)^2`, shape ``(*E, n)``.
        """
        return torch.sigmoid(f) * torch.sigmoid(-f) * y**2


@dataclass(frozen=True)
class Hinge:
    r""":math:`\ell(f, y) = \max(1 - yf, 0)`, with slope 0 at the kink."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return (1 - y * f).relu()

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``.
        y
            Labels, -1 or +1, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`-y` where :math:`yf < 1`, else 0, shape ``(*E, n)``.
        """
        return -y * (y * f < 1).to(f.dtype)


@dataclass(frozen=True)
class Squared:
    r""":math:`\ell(f, y) = (f - y)^2 / 2`."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return (f - y) ** 2 / 2

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``.
        y
            Targets, any numbers, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`f - y`, shape ``(*E, n)``.
        """
        return f - y

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """The second derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``.
        y
            Targets, any numbers, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            1 for each output, shape ``(*E, n)``.
        """
        return torch.ones_like(f - y)

    def check(self, labels: Tensor) -> None:
        """Refuse targets that are not finite; any number may be one.

        Parameters
        ----------
        labels
            Targets, shape ``(*#E, n)``.
        """
        if _seen(labels) and not bool(torch.isfinite(labels).all()):
            raise ValueError(f"targets must be finite; found {labels[~torch.isfinite(labels)].flatten()[0].item():g}")


@dataclass(frozen=True)
class CrossEntropy:
    r""":math:`\ell(f, y) = \log\sum_c e^{f_c} - f_y` for logits f, whose last axis numbers the classes 0, 1, ...."""

    takes_classes: ClassVar[bool] = True

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample: logits ``(*E, n, classes)``, class numbers ``(*#E, n)``."""
        chosen = _of_class(f, y)
        return torch.logsumexp(f, -1) - (f * chosen).sum(-1)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f: the probabilities that f stands for, less 1 at the label.

        Parameters
        ----------
        f
            Logits, shape ``(*E, n, classes)``.
        y
            Class numbers, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            Slopes, of sum 0 over the classes, shape ``(*E, n, classes)``.
        """
        return torch.softmax(f, -1) - _of_class(f, y)

    def check(self, labels: Tensor) -> None:
        """Refuse labels that are no class numbers.

        Parameters
        ----------
        labels
            Labels to check, shape ``(*#E, n)``.
        """
        if _seen(labels) and bool((wrong := (labels < 0) | (labels != labels.round())).any()):
            raise ValueError(f"labels must be class numbers 0, 1, ...; found {labels[wrong].flatten()[0].item():g}")


@dataclass(frozen=True)
class SquaredClasses(CrossEntropy):
    r""":math:`\ell(f, y) = \|f - (e_y - 1/C)\|^2 / 2` for C outputs f: regression on the centred label vector."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample: outputs ``(*E, n, classes)``, class numbers ``(*#E, n)``."""
        return self.slope(f, y).square().sum(-1) / 2

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n, classes)``.
        y
            Class numbers, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`f - (e_y - 1/C)`, shape ``(*E, n, classes)``.
        """
        return f - _of_class(f, y) + 1 / f.shape[-1]


@dataclass(frozen=True)
class Weighted:
    r""":math:`\ell_i(f, y) = c_i\,\ell(f, y)`: another loss, each sample with a weight of its own."""

    loss: Any
    weight: Tensor  # (*#E, n)

    @property
    def takes_classes(self) -> bool:
        """Does the other loss take logits?

        Returns
        -------
        bool
            As it says itself; False where it says nothing.
        """
        return getattr(self.loss, "takes_classes", False)

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        return self.weight * self.loss(f, y)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        r"""The derivative in f.

        Parameters
        ----------
        f
            Outputs, shape ``(*E, n)``, or logits, shape ``(*E, n, classes)``.
        y
            Labels that the other loss takes, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            :math:`c_i\,\ell'(f, y)`, of the shape of `f`.
        """
        return (self.weight[..., None] if self.takes_classes else self.weight) * self.loss.slope(f, y)


def _of_class(f: Tensor, y: Tensor) -> Tensor:
    """1 at the label, else 0: ``(*#E, n, classes)``."""
    classes = f.shape[-1]
    if y.device.type == "cpu" and bool((y >= classes).any()):  # elsewhere a look would take a value off the device
        raise ValueError(f"labels must be below {classes}, the number of logits; found {int(y.max())}")
    return torch.nn.functional.one_hot(y.long(), classes).to(f)


def _seen(labels: Tensor) -> bool:
    """Are there numbers to look at? On the meta device there are none."""
    return labels.device.type != "meta"


logistic = Logistic()
hinge = Hinge()
squared = Squared()
cross_entropy = CrossEntropy()
squared_classes = SquaredClasses()


def check_labels(labels: Tensor) -> None:
    """Refuse labels other than -1 and +1.

    Parameters
    ----------
    labels
        Labels to check, any shape.
    """
    if _seen(labels) and not bool((labels.abs() == 1).all()):
        wrong = labels[labels.abs() != 1].flatten()[0].item()
        raise ValueError(f"labels must be -1 or +1; found {wrong:g} (map 0/1 labels by y = 2 * label - 1)")
