r"""Networks as averages over neurons: what the mean-field theory calls particles."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.domains import Checked, Positive

Unit = Callable[[Tensor, Tensor], Tensor]


def linear_unit(theta: Float[Tensor, "*#E N d"], x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E N n"]:
    r"""The neuron :math:`h(\theta, x) = \langle\theta, x\rangle`."""
    return torch.einsum("...kd,...nd->...kn", theta, x)


def tanh_unit(theta: Float[Tensor, "*#E N d"], x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E N n"]:
    r"""The neuron :math:`h(\theta, x) = \tanh\langle\theta, x\rangle`, bounded and smooth as the theory wants it."""
    return linear_unit(theta, x).tanh_()


@dataclass(frozen=True)
class BoundedUnit(Checked):
    r"""A neuron with a bias and a bounded weight in the output.

    .. math:: h(\theta, x) = R \tanh(a) \tanh(\langle w, x\rangle + b), \qquad \theta = (w, b, a) \in \mathbb{R}^{d+2}

    After Suzuki, Wu, Oko and Nitanda (2023), with tanh in every place.
    """

    reach: Positive = 20.0  # R: the largest output of the network

    def __call__(self, theta: Float[Tensor, "*#E N p"], x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E N n"]:
        """What each neuron answers to each sample."""
        inner = torch.einsum("...kd,...nd->...kn", theta[..., :-2], x) + theta[..., -2, None]
        return self.reach * theta[..., -1, None].tanh() * inner.tanh()


class Neurons(nn.Module):
    r"""The average of N neurons, :math:`f(x) = \frac1N\sum_{j=1}^N h(\theta_j, x)`.

    The parameter ``theta`` has shape ``(*E, N, p)``. In the neurons a network is as nonlinear as h is; in their
    distribution it is linear.

    Parameters
    ----------
    unit
        The neuron h(theta, x), of shape ``(*E, N, n)``.
    theta
        Where the N neurons start, shape ``(*E, N, p)``.

    Raises
    ------
    ValueError
        If there is no neuron.

    Examples
    --------
    >>> Neurons(linear_unit, torch.tensor([[1.0], [3.0]]))(torch.ones(1, 1)).tolist()
    [2.0]
    """

    sample_axes = 1

    def __init__(self, unit: Unit, theta: Float[Tensor, "*E N p"]):
        super().__init__()
        if theta.ndim < 2 or theta.shape[-2] < 1:
            raise ValueError(f"theta must hold at least one neuron, shape (*E, N, p); got {tuple(theta.shape)}")
        self.unit, self.theta = unit, nn.Parameter(theta.clone())

    def forward(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples."""
        return self.unit(self.theta, x).mean(-2)
