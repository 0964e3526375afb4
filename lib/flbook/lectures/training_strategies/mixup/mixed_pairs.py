r"""Mixup with a fixed weight on all n² ordered pairs of samples, at the cost of n outputs and one n x n matrix.

.. math:: \tilde x_{ij} = \lambda_x x_i + (1-\lambda_x) x_j, \qquad
          \tilde\ell_{ij} = \lambda_y\,\ell(f(\tilde x_{ij}), y_i) + (1-\lambda_y)\,\ell(f(\tilde x_{ij}), y_j).

For squares a filter's answer to a mixture needs its answers to the two samples and their product only,

.. math:: f(\tilde x_{ij}) = \lambda_x^2 Q_{ii} + (1-\lambda_x)^2 Q_{jj} + 2\lambda_x(1-\lambda_x) Q_{ij}, \qquad
          Q_{ij} = \sum_k a_k \sum_p \langle w_k, x_i^{(p)}\rangle\langle w_k, x_j^{(p)}\rangle,

and the gradient is a sum over pairs of :math:`x_i^{(p)}` and :math:`x_j^{(p)}`, through one n x n matrix.
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Natural, Probability
from flbook.dynamics.patches import PatchTraining
from flbook.models.activations import Power
from flbook.training.problem import Params, Problem, WrappedProblem, refuse


@dataclass(frozen=True)
class MixedPairs(PatchTraining):
    """The logistic loss of a network of squares on all mixed pairs of its samples, in coefficients.

    Outputs and measures are those on the samples themselves; loss and gradient are those of the pairs.

    Parameters
    ----------
    input_weight, label_weight
        Weights of the first sample in the mixed input and in the mixed loss; both 1 is standard training.

    Raises
    ------
    ValueError
        If the activation is not the square, or a weight is outside [0, 1].

    Examples
    --------
    >>> from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
    >>> from flbook.lectures.training_strategies.mixup.squares import training
    >>> plain = training(CommonAndRare(n=20, d=50, share=0.2))
    >>> mixed, standard = MixedPairs.of_samples(plain, 0.6), MixedPairs.of_samples(plain, 1.0)
    >>> start = plain.start()
    >>> torch.allclose(standard.gradient(start)["c"], plain.gradient(start)["c"])
    True
    >>> mixed.pair_outputs(start).shape
    torch.Size([20, 20])
    """

    input_weight: Probability = 0.6
    label_weight: Probability = 0.6

    def __post_init__(self):
        super().__post_init__()
        if self.activation != Power(2):
            raise ValueError(f"activation must be Power(2), whose mixtures are known; got {self.activation}")

    @classmethod
    def of_samples(cls, problem: PatchTraining, input_weight: float, label_weight: float | None = None) -> "MixedPairs":
        """Mixup on the samples of a problem; by default with the same weight for inputs and labels."""
        same = {field.name: getattr(problem, field.name) for field in fields(PatchTraining)}
        return cls(**same, input_weight=input_weight,
                   label_weight=input_weight if label_weight is None else label_weight)

    def _targets(self, observed: Tensor) -> Float[Tensor, "*E n n"]:
        """Mixed labels, as the probability of +1."""
        mixed = self.label_weight * observed[..., :, None] + (1 - self.label_weight) * observed[..., None, :]
        return (1 + mixed) / 2

    def _mixed(self, z: Float[Tensor, "*E k n P"]) -> Float[Tensor, "*E n n"]:
        own, other = self.input_weight, 1 - self.input_weight
        flat = z.movedim(-3, -1).flatten(-2)  # (n, P k)
        product = (flat * self.a.repeat(z.shape[-1])) @ flat.mT
        alone = product.diagonal(dim1=-2, dim2=-1)
        return own**2 * alone[..., :, None] + other**2 * alone[..., None, :] + 2 * own * other * product

    def pair_outputs(self, params: Params) -> Float[Tensor, "*E n n"]:
        """Outputs on all mixtures, the sample with weight `input_weight` first."""
        return self._mixed(self.on_patches(params))

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Float[Tensor,
                                                                                                              "*E"]:
        """Mean loss over all pairs."""
        refuse(self, x=x)
        f, target = self.pair_outputs(params), self._targets(self.observed if observed is None else observed)
        return (torch.nn.functional.softplus(f) - target * f).mean((-2, -1))

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coefficients on the basis; not the derivative in c."""
        z, own, other = self.on_patches(params), self.input_weight, 1 - self.input_weight
        slope = (torch.sigmoid(self._mixed(z)) - self._targets(observed)) / observed.shape[-1] ** 2
        alone = own**2 * slope.sum(-1) + other**2 * slope.sum(-2)
        tied = own * other * (slope + slope.mT) + torch.diag_embed(alone)
        pulled = 2 * self.a[:, None, None] * torch.einsum("...nm,...kmp->...knp", tied, z)
        return {"c": torch.einsum("...knp,...nps->...ks", pulled, self.mix)}

    def batch(self, places: Tensor) -> "MixedPairs":
        """All pairs among some of the samples, the same places for every member."""
        part = {field.name: getattr(self, field.name) for field in fields(self)}
        part["mix"] = self.mix.index_select(-3, places)
        part["observed"] = self.observed.index_select(-1, places)
        return MixedPairs(**part)

    def linear(self) -> Problem:
        """There is none: mixtures are known for squares only."""
        return Problem.linear(self)

    def lazy(self) -> Problem:
        """There is none: mixtures are known for squares only."""
        return Problem.lazy(self)


@dataclass
class StoppedEarly(WrappedProblem, Checked):
    """One problem for the first steps, then another with parameters of the same form: Mixup that stops early, say.

    Parameters
    ----------
    problem
        The second, which also measures.
    first
        The problem of the first steps.
    steps
        How many these are.
    """

    problem: Problem
    first: Problem
    steps: Natural = 0

    def at(self, step: int) -> Problem:
        """The problem of one step."""
        return (self.first if step < self.steps else self.problem).at(step)
