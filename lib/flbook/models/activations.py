"""Activations: a function and its slope, so that a gradient can be written down as well as differentiated.

`vjp` is the slope at z times what comes from behind, the chain rule's one step: for a ReLU in one pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from flbook.domains import Checked, Count, Positive, Probability, Range


class Activation:
    """What every activation has."""

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`\sigma'(z)`, of the shape of z.
        """
        raise NotImplementedError

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        r""":math:`u\,\sigma'(z)`, the derivative in z of a loss whose derivative in :math:`\sigma(z)` is u.

        Parameters
        ----------
        upstream
            u, of a shape that broadcasts against that of z.
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            Derivative in z, of the shape of both.
        """
        return upstream * self.slope(z)


@dataclass(frozen=True)
class ReLUPower(Checked, Activation):
    r""":math:`\sigma(z) = \max(z, 0)^q`, with slope :math:`q \max(z, 0)^{q-1}` (0 at the kink of ReLU).

    Examples
    --------
    >>> square = ReLUPower(2)
    >>> square(torch.tensor([-1.0, 3.0])).tolist(), square.slope(torch.tensor([-1.0, 3.0])).tolist()
    ([0.0, 9.0], [0.0, 6.0])
    """

    q: Annotated[float, Range(1)] = 1.0  # below 1 there is no slope at 0

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return z.relu() if self.q == 1 else z.relu() ** self.q

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`q \max(z, 0)^{q-1}`, of the shape of z.
        """
        return (z > 0).to(z.dtype) if self.q == 1 else self.q * z.relu() ** (self.q - 1)

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        r""":math:`u\,\sigma'(z)`; for ReLU u where z is positive, without an array of zeros and ones.

        Parameters
        ----------
        upstream
            u, of a shape that broadcasts against that of z.
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            Derivative in z, of the shape of both.
        """
        return torch.ops.aten.threshold_backward(upstream, z, 0) if self.q == 1 else super().vjp(upstream, z)


@dataclass(frozen=True)
class Power(Checked, Activation):
    r""":math:`\sigma(z) = z^q`, with slope :math:`q z^{q-1}`: the square is even, the cube odd.

    Examples
    --------
    >>> Power(3)(torch.tensor([-2.0, 1.0])).tolist(), Power(3).slope(torch.tensor([-2.0, 1.0])).tolist()
    ([-8.0, 1.0], [12.0, 3.0])
    """

    q: Count = 2

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return z**self.q

    def slope(self, z: Tensor) -> Tensor:
        """The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`q z^{q-1}`, of the shape of z.
        """
        return self.q * z ** (self.q - 1)


@dataclass(frozen=True)
class LeakyReLU(Checked, Activation):
    r""":math:`\sigma(z) = \max(z, \alpha z)` with leak :math:`0 \le \alpha \le 1`; :math:`\alpha = 1` is linear.

    Examples
    --------
    >>> LeakyReLU(0.25)(torch.tensor([-2.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    leak: Probability = 0.1  # the slope below 0

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return torch.nn.functional.leaky_relu(z, self.leak)

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            1 where z is positive, else :math:`\alpha`, of the shape of z.
        """
        return self.leak + (1 - self.leak) * (z > 0).to(z.dtype)

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        r""":math:`u\,\sigma'(z)` in one pass.

        Parameters
        ----------
        upstream
            u, of a shape that broadcasts against that of z.
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            Derivative in z, of the shape of both.
        """
        return torch.ops.aten.leaky_relu_backward(upstream, z, self.leak, False)


@dataclass(frozen=True)
class SmoothLeakyReLU(Checked, Activation):
    r""":math:`\sigma(z) = \alpha z + \frac{1-\alpha}{h}\log\frac{1 + e^{hz}}{2}`: slopes from α to 1, no kink, 0 at 0.

    `sharpness` h: the slope turns within a few 1/h of zero.
    """

    leak: Probability = 0.1
    sharpness: Positive = 10.0

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        bend = torch.nn.functional.softplus(self.sharpness * z) - math.log(2)
        return self.leak * z + (1 - self.leak) / self.sharpness * bend

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`\alpha + (1-\alpha)/(1 + e^{-hz})`, of the shape of z.
        """
        return self.leak + (1 - self.leak) * torch.sigmoid(self.sharpness * z)


@dataclass(frozen=True)
class Softplus(Checked, Activation):
    r""":math:`\sigma(z) = \log(1 + e^{\beta z})/\beta`: a ReLU without its kink, the closer the larger beta."""

    beta: Positive = 1.0  # sharpness of the bend at 0

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return torch.nn.functional.softplus(z, beta=self.beta)

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`1/(1 + e^{-\beta z})`, of the shape of z.
        """
        return torch.sigmoid(self.beta * z)


@dataclass(frozen=True)
class Tanh(Activation):
    r""":math:`\sigma(z) = \tanh z`: smooth, odd and bounded."""

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return torch.tanh(z)

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`1 - \tanh^2 z`, of the shape of z.
        """
        return 1 - torch.tanh(z).square()


@dataclass(frozen=True)
class CentredSigmoid(Activation):
    r""":math:`\sigma(z) = \frac{1}{1 + e^{-z}} - \frac12 = \frac12\tanh\frac z2`: the sigmoid without its mean; odd.

    Without the 1/2 every neuron would carry the same constant, and the covariance of features would be nearly rank one.
    """

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return torch.tanh(z / 2) / 2

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`\frac14(1 - \tanh^2\frac z2)`, of the shape of z.
        """
        return (1 - torch.tanh(z / 2).square()) / 4


@dataclass(frozen=True)
class GELU(Activation):
    r""":math:`\sigma(z) = z\,\Phi(z)`, a smooth ReLU; Phi is the normal distribution function (Hendrycks 2016)."""

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return torch.nn.functional.gelu(z)

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`\Phi(z) + z\,\Phi'(z)`, of the shape of z.
        """
        return torch.special.ndtr(z) + z * torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Erf(Activation):
    r""":math:`\sigma(z) = \mathrm{erf}(z)`: odd and bounded too, with Gaussian expectations in closed form."""

    def __call__(self, z: Tensor) -> Tensor:
        """The value."""
        return z.erf()

    def slope(self, z: Tensor) -> Tensor:
        r"""The derivative.

        Parameters
        ----------
        z
            Pre-activations, any shape.

        Returns
        -------
        Tensor
            :math:`\frac{2}{\sqrt\pi} e^{-z^2}`, of the shape of z.
        """
        return 2 / math.sqrt(math.pi) * (-z.square()).exp()


def tangent(activation: Callable[[Tensor], Tensor], z: Tensor, z_0: Tensor) -> Tensor:
    r"""First-order response :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`: that of a filter whose features stay.

    Parameters
    ----------
    activation
        An activation with a `slope`.
    z, z_0
        Pre-activations now and at the start, of shapes that broadcast.

    Returns
    -------
    Tensor
        Response, of the shape of both.

    Examples
    --------
    >>> tangent(ReLUPower(2), torch.tensor(3.0), torch.tensor(1.0)).item()
    5.0
    """
    return activation(z_0) + activation.slope(z_0) * (z - z_0)


relu = ReLUPower(1.0)
square = Power(2)
cube = Power(3)
softplus = Softplus()
tanh = Tanh()
centred_sigmoid = CentredSigmoid()
gelu = GELU()
erf = Erf()
identity = LeakyReLU(1.0)
