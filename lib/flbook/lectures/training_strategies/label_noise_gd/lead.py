r"""The signal's lead: how much further the signal has grown than the noise would have taken it along.

In small steps, with noise patches orthogonal to each other, training by any labels conserves

.. math:: \Lambda = \log a - \frac{\|\mu\|^2}{S}\sum_{y_i = j}\log u_i,

where :math:`a = \langle w, j\mu\rangle` is the response of a filter of sign j to the signal, and :math:`u_i` that of a
filter of the same sign to the noise of sample i. Derived on this lecture's page.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from flbook.dynamics.gram import GramTraining
from flbook.training.problem import Params

_LEAST = 1e-4  # a response that has been pushed through zero has no logarithm


class Followed(NamedTuple):
    """The filters that answer most at the start: of either sign one to the signal, for each sample one to its noise."""

    network: GramTraining
    signal: Int[Tensor, "*E 2"]
    noise: Int[Tensor, "*E n"]
    own: Bool[Tensor, "2 n"]  # samples of either sign

    @classmethod
    def of(cls, training: GramTraining) -> "Followed":
        """Chosen at the start."""
        a, u = training.preactivations(training.start())
        m = a.shape[-1] // 2
        signal = torch.stack([a[..., :m].argmax(-1), m + (-a[..., m:]).argmax(-1)], -1)
        noise = torch.where(training.y > 0, u[..., :m, :].argmax(-2), m + u[..., m:, :].argmax(-2))
        return cls(training, signal, noise, torch.stack([training.y > 0, training.y < 0]))

    def logs(self, params: Params) -> tuple[Float[Tensor, "*E 2"], Float[Tensor, "*E n"]]:
        """Logarithms of a, for either sign, and of the u_i."""
        a, u = self.network.preactivations(params)
        a = a.gather(-1, self.signal) * a.new_tensor([1.0, -1.0])
        u = u.gather(-2, self.noise[..., None, :]).squeeze(-2)
        return a.clamp(min=_LEAST).log(), u.clamp(min=_LEAST).log()

    def lead(self, params: Params) -> Float[Tensor, "*E 2"]:
        """The lead of either sign since the start."""
        (a, u), (a_0, u_0) = self.logs(params), self.logs(self.network.start())
        gram = self.network.gram
        square = gram.xi_xi.diagonal(dim1=-2, dim2=-1)
        tied = (gram.mu_mu[..., None] / square * (u - u_0))[..., None, :] * self.own
        return a - a_0 - tied.sum(-1)
