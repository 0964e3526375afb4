r"""Pretraining on concept prompts: on fresh batches, on all prompts at once, and in the few numbers that decide.

All three are gradient descent on the expected cross-entropy of a `ConceptAttention`, with the same rates: every
parameter decays by the factor :math:`1 - \eta\lambda` a step, and the head moves m times as fast as queries and keys
(each of its neurons has the weight 1/m in the output, so this is the rate of a neuron).
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.data.prompts import Prompts
from flbook.lectures.in_context_learning.concept_prompts.concept_attention import ConceptAttention, attention
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts
from flbook.shapes import Context, per_member
from flbook.training.losses import logistic
from flbook.training.problem import Params, PopulationProblem


@dataclass
class ConceptPretraining(PopulationProblem):
    """A problem for `flbook.fit`: the expected loss of a layer over prompts, each gradient from a fresh batch.

    decay: weight decay lambda, one number or one for each member (shape ``*E``).
    """

    model: nn.Module
    data: ConceptPrompts
    seed: int | tuple[int, ...] = 0
    batch: int = 64  # fresh prompts a step
    decay: float | Tensor = 0.0
    trained: tuple[str, ...] | None = None  # names of the trained parameters, the rest stays frozen; None trains all
    device: str = "cpu"
    number: int = 0  # of the batch: 1 at the first step

    def start(self) -> Params:
        """The parameters before training, one copy for every member of the decay."""
        members = next(self.model.parameters()).shape[:-2]
        lead = torch.broadcast_shapes(torch.as_tensor(self.decay).shape, members)
        return {name: p.detach().expand(*lead, *p.shape[-2:]).clone() for name, p in self.model.named_parameters()}

    def at(self, step: int) -> "ConceptPretraining":
        """The problem of this step's batch."""
        return replace(self, number=step + 1)

    def sample(self) -> tuple[Prompts, Float[Tensor, " prompts"] | float]:
        """Prompts and their weights in the loss."""
        return self.data.draw(self.batch, self.seed, self.number, self.device), 1 / self.batch

    def predict(self, params: Params, prompts: Prompts) -> Float[Tensor, "*E b"]:
        """Outputs on prompts."""
        like = next(iter(params.values()))
        context = Context(*(part.to(like) for part in prompts.context))
        return torch.func.functional_call(self.model, params, (context, prompts.query.to(like)))[..., 0]

    def slope(self, params: Params) -> Params:
        """Gradient of each member's loss, times the rates, plus the decay."""
        prompts, weight = self.sample()
        trained = tuple(params) if self.trained is None else self.trained
        leaves = {name: p.detach().requires_grad_(name in trained) for name, p in params.items()}
        loss = (logistic(self.predict(leaves, prompts), prompts.target[..., 0]) * weight).sum()
        found = dict(zip(trained, torch.autograd.grad(loss, [leaves[name] for name in trained]), strict=True))
        if "o" in found:
            found["o"] = found["o"] * params["o"].shape[-2]
        return {name: found[name] + per_member(self.decay, p) * p if name in found else torch.zeros_like(p)
                for name, p in params.items()}

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction, one a member."""
        return sum(p.square().sum((-2, -1)) for p in direction.values()).sqrt()


class LazyConceptPretraining(ConceptPretraining):
    """The same for the layer's first-order expansion about its start."""

    def predict(self, params: Params, prompts: Prompts) -> Float[Tensor, "*E b"]:
        """The tangent at the start, by one forward-mode derivative."""
        start = self.start()
        moved = {name: params[name] - start[name] for name in start}
        f_0, df = torch.func.jvp(lambda p: super(LazyConceptPretraining, self).predict(p, prompts), (start,), (moved,))
        return f_0 + df


@dataclass
class EveryPrompt(ConceptPretraining):
    """The same without sampling: the exact gradient over all prompts, which carry no noise here."""

    def __post_init__(self):
        self.prompts, self.weight = self.data.every()

    def sample(self) -> tuple[Prompts, Float[Tensor, " prompts"]]:
        """All prompts and their probabilities."""
        return self.prompts, self.weight

    def at(self, step: int) -> "EveryPrompt":
        """The same at every step."""
        return self

    def error_by_concept(self, params: Params, data: ConceptPrompts) -> Float[Tensor, "*E K"]:
        """Exact 0-1 loss within each concept, over all prompts of a data model."""
        prompts, weight = data.every()
        wrong = (self.predict(params, prompts) * prompts.target[..., 0] <= 0).double() * weight
        own = torch.nn.functional.one_hot(prompts.task, data.concepts).double()
        return torch.einsum("...b,bk->...k", wrong, own) / torch.einsum("b,bk->k", weight, own)


def order_parameters(params: Params, data: ConceptPrompts) -> dict[str, Float[Tensor, "*E K"]]:
    """What a layer has learned of each concept, with the lengths that the prompts have.

    shared, contrast: a_k^T W_K^T W_Q a_k and b_k^T W_K^T W_Q b_k, the parts of a score. query_shared, query_contrast:
    a_k^T W_Q a_k and b_k^T W_Q b_k. head_shared, head_contrast: the largest |<w, c_k>| and |<w, d_k>| of a neuron.
    """
    a, b, c, d = data.dictionary().to(params["q"])
    merged = torch.einsum("...hi,...hj->...ij", params["k"], params["q"])

    def form(matrix: Tensor, v: Tensor) -> Tensor:
        return torch.einsum("ki,...ij,kj->...k", v, matrix, v)

    def largest(v: Tensor) -> Tensor:
        return torch.einsum("...mi,ki->...mk", params["o"], v).abs().amax(-2)

    return {"shared": form(merged, a), "contrast": form(merged, b),
            "query_shared": form(params["q"], a), "query_contrast": form(params["q"], b),
            "head_shared": largest(c), "head_contrast": largest(d)}


def right_attention(params: dict[str, Tensor], prompts: Prompts, data: ConceptPrompts) -> Tensor:
    """Mean attention on examples whose label is that of the query."""
    signs = torch.einsum("...bni,ki->...bn", prompts.context.y, data.dictionary()[3].to(prompts.query)).sign()
    weights = attention(params["q"], params["k"], prompts.context, prompts.query)
    return (weights * (signs * data.label_sign == prompts.target)).sum(-1).mean(-1)


def head_slope(params: Params, data: ConceptPrompts) -> tuple[Float[Tensor, "*E K"], Float[Tensor, "*E K"]]:
    """The head at the start: slope of its output in the label's contrast, and its share of active neurons."""
    _, _, c, d = data.dictionary().to(params["o"])
    on = (torch.einsum("...mi,ki->...mk", params["o"], c) > 0).to(params["o"])
    reads = torch.einsum("...mi,ki->...mk", params["o"], d)
    half = params["o"].shape[-2] // 2
    votes = (on * reads).unflatten(-2, (2, half)).sum(-2)
    return (votes[..., 0, :] - votes[..., 1, :]) / (2 * half), on.mean(-2)


@dataclass
class ReducedConcepts(PopulationProblem):
    r"""The exact training of a mirrored layer on all prompts without noise, as a problem for `flbook.fit`.

    Exact where :math:`b_k^\top W_K^\top W_Q a_k = 0` at the start, as from a multiple of the identity. Nothing of
    queries and keys matters then but :math:`S_k = |W_K b_k + W_Q b_k|^2` and :math:`T_k = |W_K b_k - W_Q b_k|^2`, whose
    difference is the score, :math:`b_k^\top W_K^\top W_Q b_k = (S_k - T_k)/4`, and nothing of the head but
    :math:`\langle w, c_k\rangle, \langle w, d_k\rangle`. Concepts do not see each other.
    With :math:`g_k` the derivative of the loss in the score, a step of gradient descent multiplies

    .. math:: \sqrt{S_k} \text{ by } 1 - \eta(\lambda + \|b_k\|^2 g_k), \qquad
              \sqrt{T_k} \text{ by } 1 - \eta(\lambda - \|b_k\|^2 g_k)

    and :math:`W_Q a_k, W_K a_k` by :math:`1 - \eta\lambda`.

    Parameters: ``plus`` and ``minus`` (the roots of S and T) and ``shared`` (the root of a_k^T W_K^T W_Q a_k, times its
    sign), shape ``(*E, K)``; ``c`` and ``d`` of the first half of the neurons, shape ``(*E, m/2, K)``.

    Source: derived in the book's lecture.
    """

    initial: Params
    data: ConceptPrompts
    decay: float | Tensor = 0.0

    @classmethod
    def of(cls, model: ConceptAttention, data: ConceptPrompts, decay: float | Tensor = 0.0) -> "ReducedConcepts":
        """Start where the layer starts."""
        a, b, c, d = data.dictionary().to(model.q)
        keys, queries = (torch.einsum("...hi,ki->...kh", part.detach(), b) for part in (model.k, model.q))
        merged = torch.einsum("...hi,...hj->...ij", model.k.detach(), model.q.detach())
        shared = torch.einsum("ki,...ij,kj->...k", a, merged, a)
        first = model.o.detach()[..., : model.o.shape[-2] // 2, :]
        initial = {"plus": (keys + queries).norm(dim=-1), "minus": (keys - queries).norm(dim=-1),
                   "shared": shared.sign() * shared.abs().sqrt(),
                   "c": torch.einsum("...mi,ki->...mk", first, c), "d": torch.einsum("...mi,ki->...mk", first, d)}
        lead = torch.broadcast_shapes(torch.as_tensor(decay).shape, initial["plus"].shape[:-1])
        own = {name: p.shape[model.q.ndim - 2 :] for name, p in initial.items()}
        return cls({name: p.expand(*lead, *own[name]) for name, p in initial.items()}, data, decay)

    def start(self) -> Params:
        """The state before training."""
        return {name: p.clone() for name, p in self.initial.items()}

    def score(self, params: Params) -> Float[Tensor, "*E K"]:
        """b_k^T W_K^T W_Q b_k of each concept."""
        return (params["plus"].square() - params["minus"].square()) / 4

    def loss(self, score: Tensor, c: Tensor, d: Tensor) -> Tensor:
        """Expected cross-entropy, summed over the concepts, shape (*E)."""
        n = self.data.n
        equal = torch.arange(int(self.data.contains), n + 1).to(score)
        log_ways = torch.lgamma(torch.tensor(n + 1.0)) - torch.lgamma(equal + 1) - torch.lgamma(n - equal + 1)
        ways = log_ways.exp()
        odds = (2 * score)[..., None]
        share = equal / (equal + (n - equal) * (-odds).exp())  # attention on labels equal to that of the query
        t = (2 * share - 1)[..., None, :, :]
        f = ((c[..., None] + t * d[..., None]).relu() - (c[..., None] - t * d[..., None]).relu()).mean(-3) / 2
        popular = self.data.skew ** torch.arange(score.shape[-1]).to(score)
        return ((logistic(f, torch.ones_like(f)) * ways / ways.sum()).sum(-1) * popular / popular.sum()).sum(-1)

    def slope(self, params: Params) -> Params:
        """The direction in which `flbook.GradientDescent` takes the exact step of the whole layer."""
        score = self.score(params).detach().requires_grad_()
        c, d = (params[name].detach().requires_grad_() for name in ("c", "d"))
        g, on_c, on_d = torch.autograd.grad(self.loss(score, c, d).sum(), (score, c, d))
        m = c.shape[-2]  # both mirrored neurons of a pair share the gradient; each moves m times (2m of them) its own
        rate, decay = self.data.contrast**2 * g, {name: per_member(self.decay, p) * p for name, p in params.items()}
        return {"plus": rate * params["plus"] + decay["plus"], "minus": -rate * params["minus"] + decay["minus"],
                "shared": decay["shared"],
                "c": self.data.shared**2 * m * on_c + decay["c"], "d": self.data.contrast**2 * m * on_d + decay["d"]}

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction, one a member."""
        return sum(p.square().flatten(direction["plus"].ndim - 1).sum(-1) for p in direction.values()).sqrt()
