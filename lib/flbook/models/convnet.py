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

    The convolution :math:`*` pads with zeros, unless `padding` says otherwise, so that only pooling makes a picture
    smaller. Between filters and read-out there may be dense layers :math:`h \mapsto \sigma(v h + c)`. Parameters, for
    filters of s x s pixels over c channels: ``w0``, ``w1``, ... of shape ``(*E, m, c, s, s)``, their biases ``b0``,
    ... of shape ``(*E, m)``, dense ``v0``, ... of shape ``(*E, k, features)`` with biases ``c0``, ..., the read-out
    ``a`` of shape ``(*E, classes, features)`` and its bias ``b`` of shape ``(*E, classes)``.

    Source: LeCun et al. (1998), Section II; Krizhevsky et al. (2012), Section 3.
    """

    sample_axes = 3  # channels, rows, columns: what `flbook.training.fit.Training` counts off to find the samples

    def __init__(
        self,
        image: tuple[int, int, int] = (1, 8, 8),
        filters: tuple[int, ...] = (16, 32),
        size: int = 3,
        classes: int = 10,
        activation: Callable[[Tensor], Tensor] = relu,
        pool: str = "max",
        gain: float = 2.0,
        hidden: tuple[int, ...] = (),
        padding: int | None = None,
        seed: int | tuple[int, ...] = 0,
        dtype: torch.dtype = torch.float32,
    ):
        """Draw the weights: Gaussian of variance gain / fan-in (read-out: 1 / fan-in), biases zero.

        image: channels, rows and columns of a picture.
        filters: how many filters each layer has.
        size: pixels on an edge of a filter, an odd number.
        classes: outputs; 1 gives one margin a sample instead of logits.
        pool: "max" or "mean" over squares of 2 x 2 pixels, or "none".
        gain: 2 keeps the size of a signal through ReLU layers (He et al. 2015).
        hidden: how many neurons each dense layer has.
        padding: zeros around a picture; None keeps its size, 0 lays a filter only where it fits.
        seed: one seed is one network; a tuple of seeds is an ensemble with one leading axis.
        """
        super().__init__()
        _check(image, filters, size, classes, pool, gain)
        self.image, self.activation, self.pool = image, activation, pool
        self.depth, self.dense = len(filters), len(hidden)
        self.padding = size // 2 if padding is None else padding
        features = filters[-1] * math.prod(_edges(image[1:], self.depth, size - 1 - 2 * self.padding, pool))
        channels = (image[0], *filters)
        for layer, (c, m) in enumerate(zip(channels, filters, strict=False)):
            w = rng.normal((m, c, size, size), seed, f"filters {layer}") * math.sqrt(gain / (c * size**2))
            self.register_parameter(f"w{layer}", nn.Parameter(w.to(dtype)))
            self.register_parameter(f"b{layer}", nn.Parameter(w.new_zeros(w.shape[:-3]).to(dtype)))
        for layer, k in enumerate(hidden):
            v = rng.normal((k, features), seed, f"dense {layer}") * math.sqrt(gain / features)
            self.register_parameter(f"v{layer}", nn.Parameter(v.to(dtype)))
            self.register_parameter(f"c{layer}", nn.Parameter(v.new_zeros(v.shape[:-1]).to(dtype)))
            features = k
        a = rng.normal((classes, features), seed, "read-out") / math.sqrt(features)
        self.a = nn.Parameter(a.to(dtype))
        self.b = nn.Parameter(a.new_zeros(a.shape[:-1]).to(dtype))

    def layers(self, x: Float[Tensor, "*#E n c h w"], nudge: Tensor | float = 0.0) -> list[Float[Tensor, "*E n _"]]:
        """Responses of every layer to n pictures, flattened, the first layer's first.

        nudge: added to what the filters of the first layer answer, ``(*E, n, m, h, w)``, before the activation. The
            output's gradient in it is how much the network cares for each answer.
        """
        if x.shape[-3:] != self.image:
            raise ValueError(f"pictures of (channels, rows, columns) = {tuple(x.shape[-3:])} do not fit a network made "
                             f"for {self.image}; x has shape {tuple(x.shape)}")
        seen = []
        for layer in range(self.depth):
            w, b = getattr(self, f"w{layer}"), getattr(self, f"b{layer}")
            z = convolve(x, w, self.padding) + b[..., None, :, None, None] + (nudge if layer == 0 else 0.0)
            x = pooled(self.activation(z), self.pool)
            seen.append(x.flatten(-3))
        for layer in range(self.dense):
            v, c = getattr(self, f"v{layer}"), getattr(self, f"c{layer}")
            seen.append(self.activation(torch.einsum("...nk,...jk->...nj", seen[-1], v) + c[..., None, :]))
        return seen

    def features(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n K"]:
        """What the read-out sees of n pictures: the last layer's responses."""
        return self.layers(x)[-1]

    def forward(
        self, x: Float[Tensor, "*#E n c h w"], nudge: Tensor | float = 0.0, every: bool = False
    ) -> Float[Tensor, "*E n classes"] | Float[Tensor, "*E n"] | list[Float[Tensor, "*E n _"]]:
        """Logits ``(*E, n, classes)``; margins ``(*E, n)`` if there is one output; with `every`, all layers instead."""
        seen = self.layers(x, nudge)
        if every:
            return seen
        f = torch.einsum("...nk,...ck->...nc", seen[-1], self.a) + self.b[..., None, :]
        return f[..., 0] if f.shape[-1] == 1 else f


def convolve(
    x: Float[Tensor, "*#E n c h w"], w: Float[Tensor, "*#E m c s s"], pad: int
) -> Float[Tensor, "*E n m h2 w2"]:
    """Every member's filters laid over its pictures, with `pad` zeros around each."""
    ensemble = torch.broadcast_shapes(x.shape[:-4], w.shape[:-4])
    members = math.prod(ensemble)
    filters = w.expand(*ensemble, *w.shape[-4:]).reshape(members, *w.shape[-4:])
    if math.prod(x.shape[:-4]) == 1:  # the same pictures for every member: all filters at once
        z = F.conv2d(x.reshape(x.shape[-4:]), filters.flatten(0, 1), padding=pad)
        z = z.unflatten(1, (members, w.shape[-4])).transpose(0, 1)
    else:  # one convolution a member: a quarter of the time of one convolution in groups, whose result lies scattered
        pictures = x.expand(*ensemble, *x.shape[-4:]).reshape(members, *x.shape[-4:])
        z = torch.stack([F.conv2d(one, own, padding=pad) for one, own in zip(pictures, filters, strict=True)])
    return z.reshape(*ensemble, *z.shape[1:])


def pooled(z: Float[Tensor, "*B h w"], pool: str) -> Float[Tensor, "*B h2 w2"]:
    """The largest, or the mean, of every square of 2 x 2 pixels; an odd last row or column is dropped."""
    if pool == "none":
        return z
    take = F.max_pool2d if pool == "max" else F.avg_pool2d
    small = take(z.reshape(-1, 1, *z.shape[-2:]), 2)
    return small.reshape(*z.shape[:-2], *small.shape[-2:])


def _edges(edges: tuple[int, int], layers: int, lost: int, pool: str) -> tuple[int, int]:
    """Rows and columns that are left after all layers, each taking `lost` of them and pooling the rest."""
    left = edges
    for _ in range(layers):
        left = tuple((edge - lost) // (1 if pool == "none" else 2) for edge in left)
    if min(left) < 1:
        raise ValueError(f"image must have enough rows and columns for {layers} layers, each of which takes {lost} of "
                         f"them{'' if pool == 'none' else ' and halves the rest'}; got {edges}")
    return left


def _check(image, filters, size, classes, pool, gain) -> None:
    if not filters or min(filters) < 1:
        raise ValueError(f"filters must name at least one layer, with at least one filter each; got {filters}")
    if size < 1 or size % 2 == 0:
        raise ValueError(f"size must be odd, so that a filter has a middle pixel; got {size}")
    if pool not in ("max", "mean", "none"):
        raise ValueError(f"pool must be 'max', 'mean' or 'none'; got {pool!r}")
    if len(image) != 3 or min(image) < 1:
        raise ValueError(f"image must be (channels, rows, columns), each at least 1; got {image}")
    if classes < 1 or not (math.isfinite(gain) and gain >= 0):
        raise ValueError(f"classes must be at least 1 and gain finite and not negative; got {classes} and {gain}")
