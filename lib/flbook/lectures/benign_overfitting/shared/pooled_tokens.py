"""Mean pooling in sample coordinates: what a trained linear head makes of tokens that attention does not select."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining, times
from flbook.training.losses import logistic
from flbook.training.problem import EmpiricalProblem, Params


@dataclass(frozen=True)
class PooledTraining(EmpiricalProblem):
    r"""Logistic regression on the mean token :math:`\bar x_i = \frac1L\sum_\ell x_{i,\ell}`, started at 0.

    The head stays in the span of the pooled samples, so its n coordinates are the state: ``{"head": (*E, n)}``.

    Parameters
    ----------
    pooled, mu_pooled
        Inner products of the pooled samples, and of the two signals with them; `of` makes both.
    observed, pattern, sigma_xi, loss
        As of `flbook.lectures.benign_overfitting.shared.token_gram.TokenTraining`.
    """

    coefficients = True

    pooled: Float[Tensor, "*E n n"]  # inner products of the pooled samples
    mu_pooled: Float[Tensor, "*E 2 n"]  # of the two signals with them
    observed: Float[Tensor, "*#E n"]
    pattern: Float[Tensor, "2 L 2"]
    sigma_xi: float = 1.0
    loss: Any = logistic

    @classmethod
    def of(cls, problem: TokenTraining) -> "PooledTraining":
        """The rival of token selection on the same data: no attention, but a head that is trained."""
        tokens, g = problem.tokens, problem.gram
        pooled = g.x_x.unflatten(-1, (-1, tokens)).mean(-1).unflatten(-2, (-1, tokens)).mean(-2)
        mu_pooled = g.mu_x.unflatten(-1, (-1, tokens)).mean(-1)
        return cls(pooled, mu_pooled, problem.observed, problem.pattern, problem.sigma_xi, problem.loss)

    def start(self) -> Params:
        """A head of zero."""
        return {"head": torch.zeros_like(self.pooled[..., 0])}

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return times(self.pooled, params["head"])

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coordinates."""
        return {"head": self.loss.slope(self.outputs(params), observed) / observed.shape[-1]}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Length of the change of the head that a direction in coordinates stands for."""
        return (direction["head"] * times(self.pooled, direction["head"])).sum(-1).sqrt()

    def test_outputs(self, params: Params, standard: Float[Tensor, "points 1"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of label -1: exactly Gaussian."""
        spread = self.sigma_xi * self.norm(params) / self.pattern.shape[-2] ** 0.5
        signal = torch.einsum("...c,ylc->...y", times(self.mu_pooled, params["head"]), self.pattern.to(spread))
        signal = signal / self.pattern.shape[-2]
        noise = spread[..., None] * standard[:, 0].to(spread)
        return signal[..., :1] + noise, signal[..., 1:] + noise

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh sample takes."""
        return 1
