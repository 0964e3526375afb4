"""Random features: the filters of a network stay where they started, only the output weights train.

The features are known once and for all, so what is left is logistic regression on them; features of fresh noise are
drawn from their exact law, as for the network.
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.training.problem import EmpiricalProblem, Params, forwarded


@dataclass(frozen=True)
class FrozenGramTraining(EmpiricalProblem):
    """Only the output weights train, on the features of the initial filters, scaled to mean square 1."""

    problem: Any  # whose rival it is: a `GramTraining`, or another problem with its patches and its `respond`
    y, observed, loss, bias, test_directions = map(forwarded, ("y", "observed", "loss", "bias", "test_directions"))

    @cached_property
    def features(self) -> dict[str, Tensor]:
        """Responses of the initial filters to every training patch.

        Returns
        -------
        dict[str, Tensor]
            Under the names of the problem's `patches`: for `GramTraining` of shape ``(*E, k)``, for the noise
            ``(*E, k, n)``.
        """
        z = self.problem.patches(self.problem.start())
        return {patch: self.problem.respond(value, patch) for patch, value in z.items()}

    @cached_property
    def _summed(self) -> Tensor:
        """Features of the training samples, both patches summed, shape ``(*E, n, k)``."""
        plus, minus = self.features["plus"][..., None, :], self.features["minus"][..., None, :]
        signal = torch.where(self.problem.y[..., None] > 0, plus, minus)
        return signal + self.features["noise"].mT

    @cached_property
    def size(self) -> Tensor:
        """Root mean square of the features, one a member.

        Returns
        -------
        Tensor
            Shape ``(*E, 1)``.
        """
        return self._summed.square().mean((-2, -1)).sqrt()[..., None]

    @cached_property
    def samples(self) -> Tensor:
        """Scaled features of the training samples.

        Returns
        -------
        Tensor
            Shape ``(*E, n, k)``.
        """
        return self._summed / self.size[..., None]

    def start(self) -> Params:
        """Output weights of the network.

        Returns
        -------
        Params
            ``{"a": (*E, k)}``.
        """
        return {"a": self.problem.a.expand(self._summed[..., 0, :].shape).clone()}

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.

        Returns
        -------
        Tensor
            Shape ``(*E, n)``.
        """
        return torch.einsum("...k,...nk->...n", params["a"], self.samples)

    def batch(self, places: Tensor) -> "FrozenGramTraining":
        """The same with the loss of some samples only.

        Parameters
        ----------
        places
            Places of b samples, shape ``(b,)``, the same for every member.

        Returns
        -------
        FrozenGramTraining
            The problem, with the features of all samples, scaled as before.
        """
        part = copy.copy(self)  # with the features, which are known already
        object.__setattr__(part, "problem", self.problem.batch(places))
        return part

    def to(self, *where: Any) -> "FrozenGramTraining":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        FrozenGramTraining
            The same problem there.
        """
        return replace(self, problem=self.problem.to(*where))

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """Gradient in the output weights.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.
        observed
            Labels, shape ``(*#E, n)``.

        Returns
        -------
        Params
            ``{"a": (*E, k)}``.
        """
        loss_derivative = self.loss.slope(self.outputs(params), observed) / observed.shape[-1]
        return {"a": torch.einsum("...n,...nk->...k", loss_derivative, self.samples)}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Length of a direction.

        Parameters
        ----------
        direction
            A direction in the form of the parameters, ``{"a": (*E, k)}``.

        Returns
        -------
        Tensor
            Shape ``*E``.
        """
        return direction["a"].square().sum(-1).sqrt()

    def signal_outputs(self, params: Params) -> tuple[Float[Tensor, "*E"], Float[Tensor, "*E"]]:
        """Outputs on the signal patch alone, of label +1 and of label -1.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shape ``*E`` each.
        """
        plus, minus = ((self.features[side] * params["a"] / self.size).sum(-1) for side in ("plus", "minus"))
        return plus, minus

    def noise_outputs(self, params: Params, z: Float[Tensor, "*E points k"]) -> Float[Tensor, "*E points"]:
        """Outputs on noise patches alone, from what the initial filters see of them.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.
        z
            Pre-activations of the initial filters in the form of `fresh`, shape ``(*E, points, k)``.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        return torch.einsum("...k,...pk->...p", params["a"] / self.size, self.problem.respond(z, "fresh"))

    def training_noise(self, params: Params) -> Float[Tensor, "*E n k"]:
        """What the initial filters see of the training noise.

        Parameters
        ----------
        params
            Output weights, on which this does not depend.

        Returns
        -------
        Tensor
            Pre-activations, shape ``(*E, n, k)``.
        """
        return self.problem.training_noise(self.problem.start())

    def fresh(self, params: Params, standard: Float[Tensor, "points k"]) -> Float[Tensor, "*E points k"]:
        """What the initial filters see of fresh noise.

        Parameters
        ----------
        params
            Output weights, on which this does not depend.
        standard
            Standard normal numbers, shape ``(points, k)``: `test_directions` for each patch.

        Returns
        -------
        Tensor
            Pre-activations, shape ``(*E, points, k)``.
        """
        return self.problem.fresh(self.problem.start(), standard)

    def fresh_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> Float[Tensor, "*E points"]:
        """Outputs on fresh noise patches alone.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.
        standard
            Standard normal numbers, shape ``(points, k)``: `test_directions` for each patch.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        return self.problem.fresh_outputs(self.problem.start(), standard, params["a"] / self.size)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs on fresh samples of label +1 and of label -1.

        Parameters
        ----------
        params
            Output weights, ``{"a": (*E, k)}``.
        standard
            Standard normal numbers, shape ``(points, k)``: `test_directions` for each patch.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shape ``(*E, points)`` each.
        """
        noise = self.fresh_outputs(params, standard)
        plus, minus = (signal[..., None] + noise for signal in self.signal_outputs(params))
        return plus, minus
