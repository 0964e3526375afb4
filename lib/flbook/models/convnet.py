"""A small convolutional network for images, of the kind of LeNet and AlexNet: filters, pooling, a linear read-out."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from flbook import rng
from flbook.models.activations import relu


class ConvNet(nn.Module):
    r"""Layers of filters, each followed by an activation and by pooling over 2 x 2 pixels, then a linear read-out.

    .. math:: h_0 = x, \qquad h_l = \mathrm{pool}\big(\sigma(w_l * h_{l-1} + b_l)\big), \qquad f = A h_L + b

    The convolution :math:`*` pads with zeros, so that only pooling makes a picture smaller. Parameters, for filters of
    s x s pixels over c channels: ``w0``, ``w1``, ... of shape ``(*E, m, c, s, s)``, their biases ``b0``, ... of shape
    ``(*E, m)``, the read-out ``a`` of shape ``(*E, classes, features)`` and its bias ``b`` of shape ``(*E, classes)``.

    Source: LeCun et al. (1998), Section II; Krizhevsky et al. (2012), Section 3.
    """

    sample_axes = 3  # channels, rows, columns: what `flbook.train.Training` counts off to find the samples

    def __init__(
        self,
        image: tuple[int, int, int] = (1, 8, 8),
        filters: tuple[int, ...] = (16, 32),
        size: int = 3,
        classes: int = 10,
        activation: Callable[[Tensor], Tensor] = relu,
        pool: str = "max",
        gain: float = 2.0,
        seed: int | tuple[int, ...] = 0,
        dtype: torch.dtype = torch.float32,
    ):
        r"""Draw the weights: Gaussian of variance gain / fan-in (read-out: 1 / fan-in), biases zero.

        image: channels, rows and columns of a picture.
        filters: how many filters each layer has.
        size: pixels on an edge of a filter, an odd number.
        classes: outputs; 1 gives one margin a sample instead of logits.
        pool: "max" or "mean" over squares of 2 x 2 pixels, or "none".
        gain: 2 keeps the size of a signal through ReLU layers (He et al. 2015).
        seed: one seed is one network; a tuple of seeds is an ensemble with one leading axis.
        """
        super().__init__()
        _check(image, filters, size, classes, pool, gain)
        self.image, self.depth, self.size, self.activation, self.pool = image, len(filters), size, activation, pool
        channels = (image[0], *filters)
        for layer, (c, m) in enumerate(zip(channels, filters, strict=False)):
            w = rng.normal((m, c, size, size), seed, f"filters {layer}") * math.sqrt(gain / (c * size**2))
            self.register_parameter(f"w{layer}", nn.Parameter(w.to(dtype)))
            self.register_parameter(f"b{layer}", nn.Parameter(w.new_zeros(w.shape[:-3]).to(dtype)))
        shrink = 2 ** self.depth if pool != "none" else 1
        features = channels[-1] * (image[1] // shrink) * (image[2] // shrink)
        a = rng.normal((classes, features), seed, "read-out") / math.sqrt(features)
        self.a = nn.Parameter(a.to(dtype))
        self.b = nn.Parameter(a.new_zeros(a.shape[:-1]).to(dtype))

    def features(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n K"]:
        """What the read-out sees of n pictures: the last layer's responses, flattened."""
        if x.shape[-3:] != self.image:
            raise ValueError(f"pictures of (channels, rows, columns) = {tuple(x.shape[-3:])} do not fit a network made "
                             f"for {self.image}; x has shape {tuple(x.shape)}")
        for layer in range(self.depth):
            w, b = getattr(self, f"w{layer}"), getattr(self, f"b{layer}")
            x = pooled(self.activation(convolve(x, w) + b[..., None, :, None, None]), self.pool)
        return x.flatten(-3)

    def forward(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n classes"] | Float[Tensor, "*E n"]:
        """Logits ``(*E, n, classes)``; margins ``(*E, n)`` if there is one output."""
        f = torch.einsum("...nk,...ck->...nc", self.features(x), self.a) + self.b[..., None, :]
        return f[..., 0] if f.shape[-1] == 1 else f


def convolve(x: Float[Tensor, "*#E n c h w"], w: Float[Tensor, "*#E m c s s"]) -> Float[Tensor, "*E n m h w"]:
    """Every member's filters laid over its pictures: the ensemble becomes the groups of one convolution."""
    ensemble = torch.broadcast_shapes(x.shape[:-4], w.shape[:-4])
    pad, members = w.shape[-1] // 2, math.prod(ensemble)
    (n, c), m = x.shape[-4:-2], w.shape[-4]
    filters = w.expand(*ensemble, *w.shape[-4:]).reshape(members * m, *w.shape[-3:])
    if math.prod(x.shape[:-4]) == 1:  # the same pictures for every member: all filters at once
        z = F.conv2d(x.reshape(x.shape[-4:]), filters, padding=pad)
    else:
        pictures = x.expand(*ensemble, *x.shape[-4:]).reshape(members, *x.shape[-4:]).transpose(0, 1)
        z = F.conv2d(pictures.reshape(n, members * c, *x.shape[-2:]), filters, padding=pad, groups=members)
    return z.reshape(n, members, m, *z.shape[-2:]).transpose(0, 1).reshape(*ensemble, n, m, *z.shape[-2:])


def pooled(z: Float[Tensor, "*B h w"], pool: str) -> Float[Tensor, "*B h2 w2"]:
    """The largest, or the mean, of every square of 2 x 2 pixels; an odd last row or column is dropped."""
    if pool == "none":
        return z
    take = F.max_pool2d if pool == "max" else F.avg_pool2d
    small = take(z.reshape(-1, 1, *z.shape[-2:]), 2)
    return small.reshape(*z.shape[:-2], *small.shape[-2:])


def _check(image, filters, size, classes, pool, gain) -> None:
    if not filters or min(filters) < 1:
        raise ValueError(f"filters must name at least one layer, with at least one filter each; got {filters}")
    if size < 1 or size % 2 == 0:
        raise ValueError(f"size must be odd, so that a filter has a middle pixel; got {size}")
    if pool not in ("max", "mean", "none"):
        raise ValueError(f"pool must be 'max', 'mean' or 'none'; got {pool!r}")
    if len(image) != 3 or min(image) < 1 or (pool != "none" and min(image[1:]) < 2 ** len(filters)):
        raise ValueError(f"image must be (channels, rows, columns) with at least {2 ** len(filters)} rows and columns, "
                         f"since each of {len(filters)} layers halves them; got {image}")
    if classes < 1 or not (math.isfinite(gain) and gain >= 0):
        raise ValueError(f"classes must be at least 1 and gain finite and not negative; got {classes} and {gain}")
