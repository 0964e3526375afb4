r"""Both layers trained, in coefficients: the filters' part of the state is that of `flbook.dynamics.gram`.

For a positively homogeneous activation of degree 1 (ReLU and its leaky kin) gradient flow conserves

.. math:: \|w_k\|^2 - v_k^2

of every filter, because both change at the same rate, :math:`2 v_k \langle w_k, \cdot\rangle`. Gradient descent changes
it in every step by exactly :math:`\eta^2 (\|\partial L/\partial w_k\|^2 - (\partial L/\partial v_k)^2)`.

Source: Du et al. (2018), Theorem 2.1, for the flow; the network is that of Shang et al. (2024).
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.lectures.benign_overfitting.output_layers.trainable import TrainableCNN
from flbook.shapes import signs
from flbook.training.problem import Params


@dataclass(frozen=True)
class TwoLayerTraining(GramTraining):
    """The training problem of a `TrainableCNN` on signal-noise data. Parameters: those of `GramTraining`, and ``v``.

    ``v_0`` may be one number, or one a member of the ensemble (its shape broadcasts against the ensemble's).
    """

    v_0: float | Tensor = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.bias:
            raise ValueError("bias must be False where the output layer is trained")

    @classmethod
    def of(cls, data: Any, sample: Any, cnn: TrainableCNN) -> "TwoLayerTraining":
        """The same problem as ``Training(cnn, sample.x, sample.observed)``."""
        w = cnn.w.detach().flatten(-3, -2)
        return cls(Gram.of(sample, w), sample.y.to(w), sample.observed.to(w), cnn.scale, cnn.activation,
                   law=data.test_law, v_0=cnn.v.detach()[..., 0, 0])

    def start(self) -> Params:
        """Coefficients before training, zero, and output weights +v_0 and -v_0."""
        params = super().start()
        size, (k, n) = torch.as_tensor(self.v_0).to(params["mu"]), params["xi"].shape[-2:]
        members = torch.broadcast_shapes(size.shape, params["mu"].shape[:-1])
        return {"mu": params["mu"].new_zeros(*members, k), "xi": params["mu"].new_zeros(*members, k, n),
                "v": (size[..., None] * signs(k, size)).expand(*members, k)}

    def _sums(self, z: dict[str, Tensor]) -> Tensor:
        """Responses of every filter to both patches of every sample, summed: ``(*E, k, n)``."""
        plus, minus = (self.respond(z[side], side)[..., None] for side in ("plus", "minus"))
        return torch.where(self.y[..., None, :] > 0, plus, minus) + self.respond(z["noise"], "noise")

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return self.scale * torch.einsum("...k,...kn->...n", params["v"], self._sums(self.patches(params)))

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        r"""Coefficients of the filters' gradient on :math:`\mu` and :math:`\xi_i`, and the output weights' gradient."""
        z, v = self.patches(params), self.scale * params["v"]
        sums = self._sums(z)
        outputs = torch.einsum("...k,...kn->...n", v, sums)
        slope_of_loss = self.loss.slope(outputs, observed) / self.y.shape[-1]
        up, down = (v * (slope_of_loss * (sign * self.y > 0)).sum(-1, keepdim=True) for sign in (1, -1))
        plus, minus = self.vjp(up, z["plus"], "plus"), self.vjp(down, z["minus"], "minus")
        noise = self.vjp(v[..., None] * slope_of_loss[..., None, :], z["noise"], "noise")
        grad = {"mu": plus - minus, "xi": noise,
                "v": self.scale * torch.einsum("...n,...kn->...k", slope_of_loss, sums)}
        return self.with_start(grad, params)

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length in the space of both layers."""
        return (super().norm(direction) ** 2 + direction["v"].square().sum(-1)).sqrt()

    def balance(self, params: Params) -> Float[Tensor, "*E k"]:
        r"""What the flow conserves: :math:`\|w_k\|^2 - v_k^2`, in float64."""
        return self.weight_gram(params).diagonal(dim1=-2, dim2=-1) - params["v"].double() ** 2

    def imbalance_rate(self, params: Params) -> Float[Tensor, "*E k"]:
        r""":math:`\|\partial L/\partial w_k\|^2 - (\partial L/\partial v_k)^2`: eta^2 times it is a step's drift."""
        grad, g = self.gradient(params), self.gram
        square = g.mu_mu[..., None] * grad["mu"] ** 2
        square = square + 2 * grad["mu"] * torch.einsum("...n,...kn->...k", g.mu_xi, grad["xi"])
        square = square + torch.einsum("...kn,...np,...kp->...k", grad["xi"], g.xi_xi, grad["xi"])
        return square - grad["v"] ** 2

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of label -1, the noise patches shared."""
        z, v = self.patches(params), self.scale * params["v"]
        noise = self.fresh_outputs(params, standard, v)
        return tuple((self.respond(z[side], side) * v).sum(-1, keepdim=True) + noise for side in ("plus", "minus"))

    def to(self, *where: Any) -> "TwoLayerTraining":
        """On another device or in another dtype."""
        moved = super().to(*where)
        return replace(moved, v_0=self.v_0.to(*where)) if isinstance(self.v_0, Tensor) else moved
