"""Networks on sparse noise, in weights: the paper's network, its gradient by hand, and its rivals."""

import copy

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.models.activations import ReLUPower, identity, tangent
from flbook.models.cnn import TwoLayerCNN
from flbook.rivals import FrozenCNN
from flbook.shapes import signs
from flbook.training.network import Training
from flbook.training.problem import Params


@checked_arguments
def network(data: SparseNoise, m: Count = 20, sigma_0: NonNegative = 0.01, seed: Seeds = 0) -> TwoLayerCNN:
    r"""The paper's network: m filters a sign, :math:`\max(z, 0)^3`, summed over filters and not averaged."""
    return TwoLayerCNN(data.d, m, sigma_0, ReLUPower(3), scale=1.0, seed=seed)


class SparseTraining(Training):
    r"""`Training` of a `TwoLayerCNN` without bias where the first patch is a multiple of :math:`e_1`, by hand.

    .. math:: \nabla_{w_k}L = \frac1n\sum_i \ell_i'\,a_k\big[\sigma'(\langle w_k, y_iv\rangle)\,y_iv +
              \sigma'(\langle w_k, \xi_i\rangle)\,\xi_i\big]

    The feature takes one coordinate, so that a step costs half of what automatic differentiation asks.

    Examples
    --------
    >>> data = SparseNoise(n=10, d=50, s=5)
    >>> problem = SparseTraining(network(data, m=3), *data.draw(seed=0)[:2])
    >>> problem.gradient(problem.start())["w"].shape
    torch.Size([2, 3, 50])
    """

    def __init__(self, model: TwoLayerCNN, x: Tensor, observed: Tensor):
        super().__init__(model, x, observed)
        if bool((self.x[..., 0, 1:] != 0).any()):
            raise ValueError("x must hold a multiple of the first basis vector in its first patch")

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, or on `x`."""
        x = self.x if x is None else x.to(self.x)
        w = params["w"].flatten(-3, -2)
        return torch.matmul(self._a(w), sum(self.respond(w, x)))

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss, equal to what automatic differentiation gives."""
        x, y = self.x if x is None else x, self.observed if observed is None else observed
        w = params["w"].flatten(-3, -2)
        a = self._a(w)
        f = torch.matmul(a, sum(self.respond(w, x)))
        force = (self.loss.slope(f, y) / f.shape[-1])[..., None, :] * a[:, None]
        on_v, on_xi = self.slopes(w, x)
        grad = torch.matmul(force * on_xi, x[..., 1, :])
        grad[..., 0] += (force * on_v * x[..., None, :, 0, 0]).sum(-1)
        return {"w": grad.unflatten(-2, (2, -1))}

    def respond(self, w: Float[Tensor, "*E k d"], x: Float[Tensor, "*#E n 2 d"]) -> tuple[Tensor, Tensor]:
        """What filters make of either patch, shapes ``(*E, k, n)``."""
        return tuple(self.model.activation(z) for z in _seen(w, x))

    def slopes(self, w: Float[Tensor, "*E k d"], x: Float[Tensor, "*#E n 2 d"]) -> tuple[Tensor, Tensor]:
        """Its derivative."""
        return tuple(self.model.activation.slope(z) for z in _seen(w, x))

    def _a(self, w: Tensor) -> Tensor:
        return self.model.scale * signs(w.shape[-2], w)

    def linear(self) -> "SparseTraining":
        """A linear classifier of the sum of the patches, from zero; one filter a sign, since all would do the same."""
        cnn = copy.copy(self.model)
        cnn.activation, cnn._parameters = identity, dict(cnn._parameters)
        cnn.w = torch.nn.Parameter(torch.zeros_like(self.model.w[..., :1, :]))
        return SparseTraining(cnn, self.x, self.observed)

    def lazy(self) -> "LazySparseTraining":
        """The network's first-order expansion about its start."""
        return LazySparseTraining(self.model, self.x, self.observed)

    def frozen(self) -> Training:
        """Random features: the initial filters stay, the output weights train."""
        return Training(FrozenCNN(self.model, self.x), self.x, self.observed)

    def feature(self, params: Params) -> Float[Tensor, "*E 2"]:
        r""":math:`\max_r\langle w_{j,r}, jv\rangle` for either sign: above 0 the feature is learned with its sign."""
        return (params["w"][..., 0] * signs(2, params["w"])[:, None]).amax(-1)

    def noise(self, params: Params) -> Float[Tensor, "*E n"]:
        r""":math:`\max_r\langle w_{y_i,r}, \xi_i\rangle`: what the filters that vote for a sample's label see of it."""
        z = torch.matmul(params["w"].flatten(-3, -2), self.x[..., 1, :].mT).unflatten(-2, (2, -1)).amax(-2)
        return torch.where(self.observed > 0, z[..., 0, :], z[..., 1, :])


class LazySparseTraining(SparseTraining):
    r"""Filters respond as :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`, with :math:`z_0` what they saw at the start."""

    def respond(self, w: Float[Tensor, "*E k d"], x: Float[Tensor, "*#E n 2 d"]) -> tuple[Tensor, Tensor]:
        """First-order response."""
        pairs = zip(_seen(w, x), _seen(self._first(), x), strict=True)
        return tuple(tangent(self.model.activation, z, z_0) for z, z_0 in pairs)

    def slopes(self, w: Float[Tensor, "*E k d"], x: Float[Tensor, "*#E n 2 d"]) -> tuple[Tensor, Tensor]:
        """The same at every step."""
        return super().slopes(self._first(), x)

    def _first(self) -> Tensor:
        return self.model.w.detach().flatten(-3, -2)


def _seen(w: Float[Tensor, "*#E k d"], x: Float[Tensor, "*#E n 2 d"]) -> tuple[Tensor, Tensor]:
    """What filters see of either patch, shapes ``(*E, k, n)``."""
    return w[..., :1] * x[..., None, :, 0, 0], torch.matmul(w, x[..., 1, :].mT)
