r"""What coins for labels do to a network that starts at :math:`f = 0`, in closed form for many samples.

Then the start minimises the test loss, its Hessian there is :math:`H = \frac14 E\,\nabla f\nabla f^\top`, which is n
times the covariance of the training gradient, too, and the flow moves by :math:`-H^{-1}(1 - e^{-HT})` times that
gradient. With the eigenvalues :math:`\lambda` of H, to leading order in 1/n,

.. math:: n\,\mathrm{gap} = \sum (1 - e^{-\lambda T}), \qquad n\,\frac{\mathrm{tr} K_T}{n^2} = T\sum\lambda, \qquad
          n\,(L_S(0) - L_S(T)) = \frac12 \sum (1 - e^{-2\lambda T}) .

Derived on the page.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.tangent_kernel import neuron_kernel
from flbook.models.two_layer import TwoLayer


class CoinLaw(NamedTuple):
    """Means over samples, to leading order."""

    gap: float  # test loss less training loss
    own: float  # tr K / n²
    fall: float  # of the training loss
    bound: float  # 2 sqrt(fall own): the root of the mean square


def curvatures(model: TwoLayer, x: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """Eigenvalues of H at the start, in units of flow time, over all inputs that can be drawn."""
    kernel = neuron_kernel(model, model.w.detach(), x.to(model.w))
    return torch.linalg.eigvalsh(kernel / (4 * len(x))).clamp_min(0)


def coin_law(eigenvalues: Float[Tensor, " N"], n: float, time: float) -> CoinLaw:
    """Gap, own work, fall and bound from n samples with coins for labels, after some flow time."""
    reached = -torch.expm1(-eigenvalues * time)
    gap, own = float(reached.sum() / n), float(eigenvalues.sum() * time / n)
    fall = float(-torch.expm1(-2 * eigenvalues * time).sum() / (2 * n))
    return CoinLaw(gap, own, fall, 2 * (fall * own) ** 0.5)
