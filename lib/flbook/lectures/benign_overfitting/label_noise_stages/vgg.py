"""VGG: convolutional networks of 3 x 3 filters in blocks, each block followed by pooling, as deep as a plan says."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments
from flbook.models.activations import relu
from flbook.models.convnet import convolve, pooled

PLANS = {  # filters of every layer, block by block
    "small": ((32,), (64,), (128, 128)),
    "11": ((64,), (128,), (256, 256), (512, 512), (512, 512)),
    "13": ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512)),
    "16": ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3),
}


class VGG(nn.Module):
    r"""Blocks of layers :math:`h \leftarrow \sigma(w_l * h + b_l)`, a maximum over 2 x 2 pixels after each block, then
    a linear read-out.

    Parameters, for 3 x 3 filters over c channels: ``w0``, ``w1``, ... of shape ``(*E, m, c, 3, 3)``, their biases
    ``b0``, ... of shape ``(*E, m)``, the read-out ``a`` of shape ``(*E, classes, features)``, its bias ``b``. For
    pictures of 32 x 32 pixels the read-out is one layer, not the three that ImageNet's 224 x 224 pixels call for.

    Parameters
    ----------
    image
        Channels, rows and columns of a picture; every block halves rows and columns.
    plan
        "small", "11", "13" or "16".
    classes
        Outputs; 1 gives one margin a sample instead of logits.
    activation
        :math:`\sigma`.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or pictures are too small for the blocks.

    Source: Simonyan and Zisserman (2015), Table 1, columns A (11 layers), B (13) and D (16).
    """

    sample_axes = 3  # channels, rows, columns: what `flbook.training.fit.Training` counts off to find the samples

    @checked_arguments
    def __init__(
        self,
        image: tuple[Count, Count, Count] = (3, 32, 32),
        plan: Literal["small", "11", "13", "16"] = "11",
        classes: Count = 1,
        activation: Callable[[Tensor], Tensor] = relu,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        """Draw the weights: Gaussian of variance 2 / fan-in (read-out: 1 / fan-in), biases zero."""
        super().__init__()
        self.image, self.plan, self.activation = image, PLANS[plan], activation
        shrink = 2 ** len(self.plan)
        if min(image[1:]) < shrink:
            raise ValueError(f"image must be (channels, rows, columns) with at least {shrink} rows and columns, since "
                             f"each of {len(self.plan)} blocks halves them; got {image}")
        filters = [m for block in self.plan for m in block]
        for layer, (c, m) in enumerate(zip([image[0], *filters], filters, strict=False)):
            w = rng.normal((m, c, 3, 3), seed, f"VGG {layer}") * math.sqrt(2 / (9 * c))
            self.register_parameter(f"w{layer}", nn.Parameter(w.to(dtype)))
            self.register_parameter(f"b{layer}", nn.Parameter(torch.zeros(w.shape[:-3], dtype=dtype)))
        features = filters[-1] * (image[1] // shrink) * (image[2] // shrink)
        a = rng.normal((classes, features), seed, "VGG read-out") / math.sqrt(features)
        self.a = nn.Parameter(a.to(dtype))
        self.b = nn.Parameter(torch.zeros(a.shape[:-1], dtype=dtype))

    def features(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n K"]:
        """What the read-out sees of n pictures: the last block's responses, flattened."""
        if x.shape[-3:] != self.image:
            raise ValueError(f"pictures of (channels, rows, columns) = {tuple(x.shape[-3:])} do not fit a network made "
                             f"for {self.image}; x has shape {tuple(x.shape)}")
        layer = 0
        for block in self.plan:
            for _ in block:
                w, b = getattr(self, f"w{layer}"), getattr(self, f"b{layer}")
                x = self.activation(convolve(x, w, pad=1) + b[..., None, :, None, None])
                layer += 1
            x = pooled(x, "max")
        return x.flatten(-3)

    def forward(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n classes"] | Float[Tensor, "*E n"]:
        """Logits ``(*E, n, classes)``; margins ``(*E, n)`` if there is one output."""
        f = torch.einsum("...nk,...ck->...nc", self.features(x), self.a) + self.b[..., None, :]
        return f[..., 0] if f.shape[-1] == 1 else f
