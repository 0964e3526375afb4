r"""Training of a squared-ReLU network at half the squared error, its gradient written down instead of differentiated.

One step on one sample is so small that automatic differentiation would cost many times the step itself.
"""

import copy

import torch
from torch import Tensor

from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.problem import Params


class ByHand(Training):
    r"""`Training` of a `TwoLayerCNN` with any activation, no bias, and :math:`\frac12(f-y)^2`.

    .. math:: \nabla_{w_k}L = \frac1n\sum_i (f(x_i)-y_i)\,a_k\sum_p\sigma'(\langle w_k,x_i^{(p)}\rangle)\,x_i^{(p)}
    """

    members = 0  # of the leading axis that `spread` adds

    def __init__(self, model: TwoLayerCNN, x: Tensor, observed: Tensor):
        super().__init__(model, x, observed, squared)
        self.a = model.scale * signs(2 * model.w.shape[-2], model.w)

    def spread(self, members: int) -> "ByHand":
        """The same networks and data again and again along a new leading ensemble axis, for a rule's own scalars."""
        there = copy.copy(self)
        there.members, there.ensemble = members, torch.Size((members, *self.ensemble))
        return there

    def start(self) -> Params:
        """The parameters before training, for every member."""
        params = super().start()
        if not self.members:
            return params
        return {name: p.expand(self.members, *p.shape).clone() for name, p in params.items()}

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss, equal to what automatic differentiation gives."""
        x, y = self.x if x is None else x, self.observed if observed is None else observed
        n, patches = x.shape[-3:-1]
        flat, w = x.flatten(-3, -2), params["w"].flatten(-3, -2)
        z = torch.matmul(w, flat.mT)  # (*E, k, n P)
        activation = self.model.activation
        f = torch.matmul(self.a, activation(z)).unflatten(-1, (n, patches)).sum(-1)
        force = self.loss.slope(f, y).repeat_interleave(patches, -1) / n
        pulled = self.a[:, None] * activation.slope(z) * force[..., None, :]
        return {"w": torch.matmul(pulled, flat).unflatten(-2, (2, -1))}
