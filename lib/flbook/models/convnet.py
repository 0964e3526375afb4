"""A small convolutional network for images, of the kind of LeNet and AlexNet: filters, pooling, a linear read-out."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from flbook import rng
from flbook.domains import Count, Natural, NonNegative, Seeds, admits, checked_arguments
from flbook.models.activations import relu


class ConvNet(nn.Module):
    r"""Layers of filters, each followed by an activation and by pooling over 2 x 2 pixels, then a linear read-out.

    .. math:: h_0 = x, \qquad h_l = \mathrm{pool}\big(\sigma(w_l * h_{l-1} + b_l)\big), \qquad f = A h_L + b

    The convolution :math:`*` pads with zeros, unless `padding` says otherwise, so that only pooling makes a picture
    smaller. Between filters and read-out there may be dense layers :math:`h \mapsto \sigma(v h + c)`. Parameters, for
    filters of s x s pixels over c channels: ``w0``, ``w1``, ... of shape ``(*E, m, c, s, s)``, their biases ``b0``,
    ... of shape ``(*E, m)``, dense ``v0``, ... of shape ``(*E, k, features)`` with biases ``c0``, ..., the read-out
    ``a`` of shape ``(*E, classes, features)`` and its bias ``b`` of shape ``(*E, classes)``.

    Parameters
    ----------
    image
        Channels, rows and columns of a picture.
    filters
        How many filters each layer has.
    size
        Pixels on an edge of a filter, an odd number.
    classes
        Outputs; 1 gives one margin a sample instead of logits.
    activation
        :math:`\sigma`.
    pool
        "max" or "mean" over squares of 2 x 2 pixels, or "none".
    gain
        Weights start Gaussian of variance gain / fan-in (read-out: 1 / fan-in), biases at zero; 2 keeps the size of a
        signal through ReLU layers (He et al. 2015).
    hidden
        How many neurons each dense layer has.
    padding
        Zeros around a picture; None keeps its size, 0 lays a filter only where it fits.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or pictures are too small for so many layers.

    Source: LeCun et al. (1998), Section II; Krizhevsky et al. (2012), Section 3.

    Examples
    --------
    >>> ConvNet(image=(1, 8, 8), filters=(4,))(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])
    """

    sample_axes = 3  # channels, rows, columns: what `flbook.training.fit.Training` counts off to find the samples

    @checked_arguments
    def __init__(
        self,
        image: tuple[Count, Count, Count] = (1, 8, 8),
        filters: tuple[Count, ...] = (16, 32),
        size: Count = 3,
        classes: Count = 10,
        activation: Callable[[Tensor], Tensor] = relu,
        pool: Literal["max", "mean", "none"] = "max",
        gain: NonNegative = 2.0,
        hidden: Sequence[int] = (),
        padding: Natural | None = None,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        if size % 2 == 0:
            raise ValueError(f"size must be odd, so that a filter has a middle pixel; got {size}")
        if hidden and not admits(tuple[Count, ...], tuple(hidden)):
            raise ValueError(f"hidden must hold whole numbers of at least 1, the neurons of dense layers; got {hidden}")
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

    def layers(self, x: Float[Tensor, "*#E n c h w"], nudges: Sequence[Tensor] = ()) -> list[Float[Tensor, "*E n _"]]:
        """Responses of every layer to n pictures, flattened, the first layer's first.

        Parameters
        ----------
        x
            Pictures, shape ``(*#E, n, c, h, w)``.
        nudges
            Added to what the filters answer before the activation, ``(*E, n, m, h, w)``, one for each of the first
            layers. The output's gradient in it is how much the network cares for each answer.

        Returns
        -------
        list of Tensor
            Responses of shape ``(*E, n, features)``, one a layer, those of dense layers last.
        """
        if x.shape[-3:] != self.image:
            raise ValueError(f"pictures of (channels, rows, columns) = {tuple(x.shape[-3:])} do not fit a network made "
                             f"for {self.image}; x has shape {tuple(x.shape)}")
        responses = []
        for layer in range(self.depth):
            w, b = getattr(self, f"w{layer}"), getattr(self, f"b{layer}")
            z = convolve(x, w, self.padding) + b[..., None, :, None, None]
            z = z + nudges[layer] if layer < len(nudges) else z
            x = pooled(self.activation(z), self.pool)
            responses.append(x.flatten(-3))
        for layer in range(self.dense):
            v, c = getattr(self, f"v{layer}"), getattr(self, f"c{layer}")
            responses.append(self.activation(torch.einsum("...nk,...jk->...nj", responses[-1], v) + c[..., None, :]))
        return responses

    def features(self, x: Float[Tensor, "*#E n c h w"]) -> Float[Tensor, "*E n K"]:
        """What the read-out sees of n pictures: the last layer's responses.

        Parameters
        ----------
        x
            Pictures, shape ``(*#E, n, c, h, w)``.

        Returns
        -------
        Tensor
            Responses, shape ``(*E, n, K)``.
        """
        return self.layers(x)[-1]

    def forward(
        self, x: Float[Tensor, "*#E n c h w"], nudges: Sequence[Tensor] = (), every: bool = False
    ) -> Float[Tensor, "*E n classes"] | Float[Tensor, "*E n"] | list[Float[Tensor, "*E n _"]]:
        """Logits ``(*E, n, classes)``; margins ``(*E, n)`` if there is one output; with `every`, all layers instead.

        Parameters
        ----------
        x
            Pictures, shape ``(*#E, n, c, h, w)``.
        nudges
            Addends in the first layers, as `layers` takes them.
        every
            All layers' responses instead of outputs?

        Returns
        -------
        Tensor or list of Tensor
            Outputs, or with `every` what `layers` returns.
        """
        responses = self.layers(x, nudges)
        if every:
            return responses
        f = torch.einsum("...nk,...ck->...nc", responses[-1], self.a) + self.b[..., None, :]
        return f[..., 0] if f.shape[-1] == 1 else f


def convolve(
    x: Float[Tensor, "*#E n c h w"], w: Float[Tensor, "*#E m c s s"], pad: int
) -> Float[Tensor, "*E n m h2 w2"]:
    """Every member's filters laid over its pictures, with `pad` zeros around each.

    Parameters
    ----------
    x
        Pictures, shape ``(*#E, n, c, h, w)``.
    w
        Filters, shape ``(*#E, m, c, s, s)``.
    pad
        Rows and columns of zeros on each side.

    Returns
    -------
    Tensor
        Answers, shape ``(*E, n, m, h2, w2)`` with h2 = h + 2 pad - s + 1, w2 likewise.
    """
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
    """The largest, or the mean, of every square of 2 x 2 pixels; an odd last row or column is dropped.

    Parameters
    ----------
    z
        Pictures, shape ``(*B, h, w)``.
    pool
        ``"max"``, ``"mean"``, or ``"none"``, which returns z.

    Returns
    -------
    Tensor
        Pooled pictures, shape ``(*B, h // 2, w // 2)``.
    """
    if pool == "none":
        return z
    take = F.max_pool2d if pool == "max" else F.avg_pool2d
    small = take(z.reshape(-1, 1, *z.shape[-2:]), 2)
    return small.reshape(*z.shape[:-2], *small.shape[-2:])


def _edges(edges: tuple[int, int], layers: int, lost: int, pool: str) -> tuple[int, int]:
    """Rows and columns behind all layers, each of which takes `lost` of them and pools the rest."""
    rows, columns = edges
    for _ in range(layers):
        rows, columns = ((edge - lost) // (1 if pool == "none" else 2) for edge in (rows, columns))
    if min(rows, columns) < 1:
        raise ValueError(f"image must have enough rows and columns for {layers} layers, each of which takes {lost} of "
                         f"them{'' if pool == 'none' else ' and halves the rest'}; got {edges}")
    return rows, columns
