"""Networks that name the noise in a sample: an MLP for points, a small convolutional network for pictures."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments
from flbook.models.convnet import convolve, pooled
from flbook.models.layers import MLP

WAVES = 8  # sines, and as many cosines, that say which step it is


def clock(t: Tensor, like: Tensor) -> Float[Tensor, "*E n waves"]:
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
    r"""A small U-Net: convolutions of 3 x 3 pixels with skips, at full and at half resolution, told the step.

    .. math:: h \leftarrow h + w_2 * \sigma(w_1 * \sigma(h) + A\,\psi(t)), \qquad \sigma = \mathrm{SiLU}

    in a block on all pixels; then layers of the same kind, with twice as many channels, on means of 2 x 2 pixels, whose
    result is added back; then another block. Zeros around the picture tell the layers where its border is.

    Source: Ronneberger et al. (2015) for the two resolutions; Ho et al. (2020), Appendix B, for the step.

    Examples
    --------
    >>> PictureDenoiser(channels=4, seed=(0, 1))(torch.zeros(2, 5, 1, 8, 8), torch.ones(2, 5)).shape
    torch.Size([2, 5, 1, 8, 8])
    """

    sample_axes = 3

    @checked_arguments
    def __init__(self, channels: Count = 16, seed: Seeds = 0):
        super().__init__()
        c = self.channels = channels
        self.step = MLP((2 * WAVES, 4 * c, 4 * c), silu, seed=seed, role="step")
        sizes = {"read": (c, 1), "first_in": (c, c), "first_out": (c, c), "coarse_in": (2 * c, c),
                 "coarse_out": (2 * c, 2 * c), "up": (c, 2 * c), "last_in": (c, c), "last_out": (c, c),
                 "answer": (1, c)}  # fmt: skip
        for name, (outputs, inputs) in sizes.items():
            w = rng.normal((outputs, inputs, 3, 3), seed, name) / math.sqrt(9 * inputs)
            self.register_parameter(f"w_{name}", nn.Parameter(w.float()))
            self.register_parameter(f"b_{name}", nn.Parameter(w.new_zeros(w.shape[:-3]).float()))

    def layer(self, h: Tensor, name: str) -> Tensor:
        """One convolution."""
        return convolve(h, getattr(self, f"w_{name}"), 1) + getattr(self, f"b_{name}")[..., None, :, None, None]

    def forward(self, x: Float[Tensor, "*E n 1 h w"], t: Tensor) -> Float[Tensor, "*E n 1 h w"]:
        """The noise in n pictures after t steps each."""
        if x.ndim < 4 or x.shape[-3] != 1 or x.shape[-1] % 2 or x.shape[-2] % 2:
            raise ValueError(f"pictures must have one channel and even edges; x has shape {tuple(x.shape)}")
        told = self.step(clock(t, x))[..., None, None].split([self.channels, 2 * self.channels, self.channels], -3)
        h = self.layer(x, "read")
        h = h + self.layer(silu(self.layer(silu(h), "first_in") + told[0]), "first_out")
        coarse = self.layer(silu(pooled(h, "mean")), "coarse_in") + told[1]
        coarse = coarse + self.layer(silu(coarse), "coarse_out")
        h = h + self.layer(silu(coarse), "up").repeat_interleave(2, -1).repeat_interleave(2, -2)
        h = h + self.layer(silu(self.layer(silu(h), "last_in") + told[2]), "last_out")
        return self.layer(silu(h), "answer")
