"""The two-layer network whose first layer is drawn at random, and moved by one gradient step."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments
from flbook.models.activations import tanh
from flbook.shapes import per_member


@dataclass(frozen=True)
class RandomFeatures:
    r"""A two-layer network, its output divided by the square root of its width N.

    .. math:: f(x) = \frac{1}{\sqrt N} \sum_{j=1}^N a_j\, \sigma(\langle w_j, x\rangle), \qquad
              w_j \sim N(0, I_d / d), \quad a_j \sim N(0, 1/N)

    With `w` as drawn its features are random features. Every method takes leading ensemble axes.

    Source: Ba et al. (2022), Section 2.

    Attributes
    ----------
    w, a
        First layer ``(*E, N, d)`` and second layer ``(*E, N)``; `draw` makes both.
    activation
        :math:`\sigma` with its slope: one of `flbook.models.activations`.

    Examples
    --------
    >>> net = RandomFeatures.draw(d=3, width=50, seed=(0, 1))
    >>> x = torch.zeros(4, 3, dtype=torch.float64)
    >>> net(x).shape, net.gradient(x, x[:, 0]).shape
    (torch.Size([2, 4]), torch.Size([2, 50, 3]))
    """

    w: Float[Tensor, "*E N d"]  # first layer, a neuron a row
    a: Float[Tensor, "*E N"]  # second layer
    activation: Callable[[Tensor], Tensor] = tanh  # with its slope: `flbook.models.activations`

    @classmethod
    @checked_arguments
    def draw(
        cls, d: Count, width: Count, activation: Callable[[Tensor], Tensor] = tanh, seed: Seeds = 0
    ) -> "RandomFeatures":
        r"""A network before training, in float64; a tuple of seeds gives one leading ensemble axis.

        Parameters
        ----------
        d, width
            Dimension of the inputs; neurons N.
        activation
            Activation :math:`\sigma` with its slope.
        seed
            One number, or a tuple of them.

        Returns
        -------
        RandomFeatures
            The network, with `w` of shape ``(*E, N, d)`` and `a` of shape ``(*E, N)``.
        """
        w = rng.normal((width, d), seed, "weights") / math.sqrt(d)
        return cls(w, rng.normal((width,), seed, "second layer") / math.sqrt(width), activation)

    @property
    def width(self) -> int:
        """Neurons N.

        Returns
        -------
        int
            Number of rows of `w`.
        """
        return self.w.shape[-2]

    def features(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n N"]:
        r"""What the second layer sees: :math:`N^{-1/2}\sigma(\langle w_j, x_i\rangle)`.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, d)``.

        Returns
        -------
        Tensor
            Features, shape ``(*E, n, N)``.
        """
        return self.activation(self._inner(x)) / math.sqrt(self.width)

    def __call__(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples."""
        return torch.einsum("...k,...nk->...n", self.a, self.features(x))

    def gradient(self, x: Float[Tensor, "*#E n d"], y: Float[Tensor, "*#E n"]) -> Float[Tensor, "*E N d"]:
        r"""Gradient of :math:`\frac{1}{2n}\sum_i (f(x_i) - y_i)^2` in the first layer.

        .. math:: \frac{1}{n\sqrt N} \sum_i (f(x_i) - y_i)\, a_j\, \sigma'(\langle w_j, x_i\rangle)\, x_i

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, d)``.
        y
            Labels, shape ``(*#E, n)``.

        Returns
        -------
        Tensor
            Gradient, shape ``(*E, N, d)``.
        """
        z = self._inner(x)
        residual = torch.einsum("...k,...nk->...n", self.a, self.activation(z)) / math.sqrt(self.width) - y
        slope = residual[..., :, None] * self.activation.slope(z) * self.a[..., None, :]
        return torch.einsum("...nk,...nd->...kd", slope, x) / (x.shape[-2] * math.sqrt(self.width))

    def moved(self, gradient: Float[Tensor, "*#E N d"], lr: float | Tensor) -> "RandomFeatures":
        r"""The network after :math:`W \leftarrow W - \eta\sqrt N\,\nabla_W L`.

        The factor :math:`\sqrt N` makes up for the one in the output: at :math:`\eta = \Theta(1)` the step is as large
        as the start in operator norm, at :math:`\eta = \Theta(\sqrt N)` in Frobenius norm.

        Parameters
        ----------
        gradient
            Gradient :math:`\nabla_W L`, shape ``(*#E, N, d)``.
        lr
            Step size :math:`\eta`, one number, or one a member, shape ``(*E,)``.

        Returns
        -------
        RandomFeatures
            The moved network, its second layer as it was.
        """
        return replace(self, w=self.w - math.sqrt(self.width) * per_member(lr, self.w) * gradient)

    def step(self, x: Float[Tensor, "*#E n d"], y: Float[Tensor, "*#E n"], lr: float | Tensor) -> "RandomFeatures":
        r"""One gradient step on the first layer.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, d)``.
        y
            Labels, shape ``(*#E, n)``.
        lr
            The :math:`\eta` in :math:`\eta\sqrt N`, one number, or one a member, shape ``(*E,)``.

        Returns
        -------
        RandomFeatures
            The moved network, its second layer as it was.
        """
        return self.moved(self.gradient(x, y), lr)

    def spectrum(self, direction: Float[Tensor, " d"]) -> tuple[Float[Tensor, "*E d"], Float[Tensor, "*E d"]]:
        """Squared singular values of W, ascending, and squared cosines of `direction` with their input directions.

        Parameters
        ----------
        direction
            A vector of length 1, shape ``(d,)``.

        Returns
        -------
        tuple of Tensor
            Squared singular values and squared cosines, both of shape ``(*E, d)``.
        """
        values, vectors = torch.linalg.eigh(torch.einsum("...kd,...ke->...de", self.w, self.w))
        return values.clamp(min=0), torch.einsum("...ds,d->...s", vectors, direction).square()

    def _inner(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n N"]:
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"samples of shape {tuple(x.shape)} do not fit neurons of shape {tuple(self.w.shape)}")
        return torch.einsum("...nd,...kd->...nk", x, self.w)
