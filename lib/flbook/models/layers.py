"""Affine layers whose weights lead with the axes of an ensemble, and the small network that is made of them."""

from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Positive, Seeds, checked_arguments


class Linear(nn.Module):
    r"""An affine map of the last axis, one for each member of an ensemble.

    .. math:: z = x W + b

    Parameters
    ----------
    weight
        W at the start, shape ``(*S, inputs, outputs)``; S are the axes of the ensemble, none for a single network.
    bias
        b at the start, shape ``(*S, outputs)``; 0 if None.

    Examples
    --------
    >>> layer = Linear(torch.eye(3)[:, :2])
    >>> layer(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, weight: Float[Tensor, "*S inputs outputs"], bias: Float[Tensor, "*S outputs"] | None = None):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros_like(weight[..., 0, :]) if bias is None else bias)

    def forward(self, x: Float[Tensor, "*B n inputs"]) -> Float[Tensor, "*C n outputs"]:
        """The same map for every row of a member, shape ``(*S, ..., inputs)``, as one batched product.

        Parameters
        ----------
        x
            Rows; without leading axes, or with those of length 1, they serve all members.

        Returns
        -------
        Tensor
            Images of the rows, shape ``(*S, ..., outputs)``.
        """
        lead = min(self.weight.ndim, x.ndim) - 2  # rows that all members share have no axes of an ensemble
        z = x.flatten(lead, -2) @ self.weight  # (*S, rows, outputs)
        return (z + self.bias[..., None, :].to(z)).unflatten(-2, x.shape[lead:-1])


class MLP(nn.Module):
    r"""Affine layers with an activation between them; behind the last one stands nothing.

    .. math:: h_0 = x, \qquad h_{l+1} = \sigma(h_l W_l + b_l), \qquad f(x) = h_{L-1} W_{L-1} + b_{L-1}

    Parameters
    ----------
    widths
        Inputs, hidden layers, outputs: at least two numbers.
    activation
        :math:`\sigma`, elementwise.
    gain
        Weights start Gaussian of variance ``gain`` over the width below: 2 keeps the size of a signal through ReLU.
    spread
        Standard deviation of the first layer's biases at the start, so that its neurons bend in different places; all
        other biases start at 0.
    seed
        One seed is one network; a tuple of seeds is an ensemble, whose axis leads every parameter.
    role
        Names the draws: networks of one seed and two roles are independent.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> MLP((3, 8, 2), torch.tanh, seed=(0, 1))(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 2])
    """

    @checked_arguments
    def __init__(self, widths: tuple[Count, ...], activation: Callable[[Tensor], Tensor] = torch.relu,
                 gain: Positive = 1.0, spread: NonNegative = 0.0, seed: Seeds = 0, role: str = "features",
                 dtype: torch.dtype = torch.float32):
        super().__init__()
        if len(widths) < 2:
            raise ValueError(f"widths must name at least inputs and outputs; got {widths}")
        self.activation, self.layers = activation, nn.ModuleList()
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
            weight = rng.normal((inputs, outputs), seed, f"{role}, layer {k}") / (inputs / gain) ** 0.5
            bias = rng.normal((outputs,), seed, f"{role}, offsets {k}") * (spread if k == 0 else 0.0)
            self.layers.append(Linear(weight.to(dtype), bias.to(dtype)))

    def forward(self, x: Float[Tensor, "*B n inputs"]) -> Float[Tensor, "*C n outputs"]:
        """Outputs for n points; with an ensemble x leads with its axes, or has none.

        Parameters
        ----------
        x
            Points, shape ``(*S, n, inputs)``, or ``(n, inputs)`` for all members.

        Returns
        -------
        Tensor
            Outputs, shape ``(*S, n, outputs)``.
        """
        for k, layer in enumerate(self.layers):
            x = layer(self.activation(x) if k else x)
        return x
