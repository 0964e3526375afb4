"""Networks that name the noise in a sample: an MLP for points, a small convolutional network for pictures."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments
from flbook.models.convnet import convolve
from flbook.models.layers import MLP

WAVES = 8  # sines, and as many cosines, that say which step it is


def clock(t: Int[Tensor, "*E n"], like: Tensor) -> Float[Tensor, "*E n waves"]:
    """The number of the step as sines and cosines, from a period of 6 steps to one of 6000.

    Source: Vaswani et al. (2017), Section 3.5, as used by Ho et al. (2020).
    """
    rate = torch.logspace(0, -3, WAVES, dtype=like.dtype).to(like.device)
    angle = t[..., None].to(like) * rate
    return torch.cat([angle.sin(), angle.cos()], -1)


class PointDenoiser(nn.Module):
    """An MLP of three hidden layers that reads a noisy point and the step, and answers with the noise.

    Examples
    --------
    >>> PointDenoiser(width=8, seed=(0, 1))(torch.zeros(2, 5, 2), torch.ones(2, 5)).shape
    torch.Size([2, 5, 2])
    """

    @checked_arguments
    def __init__(self, d: Count = 2, width: Count = 64, seed: Seeds = 0):
        super().__init__()
        self.mlp = MLP((d + 2 * WAVES, width, width, width, d), silu, gain=2.0, seed=seed)

    def forward(self, x: Float[Tensor, "*E n d"], t: Tensor) -> Float[Tensor, "*E n d"]:
        """The noise in n points after t steps each."""
        return self.mlp(torch.cat([x, clock(t, x)], -1))


class PictureDenoiser(nn.Module):
    r"""Convolutions of 3 x 3 pixels with skips; an MLP tells every layer the step.

    .. math:: h \leftarrow h + w_2 * \sigma(w_1 * \sigma(h) + b + A\,\tau(t)), \qquad \sigma = \mathrm{SiLU}

    in every block, between a layer that reads the picture and one that answers with the noise. Zeros around the picture
    tell the layers where its border is.

    Examples
    --------
    >>> PictureDenoiser(channels=4, seed=(0, 1))(torch.zeros(2, 5, 1, 8, 8), torch.ones(2, 5)).shape
    torch.Size([2, 5, 1, 8, 8])
    """

    sample_axes = 3

    @checked_arguments
    def __init__(self, channels: Count = 24, blocks: Count = 2, seed: Seeds = 0):
        super().__init__()
        self.blocks = blocks
        self.step = MLP((2 * WAVES, 4 * channels, blocks * channels), silu, seed=seed, role="step")
        sizes = {"read": (channels, 1), "answer": (1, channels)}
        for k in range(blocks):
            sizes |= {f"first{k}": (channels, channels), f"second{k}": (channels, channels)}
        for name, (out, inputs) in sizes.items():
            w = rng.normal((out, inputs, 3, 3), seed, name) / math.sqrt(9 * inputs)
            self.register_parameter(f"w_{name}", nn.Parameter(w.float()))
            self.register_parameter(f"b_{name}", nn.Parameter(w.new_zeros(w.shape[:-3]).float()))

    def layer(self, h: Tensor, name: str) -> Tensor:
        """One convolution."""
        return convolve(h, getattr(self, f"w_{name}"), 1) + getattr(self, f"b_{name}")[..., None, :, None, None]

    def forward(self, x: Float[Tensor, "*E n 1 h w"], t: Tensor) -> Float[Tensor, "*E n 1 h w"]:
        """The noise in n pictures after t steps each."""
        if x.shape[-3] != 1:
            raise ValueError(f"pictures must have one channel; x has shape {tuple(x.shape)}")
        told = self.step(clock(t, x)).unflatten(-1, (self.blocks, -1))  # (*E, n, blocks, channels)
        h = self.layer(x, "read")
        for k in range(self.blocks):
            inner = self.layer(silu(h), f"first{k}") + told[..., k, :, None, None]
            h = h + self.layer(silu(inner), f"second{k}")
        return self.layer(silu(h), "answer")
