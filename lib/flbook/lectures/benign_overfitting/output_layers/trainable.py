"""The two-layer convolutional network with a trainable output layer."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.domains import Count, NonNegative, Positive, Seeds, checked_arguments
from flbook.models.activations import relu
from flbook.models.cnn import TwoLayerCNN


class TrainableCNN(TwoLayerCNN):
    r"""`TwoLayerCNN` whose output weights are parameters, too.

    .. math:: f(W, v, x) = s\sum_{j,r} v_{j,r} \sum_p \sigma(\langle w_{j,r}, x^{(p)}\rangle), \quad v_{j,r}(0) = j\,v_0

    with :math:`s = 1/m` unless `scale` says otherwise. Parameters: ``w`` of shape ``(*E, 2, m, d)``, the filters of
    +1 first, and ``v`` of shape ``(*E, 2, m)``. At v_0 = 1 it starts as `TwoLayerCNN` does.

    Parameters
    ----------
    v_0
        Size of the output weights at the start.
    d, m, sigma_0, activation, scale, seed, dtype
        As of `TwoLayerCNN`.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Shang et al. (2024).
    """

    @checked_arguments
    def __init__(
        self,
        d: Count,
        m: Count = 10,
        sigma_0: NonNegative | None = None,
        v_0: Positive = 1.0,
        activation: Callable[[Tensor], Tensor] = relu,
        scale: Positive | None = None,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__(d, m, sigma_0, activation, scale, seed=seed, dtype=dtype)
        signs = torch.tensor([1.0, -1.0], dtype=dtype)[:, None].expand(self.w.shape[:-1])
        self.v = nn.Parameter(v_0 * signs)

    def forward(self, x: Float[Tensor, "*#E n P d"]) -> Float[Tensor, "*E n"]:
        """The network's output for n samples of P patches."""
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"patches of shape {tuple(x.shape)} do not fit filters of shape {tuple(self.w.shape)}")
        z = torch.einsum("...npd,...jrd->...npjr", x, self.w)
        return self.scale * torch.einsum("...npjr,...jr->...n", self.activation(z), self.v)
