r"""A layer of ReLU neurons below linear attention, and what attention keeps of a prompt through it.

A layer is shared by all prompts; prompts are the leading ensemble axes of a `Context`.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, NonNegative, checked_arguments
from flbook.shapes import Context


@dataclass(frozen=True)
class ReLULayer:
    r"""The layer :math:`\phi(x) = \max(Wx + b, 0)` of m neurons.

    Parameters
    ----------
    w, b
        Directions ``(m, d)`` and biases ``(m,)``; `draw` makes both.

    Source: Oko et al. (2024).

    Examples
    --------
    >>> layer = ReLULayer(torch.tensor([[1.0, 0.0], [0.0, -1.0]]), torch.tensor([0.5, 0.0]))
    >>> layer(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.5, 0.0]]
    """

    w: Float[Tensor, "m d"]
    b: Float[Tensor, " m"]

    @classmethod
    @checked_arguments
    def draw(cls, m: Count, d: Count, seed: Natural = 0, spread: NonNegative = 0.0,
             dtype: torch.dtype = torch.float64) -> "ReLULayer":
        """Directions uniform on the unit sphere, biases uniform on [-spread, spread]."""
        w = torch.nn.functional.normalize(rng.normal((m, d), seed, "neurons", dtype=dtype), dim=-1)
        return cls(w, torch.zeros(m, dtype=dtype)).biased(spread, seed)

    @checked_arguments
    def biased(self, spread: NonNegative, seed: Natural = 0) -> "ReLULayer":
        """The same directions with biases drawn anew, uniform on [-spread, spread]."""
        uniform = torch.rand(len(self.w), generator=rng.generator(seed, "biases"), dtype=self.w.dtype)
        return replace(self, b=spread * (2 * uniform - 1))

    def pointed(self, w: Float[Tensor, "m d"]) -> "ReLULayer":
        """The same biases with other directions, all scaled by one number to the mean squared length 1."""
        return replace(self, w=w / w.square().sum(-1).mean().sqrt())

    def alignment(self, r: int) -> Tensor:
        """Share of the layer's squared weights that lies in the first r coordinates, 1 if all of it does."""
        return self.w[:, :r].square().sum() / self.w.square().sum()

    def __call__(self, x: Float[Tensor, "*E n d"]) -> Float[Tensor, "*E n m"]:
        """What the neurons answer."""
        if x.shape[-1] != self.w.shape[-1]:
            raise ValueError(f"inputs of shape {tuple(x.shape)} do not fit neurons of shape {tuple(self.w.shape)}")
        return torch.addmm(self.b, x.flatten(0, -2), self.w.T).relu_().unflatten(0, x.shape[:-1])

    def summary(self, context: Context) -> Float[Tensor, "*E m"]:
        r"""All that attention keeps of a prompt: :math:`c = \frac1n\sum_i y_i\phi(x_i)`."""
        return torch.einsum("...n,...nm->...m", context.y, self(context.x)) / context.y.shape[-1]

    def summaries(self, context: Context, lengths: tuple[int, ...]) -> Float[Tensor, "*E lengths m"]:
        """The same of the first so many examples, for several lengths at once."""
        n = context.y.shape[-1]
        if not all(1 <= length <= n for length in lengths):
            raise ValueError(f"lengths must lie between 1 and the prompt's n = {n}; got {lengths}")
        sums = (context.y[..., None] * self(context.x)).cumsum(-2)
        return torch.stack([sums[..., length - 1, :] / length for length in lengths], -2)
