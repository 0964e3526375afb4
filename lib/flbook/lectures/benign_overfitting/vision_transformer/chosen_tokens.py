r"""Selection of tokens without a network: average a class's best tokens, and choose the best again.

It begins with the averaging classifier of mean tokens, :math:`v = \sum_{i,\ell} y_i x_{i,\ell}`. In every round each
sample chooses the token with the largest :math:`y_i\langle v, x_{i,\ell}\rangle`, and v becomes the sum of the chosen
tokens with their labels. A fresh sample is read at the token where :math:`|\langle v, x_\ell\rangle|` is largest.

Source: the alternation of multiple-instance learning, with an average in place of a support vector machine.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.lectures.benign_overfitting.vision_transformer.token_span import TokenSpan
from flbook.training.losses import logistic
from flbook.training.problem import Params


@dataclass(frozen=True)
class ChosenTokens(TokenSpan):
    """One column, the template v. It is chosen, not trained: there is no gradient."""

    @classmethod
    def on(cls, gram: Float[Tensor, "*E M M"], observed: Tensor, y: Tensor, tokens: int, sigma_xi: float):
        """From inner products of the tokens alone; the template starts at 0."""
        return cls(torch.nn.functional.pad(gram, (0, 1, 0, 1)), observed, y, tokens, sigma_xi, logistic)

    def chosen(self, rounds: int) -> Params:
        """The template after so many rounds."""
        label = self.observed[:, None, None]
        every = self.gathered(label.expand(-1, self.tokens, 1).to(self.gram))
        params = {"columns": every.expand(*self.gram.shape[:-2], -1, 1)}
        for _ in range(rounds):
            match = label * self.samples(self.responses(params))
            best = torch.nn.functional.one_hot(match[..., 0].argmax(-1), self.tokens).to(match)
            params = {"columns": self.gathered(label * best[..., None])}
        return params

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return extreme(self.samples(self.responses(params))[..., 0])

    def test(self, params: Params, standard: Float[Tensor, "points N 1"]) -> Float[Tensor, "*E 2 points"]:
        """Outputs on fresh samples of either label."""
        return extreme(self.fresh(params, standard)[..., 0])


def extreme(values: Float[Tensor, "*E L"]) -> Float[Tensor, "*E"]:
    """The value of the largest size in each row."""
    return values.gather(-1, values.abs().argmax(-1, keepdim=True))[..., 0]
