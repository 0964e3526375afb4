"""The two-layer convolutional network of the signal-noise papers: one filter meets every patch."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Positive, Seeds, checked_arguments
from flbook.models.activations import relu


class TwoLayerCNN(nn.Module):
    r"""m filters for the label +1 against m filters for -1, each laid over every patch.

    .. math:: f(W, x) = F_{+1}(W_{+1}, x) - F_{-1}(W_{-1}, x), \qquad
              F_j(W_j, x) = s \sum_{r=1}^m \sum_{p} \sigma(\langle w_{j,r}, x^{(p)}\rangle + b_{j,r})

    with :math:`s = 1/m` unless `scale` says otherwise. The output layer is fixed. Parameters: ``w`` of shape
    ``(*E, 2, m, d)``, the filters of +1 first, and with ``bias=True`` ``b`` of shape ``(*E, 2, m)``.

    Parameters
    ----------
    d, m
        Dimension of a patch; filters a sign.
    sigma_0
        Standard deviation of the Gaussian initial weights; None is PyTorch's convolution default, weights and bias
        uniform in :math:`\pm 1/\sqrt d`.
    activation
        :math:`\sigma`.
    scale
        s, weight of a filter in the output; None is 1/m (mean over filters), 1 is the sum.
    bias
        Are there biases b?
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Cao et al. (2022), Section 3; Kou et al. (2023), Section 3.

    Examples
    --------
    >>> TwoLayerCNN(d=100, seed=(0, 1, 2))(torch.zeros(20, 2, 100)).shape  # three networks, 20 samples of two patches
    torch.Size([3, 20])
    """

    sample_axes = 2  # patches, coordinates

    @checked_arguments
    def __init__(
        self,
        d: Count,
        m: Count = 10,
        sigma_0: NonNegative | None = None,
        activation: Callable[[Tensor], Tensor] = relu,
        scale: Positive | None = None,
        bias: bool = False,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__()
        self.activation, self.scale = activation, 1 / m if scale is None else scale
        self.w = nn.Parameter(initial_weights(d, 2 * m, sigma_0, seed).unflatten(-2, (2, m)).to(dtype))
        self.b = None
        if bias:
            b = initial_bias(d, 2 * m, sigma_0, seed).unflatten(-1, (2, m))
            self.b = nn.Parameter(b.to(dtype))

    def forward(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n"]:
        """The network's output for n samples of P patches.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, P, d)``.

        Returns
        -------
        Tensor
            :math:`f(W, x)`, shape ``(*E, n)``.
        """
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"patches of shape {tuple(x.shape)} do not fit filters of shape {tuple(self.w.shape)}")
        z = torch.einsum("...npd,...jrd->...npjr", x, self.w)
        if self.b is not None:
            z = z + self.b[..., None, None, :, :]
        f = self.scale * self.activation(z).sum(dim=(-3, -1))
        return f[..., 0] - f[..., 1]


def check_start(sigma_0: float) -> None:
    """Refuse a standard deviation that no start has.

    Parameters
    ----------
    sigma_0
        Standard deviation of initial weights.
    """
    if not (math.isfinite(sigma_0) and sigma_0 >= 0):
        raise ValueError(f"sigma_0 must be finite and not negative (None is PyTorch's default start); got {sigma_0}")


def initial_weights(d: int, k: int, sigma_0: float | None, seed: int | tuple[int, ...]) -> Float[Tensor, "*E k d"]:
    r"""Filters before training: Gaussian of standard deviation sigma_0, or uniform in :math:`\pm 1/\sqrt d` if None.

    Parameters
    ----------
    d, k
        Dimension of a patch; number of filters.
    sigma_0
        Standard deviation of a weight, or None.
    seed
        One number, or a tuple of them for an ensemble with one leading axis.

    Returns
    -------
    Tensor
        Filters in float64, shape ``(*E, k, d)``.
    """
    if sigma_0 is not None:
        check_start(sigma_0)
        return sigma_0 * rng.normal((k, d), seed, "weights")
    return _uniform((k, d), seed, "weights") / math.sqrt(d)


def initial_bias(d: int, k: int, sigma_0: float | None, seed: int | tuple[int, ...]) -> Float[Tensor, "*E k"]:
    r"""Biases before training: 0 beside Gaussian filters, else uniform in :math:`\pm 1/\sqrt d`.

    Parameters
    ----------
    d, k
        Dimension of a patch; number of filters.
    sigma_0
        Standard deviation of a weight of the filters, or None.
    seed
        One number, or a tuple of them for an ensemble with one leading axis.

    Returns
    -------
    Tensor
        Biases in float64, shape ``(*E, k)``.
    """
    b = _uniform((k,), seed, "bias") / math.sqrt(d)
    return b if sigma_0 is None else torch.zeros_like(b)


def _uniform(shape: tuple[int, ...], seed: int | tuple[int, ...], role: str) -> Tensor:
    unit = rng.over_seeds(lambda one: torch.rand(shape, generator=rng.generator(one, role), dtype=torch.float64), seed)
    return 2 * unit - 1
