"""Pretraining on factual recall: fresh questions or fresh in-context prompts at every step."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall, RecallPrompts
from flbook.shapes import per_member
from flbook.training.losses import cross_entropy
from flbook.training.problem import Params, PopulationProblem


@dataclass
class RecallPretraining(PopulationProblem):
    """A problem for `flbook.fit`: expected cross-entropy of a recall layer, each gradient from a fresh batch.

    examples: pairs of an in-context prompt, or None for questions. trained: names of the trained parameters, all if
    None. Every trained parameter decays by the factor 1 - eta decay a step. given: the prompts of every step, instead
    of fresh ones.
    """

    model: nn.Module
    data: FactualRecall
    seed: int | tuple[int, ...] = 0
    batch: int = 64
    examples: int | None = None
    decay: float = 1e-3
    trained: tuple[str, ...] | None = None
    device: str = "cpu"
    number: int = 0  # of the batch: 1 at the first step
    given: RecallPrompts | None = None

    def start(self) -> Params:
        """The parameters before training."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def at(self, step: int) -> "RecallPretraining":
        """The problem of this step's batch."""
        return replace(self, number=step + 1)

    def sample(self) -> RecallPrompts:
        """The batch of this step."""
        if self.given is not None:
            prompts = self.given
        elif self.examples is None:
            prompts = self.data.questions(self.batch, self.seed, self.number)
        else:
            prompts = self.data.in_context(self.batch, self.examples, self.seed, self.number)
        return RecallPrompts(*(part.to(self.device) for part in prompts))

    def predict(self, params: Params, prompts: RecallPrompts) -> Float[Tensor, "*E b A"]:
        """Logits of all answers."""
        like = next(iter(params.values()))
        seen = (prompts.tokens.to(like), prompts.query.to(like), self.data.answers.to(like))
        return torch.func.functional_call(self.model, params, seen)

    def loss(self, params: Params, prompts: RecallPrompts) -> Float[Tensor, "*E"]:
        """Mean cross-entropy of each member."""
        return cross_entropy(self.predict(params, prompts), prompts.answer).mean(-1)

    def slope(self, params: Params) -> Params:
        """Gradient of each member's loss, plus the decay."""
        prompts = self.sample()
        trained = tuple(params) if self.trained is None else self.trained
        leaves = {name: p.detach().requires_grad_(name in trained) for name, p in params.items()}
        found = torch.autograd.grad(self.loss(leaves, prompts).sum(), [leaves[name] for name in trained])
        found = dict(zip(trained, found, strict=True))
        return {name: found[name] + per_member(self.decay, p) * p if name in found else torch.zeros_like(p)
                for name, p in params.items()}

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction, one a member."""
        return sum(p.square().flatten(-2).sum(-1) for p in direction.values()).sqrt()


def recall_parameters(params: Params, data: FactualRecall) -> dict[str, Float[Tensor, "*E"]]:
    """Means over the concepts of a·W_V a, b·W_V b, a·M a and b·M b, with M = W_K^T W_Q."""
    merged = torch.einsum("...hi,...hj->...ij", params["k"], params["q"])
    sides = {"task": data.tasks.to(merged), "fact": data.facts.to(merged)}
    return {f"{name}_{side}": torch.einsum("ki,...ij,kj->...k", v, matrix, v).mean(-1)
            for name, matrix in (("value", params["v"]), ("score", merged)) for side, v in sides.items()}
