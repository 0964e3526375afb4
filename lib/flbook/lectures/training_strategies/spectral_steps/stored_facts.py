r"""An associative memory: a matrix that is to answer N inputs with an output each, some asked often and most rarely.

Fact i comes with the frequency :math:`p_i \propto i^{-\alpha}`; its input :math:`e_i` and its output :math:`u_i` are
uniform on the unit sphere of R^d. A matrix W answers :math:`e_i` with the output of the largest logit
:math:`u_j^\top W e_i`; the loss is the cross-entropy over all N outputs, weighted by the frequencies. From W = 0 its
gradient is :math:`-\sum_i p_i (u_i - \bar u) e_i^\top` with the mean output :math:`\bar u`.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural, Positive, checked_arguments
from flbook.training.problem import Params, PopulationProblem


@dataclass(frozen=True)
class Facts(Checked):
    """Facts by their rank: how often each is asked for, its input and its output.

    Parameters
    ----------
    count
        N, how many there are.
    d
        The dimension of inputs and outputs.
    power
        The power of the law of their frequencies.

    Raises
    ------
    ValueError
        If a number is out of its domain.

    Examples
    --------
    >>> Facts(count=3, d=8, power=1.0).frequencies.numpy().round(3).tolist()
    [0.545, 0.273, 0.182]
    """

    count: Count = 1000
    d: Count = 64
    power: Positive = 1.5

    @property
    def frequencies(self) -> Float[Tensor, " N"]:
        """How often each fact is asked for, the most frequent first."""
        p = torch.arange(1, self.count + 1, dtype=torch.float64) ** -self.power
        return p / p.sum()

    @checked_arguments
    def draw(self, seed: Natural | tuple[Natural, ...] = 0) -> tuple[Float[Tensor, "*E N d"], Float[Tensor, "*E N d"]]:
        """Inputs and outputs; a tuple of seeds gives one leading ensemble axis."""
        return tuple(self._sphere(seed, role) for role in ("inputs", "outputs"))

    def _sphere(self, seed, role: str) -> Tensor:
        """Uniform on the unit sphere."""
        x = rng.normal((self.count, self.d), seed, role, dtype=torch.float64)
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


@dataclass(frozen=True, eq=False)
class FactTraining(PopulationProblem):
    """A matrix, zero at first, and the cross-entropy of its answers: parameter ``w`` of shape ``(*E, d, d)``.

    Parameters
    ----------
    inputs, outputs
        Of all facts, the most frequent first.
    p
        How much each fact counts in the loss.

    Examples
    --------
    >>> from flbook import SpectralDescent, fit
    >>> problem = FactTraining.of(Facts(count=100, d=16), seed=(0, 1))
    >>> problem.stored(fit(problem, SpectralDescent(1.0), 1).params).shape
    torch.Size([2, 100])
    """

    inputs: Float[Tensor, "*E N d"]
    outputs: Float[Tensor, "*E N d"]
    p: Float[Tensor, " N"]

    @classmethod
    @checked_arguments
    def of(cls, facts: Facts, seed: Natural | tuple[Natural, ...] = 0) -> "FactTraining":
        """Of one seed, or of several."""
        return cls(*facts.draw(seed), facts.frequencies)

    def to(self, *where: Any) -> "FactTraining":
        """On another device or in another precision."""
        return replace(self, inputs=self.inputs.to(*where), outputs=self.outputs.to(*where), p=self.p.to(*where))

    def copies(self, count: int) -> "FactTraining":
        """Several members of each, along a new first axis: one for each step size, say."""
        inputs, outputs = (part.expand(count, *part.shape) for part in (self.inputs, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    def start(self) -> Params:
        """Nothing stored."""
        d = self.inputs.shape[-1]
        return {"w": self.inputs.new_zeros(*self.inputs.shape[:-2], d, d)}

    def logits(self, params: Params) -> Float[Tensor, "*E N N"]:
        """Of every output, for each input."""
        return (self.inputs @ params["w"].mT) @ self.outputs.mT

    def slope(self, params: Params) -> Params:
        r"""Gradient :math:`\sum_i p_i (\sum_j q_{ij} u_j - u_i) e_i^\top`, q the softmax of the logits."""
        q = self.logits(params).softmax(-1) * self.p[:, None]
        pulled = q @ self.outputs - self.p[:, None] * self.outputs
        return {"w": pulled.mT @ self.inputs}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """The Frobenius norm."""
        return torch.linalg.matrix_norm(direction["w"])

    def train_loss(self, params: Params, **change: Tensor) -> Float[Tensor, "*E"]:
        """Cross-entropy, weighted by the frequencies, in nats."""
        return -(self.logits(params).log_softmax(-1).diagonal(dim1=-2, dim2=-1) * self.p).sum(-1)

    def stored(self, params: Params) -> Bool[Tensor, "*E N"]:
        """Is the largest logit of each input that of its own output?"""
        own = torch.arange(self.p.shape[0], device=self.p.device)
        return self.logits(params).argmax(-1) == own


def first_gradient(inputs: Float[Tensor, "*E N d"], outputs: Float[Tensor, "*E N d"],
                   p: Float[Tensor, " N"]) -> Float[Tensor, "*E d d"]:  # fmt: skip
    r"""Minus the gradient at W = 0, :math:`G = \sum_i p_i (u_i - \bar u) e_i^\top`; no N times N table is made."""
    centred = outputs - outputs.mean(-2, keepdim=True)
    return (p[:, None] * centred).mT @ inputs


def stored(w: Float[Tensor, "d d"], inputs: Float[Tensor, "N d"], outputs: Float[Tensor, "N d"], ranks: int,
           block: int = 1024) -> Bool[Tensor, " ranks"]:  # fmt: skip
    """Are the facts of the first ranks stored in W? Outputs in blocks, so that a fact that has failed is asked no more.

    In single precision, which is exact enough to tell the largest logit.
    """
    w, inputs, outputs = w.float(), inputs[:ranks].float(), outputs.float()
    answers = inputs @ w.mT
    own = (answers * outputs[:ranks]).sum(-1)
    alive = torch.arange(len(own), device=w.device)
    for first in range(0, len(outputs), block):
        logits = answers[alive] @ outputs[first : first + block].mT
        inside = (alive >= first) & (alive < first + block)
        logits[inside, alive[inside] - first] = -torch.inf  # itself is no competitor
        alive = alive[logits.amax(-1) < own[alive]]
    kept = torch.zeros(len(own), dtype=torch.bool, device=w.device)
    kept[alive] = True
    return kept
