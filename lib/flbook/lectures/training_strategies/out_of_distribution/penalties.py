r"""Losses that compare environments: each adds to the mean risk :math:`\frac1E\sum_e R_e`, or replaces it.

Each is a loss of all samples at once, those of the first environment first, whose mean over samples is the objective;
so any problem of `flbook.training` trains it, by any rule, on full batches.

.. math:: \text{IRMv1: } \lambda\,\frac1E\sum_e c_e^2,\quad c_e = \frac{d}{ds}R_e(sf)\Big|_{s=1}; \qquad
          \text{VREx: } \lambda\,\mathrm{Var}_e R_e; \qquad \text{group DRO: } \max_e R_e

Source: Arjovsky et al. (2019); Krueger et al. (2021), with the mean risk instead of the sum; Sagawa et al. (2020), with
the maximum itself instead of weights that follow it.
"""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from flbook.domains import Checked, NonNegative, Range
from flbook.training.losses import check_labels, logistic


@dataclass(frozen=True)
class _Compared(Checked):
    """A loss of environments of equal size."""

    weight: NonNegative = 1.0  # λ
    count: Annotated[int, Range(2)] = 2  # environments

    def check(self, labels: Tensor) -> None:
        """Refuse labels that are no signs, or samples that do not split into environments of equal size."""
        check_labels(labels)
        if labels.shape[-1] % self.count:
            raise ValueError(f"count must divide the number of samples, as environments have equal sizes; got "
                             f"{self.count} for {labels.shape[-1]} samples")

    def split(self, values: Tensor) -> Tensor:
        """Means over each environment, shape ``(*E, environments)``."""
        return values.unflatten(-1, (self.count, -1)).mean(-1)

    def spread(self, values: Tensor, f: Tensor) -> Tensor:
        """One number for each environment, given to all of its samples."""
        return values[..., None].expand(*values.shape, f.shape[-1] // self.count).flatten(-2)


@dataclass(frozen=True)
class InvariantRisk(_Compared):
    """IRMv1: the risk of each environment shall not fall if all outputs are multiplied by one factor.

    Examples
    --------
    >>> import torch
    >>> f, y = torch.tensor([2.0, 2.0, 2.0, 2.0]), torch.tensor([1.0, -1.0, 1.0, 1.0])
    >>> [f"{c:.2f}" for c in (InvariantRisk(10.0)(f, y) - logistic(f, y))[::2]]  # 10 c², of either environment
    ['5.80', '0.57']
    """

    def scale_slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivatives c_e of the risks in a common factor of the outputs, shape ``(*E, environments)``."""
        return self.split(logistic.slope(f, y) * f)

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output, the penalty of its environment in it."""
        return logistic(f, y) + self.weight * self.spread(self.scale_slope(f, y).square(), f)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative of the sum of all losses in each output."""
        slope, c = logistic.slope(f, y), self.spread(self.scale_slope(f, y), f)
        return slope + 2 * self.weight * c * (slope + f * logistic.curvature(f, y))


@dataclass(frozen=True)
class RiskVariance(_Compared):
    """VREx: all environments shall have one risk."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each output, with the variance of the risks."""
        risks = self.split(logistic(f, y))
        return logistic(f, y) + self.weight * (risks - risks.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative of the sum of all losses in each output."""
        risks = self.split(logistic(f, y))
        above = self.spread(risks - risks.mean(-1, keepdim=True), f)
        return logistic.slope(f, y) * (1 + 2 * self.weight * above)


@dataclass(frozen=True)
class WorstRisk(_Compared):
    """Group DRO with environments as groups: the risk of the worst one."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The worst risk, at every sample."""
        return self.split(logistic(f, y)).amax(-1, keepdim=True).expand_as(f)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """The derivative of the sum of all losses in each output."""
        risks = self.split(logistic(f, y))
        worst = (risks == risks.amax(-1, keepdim=True)).to(f)
        worst = worst / worst.sum(-1, keepdim=True)
        return logistic.slope(f, y) * self.spread(worst, f) * self.count
