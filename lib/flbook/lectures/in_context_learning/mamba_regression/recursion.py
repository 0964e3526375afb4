r"""A Mamba layer trained on prompts of linear regression, through the moments of the prompts.

With a fixed step the prediction is bilinear: with :math:`t = \sum_l\omega_l y_l (u_l, 1)` of the examples and
:math:`q = (x_q, 0, 1)` of the query,

.. math:: \hat y = q^\top K\,t, \qquad K = [W_C\ b_C]^\top [W_B\ b_B],

so half the squared error, over a sample of prompts or over all of them, is a quadratic form in K. It is made once;
a step of training then costs neither prompts nor examples.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from flbook.lectures.in_context_learning.shared.mamba import Mamba, tokens
from flbook.shapes import Context
from flbook.training.problem import Params, PopulationProblem


class MambaTraining(PopulationProblem):
    r"""The loss :math:`\frac12 E(\hat y - y_q)^2` of a `Mamba` layer as a problem that `fit` minimises.

    second, cross: the moments :math:`E\,(q \otimes t)(q \otimes t)^\top` and :math:`E\,(q \otimes t)y_q`, shapes
    (*E, P, P) and (*E, P) with :math:`P = (d + 2)^2`; power: :math:`E\,y_q^2`. The step (``w_delta``, ``b_delta``,
    ``log_a``) is not trained.
    """

    def __init__(self, model: Mamba, second: Float[Tensor, "*#E P P"], cross: Float[Tensor, "*#E P"],
                 power: Float[Tensor, "*#E"] | float):
        self.model, self.second, self.cross, self.power = model, second, cross, power

    @classmethod
    def on(cls, model: Mamba, context: Context, query: Float[Tensor, "*E T 1 d"],
           target: Float[Tensor, "*E T 1"]) -> "MambaTraining":
        """The loss over T prompts, the last batch axis; one query each."""
        u, asked = tokens(context), pad(query[..., 0, :], (0, 1))
        with torch.no_grad():
            last = torch.exp(-model.held(asked))[..., None]
            weighted = model.weights(u) * context.y
            correlation = last * torch.einsum("...l,...lk->...k", weighted, pad(u, (0, 1), value=1.0))
        both = torch.einsum("...k,...l->...kl", pad(asked, (0, 1), value=1.0), correlation).flatten(-2)
        size, y = target.shape[-2], target[..., 0]
        second = torch.einsum("...tp,...tr->...pr", both, both) / size
        return cls(model, second, torch.einsum("...t,...tp->...p", y, both) / size, y.square().mean(-1))

    @classmethod
    def of_law(cls, model: Mamba, covariance: Float[Tensor, "d d"], omega: Float[Tensor, " n"],
               noise: float = 0.0) -> "MambaTraining":
        r"""The loss over all prompts: inputs :math:`N(0, \Lambda)`, tasks :math:`N(0, I)`.

        omega: the weights of the examples at the query, all prompts alike. Moments of fourth order, by Isserlis: see
        the lecture.
        """
        d, one, two = len(covariance), omega.sum(), omega.square().sum()
        label = covariance.trace() + noise**2
        read, asked = torch.zeros(2, d + 2, d + 2, dtype=covariance.dtype)
        square = covariance @ covariance
        read[:d, :d] = (one**2 + two) * square + two * label * covariance
        read[d, d] = (one**2 + 2 * two) * (label**2 + 2 * square.trace())
        read[d + 1, d + 1] = two * label
        asked[:d, :d], asked[d + 1, d + 1] = covariance, 1.0
        cross = pad(one * square, (0, 2, 0, 2))
        return cls(model, torch.kron(asked, read), cross.flatten(), float(covariance.trace()))

    def to(self, device: Any) -> "MambaTraining":
        """On another device, where the model moves, too."""
        power = self.power.to(device) if isinstance(self.power, Tensor) else self.power
        return MambaTraining(self.model.to(device), self.second.to(device), self.cross.to(device), power)

    def start(self) -> Params:
        """The projections before training: ``b`` and ``c``, shape (*E, s, d + 2), the bias in the last column."""
        own = {name: p.detach() for name, p in self.model.named_parameters()}
        return {name: torch.cat([own[f"w_{name}"], own[f"b_{name}"][..., None]], -1) for name in ("b", "c")}

    def into(self, params: Params) -> Mamba:
        """The model with these projections."""
        for name, value in params.items():
            getattr(self.model, f"w_{name}").data.copy_(value[..., :-1])
            getattr(self.model, f"b_{name}").data.copy_(value[..., -1])
        return self.model

    def merged(self, params: Params) -> Float[Tensor, "*E k k"]:
        """K: the query's coordinates down, the examples' across."""
        return torch.einsum("...sk,...sl->...kl", params["c"], params["b"])

    def train_loss(self, params: Params, *, x: None = None, observed: None = None) -> Float[Tensor, "*E"]:
        """Half the mean squared error."""
        k = self.merged(params).flatten(-2)
        square = torch.einsum("...p,...pr,...r->...", k, self.second, k)
        return (square - 2 * torch.einsum("...p,...p->...", k, self.cross) + self.power) / 2

    def slope(self, params: Params) -> Params:
        """By the chain rule through K."""
        k = self.merged(params)
        slope = torch.einsum("...r,...pr->...p", k.flatten(-2), self.second) - self.cross
        slope = slope.unflatten(-1, k.shape[-2:])
        return {"b": torch.einsum("...sk,...kl->...sl", params["c"], slope),
                "c": torch.einsum("...kl,...sl->...sk", slope, params["b"])}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length, one a member."""
        return sum(p.square().sum((-2, -1)) for p in direction.values()).sqrt()
