"""The two-layer network of the lazy and mean-field theories: N neurons, one output, one number that scales it."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, Positive, Seeds, checked_arguments
from flbook.models.activations import tanh


class TwoLayer(nn.Module):
    r"""N neurons with fixed output signs :math:`a_i = \pm 1`, half of them each.

    .. math:: f(W, x) = c \sum_{i=1}^N a_i\, \sigma(\langle w_i, x\rangle)

    The parameter ``w`` has shape ``(*E, N, d)``, the neurons of +1 first; it starts Gaussian with variance 1/d.
    The scale c decides the regime: :math:`c = N^{-1/2}` is lazy as N grows, :math:`c = 1/N` is mean field.

    Parameters
    ----------
    d, width
        Dimension of the inputs; neurons N, an even number.
    scale
        c, a number, or a tensor that broadcasts with the seeds to the ensemble.
    start
        "paired": neurons i and i + N/2 start equal with opposite signs, so the output starts at 0 up to rounding (a
        processor may sum what equal neurons answer in different orders, so its sign means nothing); "centred": all
        neurons are independent and the output at the start is subtracted; "plain": it is not.
    activation
        :math:`\sigma`.
    seed
        One seed is one network; a tuple of seeds is an ensemble axis, the last one.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or width is odd.

    Source: Chizat, Oyallon and Bach (2019), Section 1.1.

    Examples
    --------
    >>> net = TwoLayer(d=3, width=8, scale=torch.tensor([[1.0], [0.5]]), seed=(0, 1, 2))
    >>> net(torch.zeros(5, 3, dtype=torch.float64)).shape, net.step(1.0)[:, 0].tolist()
    (torch.Size([2, 3, 5]), [0.125, 0.5])
    """

    sample_axes = 1
    scale: Tensor
    w_0: Tensor

    @checked_arguments
    def __init__(
        self,
        d: Count,
        width: Count,
        scale: Positive | Tensor = 1.0,
        start: Literal["paired", "centred", "plain"] = "paired",
        activation: Callable[[Tensor], Tensor] = tanh,
        seed: Seeds = 0,
        dtype: torch.dtype = torch.float64,
    ):
        super().__init__()
        if width % 2:
            raise ValueError(f"width must be an even number of neurons, half of them of either sign; got {width}")
        scale = torch.as_tensor(scale, dtype=dtype)
        w = initial_neurons(d, width, start == "paired", seed).to(dtype)
        members = torch.broadcast_shapes(scale.shape, w.shape[:-2])
        self.activation, self.start = activation, start
        self.w = nn.Parameter(w.expand(*members, width, d).clone())
        self.register_buffer("scale", scale.expand(members).clone())
        self.register_buffer("w_0", self.w.detach().clone())

    @property
    def width(self) -> int:
        """Number of neurons N.

        Returns
        -------
        int
            Number of rows of `w`.
        """
        return self.w.shape[-2]

    def step(self, lr: float) -> Tensor:
        r"""The step size :math:`\eta / (N c^2)`, shape ``*E``: in it one unit of flow time is the same at any scale.

        Then the kernel that moves the output, step size times :math:`\nabla f \cdot \nabla f`, is an average over
        neurons, whatever N and c.

        Parameters
        ----------
        lr
            Step :math:`\eta` in flow time.

        Returns
        -------
        Tensor
            Step sizes, one a member.
        """
        return lr / (self.width * self.scale.square())

    def forward(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n"]:
        """Outputs for n samples.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, d)``.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``.
        """
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"samples of shape {tuple(x.shape)} do not fit neurons of shape {tuple(self.w.shape)}")
        f = self.combine(self.activation(torch.einsum("...nd,...kd->...nk", x, self.w)))
        return f - self.at_start(x) if self.start == "centred" else f

    def combine(self, active: Float[Tensor, "*E n k"]) -> Float[Tensor, "*E n"]:
        """The signed sum of what the neurons answer, times c.

        Parameters
        ----------
        active
            Answers of k neurons, those of +1 first, shape ``(*E, n, k)``.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``.
        """
        plus, minus = active.chunk(2, -1)
        return self.scale[..., None] * (plus - minus).sum(-1)  # pairs first: equal ones cancel to rounding

    def at_start(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n"]:
        """What a centred network subtracts.

        Parameters
        ----------
        x
            Samples, shape ``(*#E, n, d)``.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``.
        """
        return self.combine(self.activation(torch.einsum("...nd,...kd->...nk", x, self.w_0)))


def initial_neurons(d: int, width: int, paired: bool, seed: int | tuple[int, ...]) -> Float[Tensor, "*E N d"]:
    """Gaussian neurons of expected squared length 1.

    Parameters
    ----------
    d, width
        Dimension of the inputs; neurons N.
    paired
        Is the second half a copy of the first?
    seed
        One number, or a tuple of them for an ensemble with one leading axis.

    Returns
    -------
    Tensor
        Neurons in float64, shape ``(*E, N, d)``.
    """
    w = rng.normal((width // 2 if paired else width, d), seed, "neurons") / d**0.5
    return torch.cat([w, w], -2) if paired else w
