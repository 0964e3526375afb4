r"""Training of a `TwoLayerCNN` whose gradient is written down instead of differentiated.

Where a step is small, automatic differentiation costs many times the step itself; and where one rule is tried at many
step sizes, all of them share the data, so that a step is two products of large matrices.
"""

import copy
from typing import Any

import torch
from torch import Tensor

from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.losses import logistic
from flbook.training.network import Training
from flbook.training.problem import Params


class ByHand(Training):
    r"""`Training` of a `TwoLayerCNN` with any activation that knows its slope, no bias, and one gradient for all.

    .. math:: \nabla_{w_k}L = \frac1n\sum_i \ell'(f(x_i), y_i)\,a_k
              \sum_p\sigma'(\langle w_k,x_i^{(p)}\rangle)\,x_i^{(p)}

    Parameters
    ----------
    model, x, observed, loss
        As in `Training`.

    Examples
    --------
    >>> from flbook import SignalNoise, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = ByHand(TwoLayerCNN(d=100, m=4, seed=(0, 1)), sample.x, sample.observed).spread(5)
    >>> problem.gradient(problem.start())["w"].shape  # five step sizes, say, on each of two data sets
    torch.Size([5, 2, 2, 4, 100])
    """

    members = 0  # of the leading axis that `spread` adds

    def __init__(self, model: TwoLayerCNN, x: Tensor, observed: Tensor, loss: Any = logistic):
        self.a = model.scale * signs(2 * model.w.shape[-2], model.w)
        super().__init__(model, x, observed, loss)

    def spread(self, members: int) -> "ByHand":
        """The same networks and data again and again along a new leading ensemble axis, for a rule's own scalars."""
        there = copy.copy(self)
        there.members, there.ensemble = members, torch.Size((members, *self.ensemble))
        return there

    def start(self) -> Params:
        """The parameters before training, for every member.

        In memory, members lie beside the filters: those that share data are then one matrix (`_beside`).
        """
        params = super().start()
        if not self.members:
            return params
        return {name: p.unsqueeze(-4).expand(*p.shape[:-3], self.members, *p.shape[-3:]).clone().movedim(-4, 0)
                for name, p in params.items()}

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, or on `x`."""
        x = self.x if x is None else x.to(self.x)
        n, patches = x.shape[-3:-1]
        z = torch.matmul(self._beside(params["w"]), x.flatten(-3, -2).mT)
        return self._outputs(z, n, patches)

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss, equal to what automatic differentiation gives."""
        x, y = self.x if x is None else x, self.observed if observed is None else observed
        n, patches = x.shape[-3:-1]
        flat = x.flatten(-3, -2)
        z = torch.matmul(self._beside(params["w"]), flat.mT)  # (*E, k, n P), members beside filters
        force = self.loss.slope(self._outputs(z, n, patches), y).repeat_interleave(patches, -1) / n
        weighted = self._inward(force)[..., None, :] * self.a[:, None]  # (..., members, k, n P)
        pulled = self.model.activation.slope(z) * weighted.reshape(z.shape)
        return {"w": self._apart(torch.matmul(pulled, flat))}

    def _outputs(self, z: Tensor, n: int, patches: int) -> Tensor:
        """Outputs ``(*E, n)`` from pre-activations."""
        responses = self.model.activation(z)
        if self.members:
            responses = responses.unflatten(-2, (self.members, -1))
        f = torch.matmul(self.a, responses).unflatten(-1, (n, patches)).sum(-1)
        return f.movedim(-2, 0) if self.members else f

    def _inward(self, values: Tensor) -> Tensor:
        """Members from the front to beside the samples, where they stand in memory."""
        return values.movedim(0, -2) if self.members else values

    def _beside(self, w: Tensor) -> Tensor:
        """Weights as one matrix for each data set: the filters of all its members below each other."""
        w = w.flatten(-3, -2)
        return w.movedim(0, -3).flatten(-3, -2) if self.members else w

    def _apart(self, w: Tensor) -> Tensor:
        """The reverse of `_beside`."""
        if self.members:
            w = w.unflatten(-2, (self.members, -1)).movedim(-3, 0)
        return w.unflatten(-2, (2, -1))
