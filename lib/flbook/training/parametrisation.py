r"""Parametrisations: how the start and the rates of a network's layers depend on its width.

A network of width n is compared with a base network of the same shape and width :math:`n_0`; with :math:`m = n/n_0`
the weights of a layer start :math:`m^{s}` times as large as the base network's, and move at :math:`m^{r}` times its
rate. At the base width all parametrisations are the same network, so what is tuned there can be compared.

Three kinds of layers are told apart by which sides of a weight matrix grow with the width: input (the outputs only),
hidden (both), output (the inputs only).

Sources: Yang and Hu (2021), in whose letters :math:`s = -(a + b)`, and :math:`r = -(c + 2a)` for gradient descent,
:math:`r = -(c + a)` for Adam; Jacot, Gabriel and Hongler (2018) for the neural tangent parametrisation.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from flbook.domains import Checked, Positive, checked_arguments

__all__ = ["MAXIMAL_UPDATE", "NEURAL_TANGENT", "NO_MULTIPLIER", "STANDARD", "STANDARD_SLOW", "Growth", "Moved",
           "Parametrisation", "growth", "rate_groups", "start_as"]

Rule = Literal["gradient descent", "Adam"]
KINDS = ("input", "hidden", "output")
Exponents = tuple[float, float, float]  # of the layers in the order of KINDS


class Moved(NamedTuple):
    """Exponents in the width of the change by one step, on the inputs of training."""

    first: float  # of a coordinate of the first hidden layer
    second: float  # of the second
    output: float


@dataclass(frozen=True)
class Parametrisation(Checked):
    r"""Exponents of the width in start and rates, layer by layer.

    Attributes
    ----------
    size
        :math:`s`, of the standard deviation of the start's weights.
    descent
        :math:`r`, of the rates of gradient descent.
    adam
        :math:`r`, of the rates of Adam, whose steps have the size of the rate.

    Raises
    ------
    ValueError
        If a field is no three finite numbers.

    Examples
    --------
    >>> MAXIMAL_UPDATE.moved()
    Moved(first=0.0, second=0.0, output=0.0)
    >>> NEURAL_TANGENT.moved()
    Moved(first=-0.5, second=-0.5, output=0.0)
    """

    size: Exponents = (0.0, -0.5, -0.5)
    descent: Exponents = (0.0, 0.0, 0.0)
    adam: Exponents = (0.0, 0.0, 0.0)

    def rates(self, rule: Rule = "gradient descent") -> Exponents:
        """The exponents of the rates of one rule.

        Parameters
        ----------
        rule
            Gradient descent or Adam.

        Returns
        -------
        tuple
            Three exponents, in the order of `KINDS`.
        """
        return self.adam if rule == "Adam" else self.descent

    def moved(self, rule: Rule = "gradient descent") -> Moved:
        r"""Exponents of the change by one step in a network of two hidden layers.

        With output weights of the size :math:`n^{-p}` and hidden ones of :math:`n^{-1/2}`, gradient descent has

        .. math:: z_1: r_1 - p, \qquad z_2: \max(r_2 + 1 - p,\ r_1 - p), \qquad
                  f: \max(r_3 + 1,\ r_2 + 2 - 2p,\ r_1 + 1 - 2p),

        and Adam, whose first step is a sign,

        .. math:: z_1: r_1, \qquad z_2: \max(r_2 + 1,\ r_1), \qquad f: \max(r_3 + 1,\ r_2 + 2 - p,\ r_1 + 1 - p).

        Parameters
        ----------
        rule
            Gradient descent or Adam.

        Returns
        -------
        Moved
            One exponent a layer.

        Raises
        ------
        ValueError
            If hidden weights do not start at the size :math:`n^{-1/2}` and input weights at 1: then the signal of the
            first pass depends on the width, too.
        """
        if self.size[:2] != (0.0, -0.5):
            raise ValueError(f"size must begin with 0, -0.5, or signals change with the width; got {self.size}")
        p, (first, second, last) = -self.size[2], self.rates(rule)
        if rule == "Adam":
            return Moved(first, max(second + 1, first), max(last + 1, second + 2 - p, first + 1 - p))
        return Moved(first - p, max(second + 1 - p, first - p), max(last + 1, second + 2 - 2 * p, first + 1 - 2 * p))


STANDARD = Parametrisation()
STANDARD_SLOW = Parametrisation(descent=(-1.0, -1.0, -1.0), adam=(-1.0, -1.0, -1.0))
NEURAL_TANGENT = Parametrisation(descent=(0.0, -1.0, -1.0), adam=(0.0, -0.5, -0.5))
MAXIMAL_UPDATE = Parametrisation((0.0, -0.5, -1.0), (1.0, 0.0, -1.0), (0.0, -1.0, -1.0))
NO_MULTIPLIER = Parametrisation((0.0, -0.5, -0.5), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0))


class Growth(NamedTuple):
    """How a parameter grows with the width."""

    kind: str | None  # one of KINDS; None where it does not grow
    ratio: float  # m, of the side that grows: of the inputs where both do


def growth(parameter: Tensor, base: Tensor) -> Growth:
    """Which kind of layer a parameter belongs to, by its shape and that in the base network.

    Parameters
    ----------
    parameter, base
        The same parameter of two networks, its outputs on the first axis and its inputs on the second, as in
        ``nn.Linear`` and convolutions; vectors that grow (biases, gains) count as input weights.

    Returns
    -------
    Growth
        The kind, and by how much it grows.

    Raises
    ------
    ValueError
        If the shapes have different axes, or other axes than the first two grow.
    """
    if parameter.ndim != base.ndim or parameter.shape[2:] != base.shape[2:]:
        raise ValueError(f"only the first two axes of a parameter may grow with the width; got shapes "
                         f"{tuple(base.shape)} and {tuple(parameter.shape)}")
    ratios = [a / b for a, b in zip(parameter.shape[:2], base.shape[:2], strict=True)]
    grows = [ratio != 1 for ratio in ratios]
    if not any(grows):
        return Growth(None, 1.0)
    if len(ratios) == 1 or not grows[1]:
        return Growth("input", ratios[0])
    return Growth("hidden" if grows[0] else "output", ratios[1])


@torch.no_grad()
@checked_arguments
def start_as(parametrisation: Parametrisation, module: nn.Module, base: nn.Module) -> nn.Module:
    r"""Rescale the start of a network from one in the standard parametrisation, in place.

    PyTorch's layers start with weights of size :math:`1/\sqrt{\text{inputs}}`: that is :data:`STANDARD`. A layer is
    multiplied by :math:`m` to the power by which its exponent differs from that.

    Parameters
    ----------
    parametrisation
        The one wanted.
    module
        The network, just made.
    base
        The same at the base width.

    Returns
    -------
    Module
        The network that was given.

    Raises
    ------
    ValueError
        If the two have other parameters, or a parameter grows along an axis that is no width.
    """
    for parameter, other in _pairs(module, base):
        kind, ratio = growth(parameter, other)
        if kind is not None:
            place = KINDS.index(kind)
            parameter.mul_(ratio ** (parametrisation.size[place] - STANDARD.size[place]))
    return module


@checked_arguments
def rate_groups(parametrisation: Parametrisation, module: nn.Module, base: nn.Module, lr: Positive,
                rule: Rule = "gradient descent") -> list[dict]:
    """The parameters of a network in groups with their rates, for any optimizer of PyTorch.

    Parameters
    ----------
    parametrisation
        Exponents of the rates.
    module
        The network.
    base
        The same at the base width, where every rate is `lr`.
    lr
        The rate there.
    rule
        Whose exponents are taken: Adam's serve all rules whose steps have the size of the rate.

    Returns
    -------
    list of dict
        One group a parameter, ``torch.optim.SGD(rate_groups(...))``.

    Raises
    ------
    ValueError
        As `start_as` does.

    Examples
    --------
    >>> wide, base = (nn.Sequential(nn.Linear(3, n), nn.Tanh(), nn.Linear(n, 1)) for n in (40, 10))
    >>> [group["lr"] for group in rate_groups(MAXIMAL_UPDATE, wide, base, lr=0.1)]
    [0.4, 0.4, 0.025, 0.1]
    """
    groups = []
    for parameter, other in _pairs(module, base):
        kind, ratio = growth(parameter, other)
        power = 0.0 if kind is None else parametrisation.rates(rule)[KINDS.index(kind)]
        groups.append({"params": [parameter], "lr": lr * ratio**power})
    return groups


def _pairs(module: nn.Module, base: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Parameters of both networks, by name."""
    ours, theirs = dict(module.named_parameters()), dict(base.named_parameters())
    if ours.keys() != theirs.keys():
        raise ValueError(f"the two networks must have the same parameters; only one has "
                         f"{', '.join(sorted(ours.keys() ^ theirs.keys()))}")
    return [(ours[name], theirs[name]) for name in ours]
