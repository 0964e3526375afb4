r"""A two-layer network on the tokens of `TwoSignals`, trained in their span: the rival that knows no attention.

.. math:: f(X) = \sum_{j=\pm1} \frac jm \sum_{r=1}^m \sum_{\ell=1}^L \mathrm{ReLU}^q(\langle w_{j,r}, x_\ell\rangle)

Every filter meets every token. For q > 1 large responses count for more, which selects tokens without a softmax.

Source: the network of Cao et al. (2022) with L patches in place of two; the algorithm is this book's.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Positive
from flbook.lectures.benign_overfitting.vision_transformer.token_span import TokenSpan
from flbook.training.problem import Params


@dataclass(frozen=True)
class FilterTraining(TokenSpan):
    """The K = 2 m columns are the filters: those for the label +1, then those for -1."""

    power: Positive = 2.0  # q

    def __post_init__(self):
        super().__post_init__()
        if self.width % 2:
            raise ValueError(f"there are as many filters for one label as for the other; got {self.width} of them")

    @property
    def output_weights(self) -> Float[Tensor, " K"]:
        """1/m for the filters of the label +1, -1/m for the others."""
        m = self.width // 2
        return torch.tensor([1.0] * m + [-1.0] * m).to(self.gram) / m

    def respond(self, z: Tensor) -> Tensor:
        """ReLU to the power q."""
        return z.clamp(min=0) ** self.power

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        z = self.samples(self.responses(params))
        return (self.respond(z).sum(-2) * self.output_weights).sum(-1)

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coefficients on the tokens."""
        z = self.samples(self.responses(params))
        outputs = (self.respond(z).sum(-2) * self.output_weights).sum(-1)
        loss_derivative = self.loss.slope(outputs, observed) / observed.shape[-1]
        slope = self.power * z.clamp(min=0) ** (self.power - 1) * (z > 0)
        return {"columns": self.gathered(loss_derivative[..., None, None] * slope * self.output_weights)}

    def test(self, params: Params, standard: Float[Tensor, "points N K"]) -> Float[Tensor, "*E 2 points"]:
        """Outputs on fresh samples of either label."""
        return (self.respond(self.fresh(params, standard)).sum(-2) * self.output_weights).sum(-1)
