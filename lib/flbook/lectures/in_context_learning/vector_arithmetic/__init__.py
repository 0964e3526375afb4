r"""Factual recall by a task vector: trained on questions, or on in-context prompts, and tested on the latter.

Claims (Bu et al. 2025): a layer trained on questions answers in-context prompts by adding a task vector to the query,
:math:`h = \mathrm{LN}(h_0) + x_q` with :math:`h_0` along :math:`a_k`; trained on in-context prompts it mixes
:math:`a_k` with the low-level :math:`b_k` and keeps an error. Measured here: how much it mixes depends on the number of
examples in the training prompts, and on where the scores start.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall, RecallPrompts
from flbook.lectures.in_context_learning.vector_arithmetic.recall import RecallPretraining, recall_parameters
from flbook.lectures.in_context_learning.vector_arithmetic.task_attention import (
    LinearRecall,
    TaskVectorAttention,
    read_out,
    unit,
)
from flbook.runs import Experiment, Grid, among, axis, labelled, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import Trained, fit
from flbook.training.optimizers import GradientDescent

Scores = Literal["identity", "frozen", "random", "zero"]
SCORES = get_args(Scores)  # queries and keys start at a multiple of I, stay there, start small and random, or at 0
SIGNS = ("independent", "opposite")  # signs of the examples, given that of the query
CELLS = ("noise", "shown", "scores", "seed")
ABOUT = {"value_task": "a·W_V a", "value_fact": "b·W_V b", "score_task": "a·M a", "score_fact": "b·M b"}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: six concepts, one noise level."""

    noise: tuple[NonNegative, ...] = axis([0.05], "noise σ_ξ")
    shown: tuple[Natural, ...] = axis([0, 1, 2, 4, 8], "examples of a training prompt")  # 0: a question
    scores: tuple[Scores, ...] = axis(["identity"], "start of the scores")
    examples: tuple[Count, ...] = axis([1, 2, 4, 8, 16], "examples J")  # of the test prompts
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    concepts: Count = 6  # K
    common: Count = 12
    d: Count = 32
    start: NonNegative = 0.5  # queries and keys start at this multiple of the identity
    small: NonNegative = 0.05  # or with random entries of this standard deviation
    decay: NonNegative = 1e-3
    lr: Positive = 1.0
    steps: Natural = 250
    batch: Count = 48
    points: Count = 300  # prompts of a test
    every: Count = 5  # steps between two looks at the order parameters

    def check(self) -> None:
        """Refuse more directions than the space has."""
        self.data(self.noise[0])

    def data(self, noise: float) -> FactualRecall:
        """The data model at one noise level."""
        return FactualRecall(self.concepts, self.common, self.d, noise=noise)


experiment = Experiment(
    Setting, version=2, loops=("noise", "shown", "scores"), left=("seed", "examples"), chunk={"noise": 1},
    stored="longer",
    gives={
        "error": ("test error", "fraction", ("noise", "shown", "scores", "seed", "signs", "examples")),
        "question_error": ("error on questions", "fraction", CELLS),
        "cos_task": ("overlap of the task vector with a", "1", CELLS),
        "cos_fact": ("its overlap with b", "1", CELLS),
        "fact_size": ("|b·W_V b| over a·W_V a", "1", CELLS),
        "fact_sign": ("share of facts stored with the sign of their score", "fraction", CELLS),
    },
    beside={"signs": (SIGNS, "signs of the examples")},
    presets={
        "tiny": ("Three concepts, without noise and with some, four steps", dict(
            noise=(0.0, 0.1), examples=(1, 3), seed=(0, 1), concepts=3, common=3, d=9, shown=(0, 2),
            scores=SCORES, steps=4, batch=8, points=40, every=2)),
        "longer": ("More concepts in a larger space, two noise levels, two starts, more training", dict(
            noise=(0.05, 0.15), shown=(0, 8), scores=("identity", "random"), concepts=16, d=64, common=24,
            start=0.3, lr=2.0, steps=800, batch=64, every=100)),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | xr.DataArray]:
    """Train one layer of each seed, and test it; its order parameters on the way.

    `cos_task` and `cos_fact` are the overlaps of the task vector with a_k, and in absolute value with b_k, on prompts
    of eight examples; `question_error` is the error on questions. `fact_size` and `fact_sign` are what `stored_facts`
    finds.
    """
    data, task = s.data(s.noise), problem(s, s.noise, s.shown, device, scores=s.scores)
    params, history = followed(task, s)
    asked = data.questions(s.points, s.seed, 2**30)
    shown = data.in_context(s.points, 8, s.seed, 2**30)
    vector = task_vector(task, params, shown)
    task_overlap, fact_overlap = ((vector * of.to(vector)[shown.task]).sum(-1) for of in (data.tasks, data.facts))
    size, sign = stored_facts(params, data)
    return {name: history[name] for name in ABOUT} | {
        "error": table(s, s.noise, partial(task.predict, params)),
        "question_error": error(task.predict(params, asked), asked),
        "cos_task": task_overlap.mean(-1),
        "cos_fact": fact_overlap.abs().mean(-1),
        "fact_size": size,
        "fact_sign": sign,
    }


run = experiment.run


def problem(
    setting: Setting, noise: float, shown: int, device: str = "cpu", model=None, scores: str = "identity", **change
) -> RecallPretraining:
    """Pretraining of all seeds at one noise level, on prompts of so many examples; on questions if there are none."""
    among("scores", (scores,), SCORES)
    layer = started(setting, scores) if model is None else model
    given = {"decay": setting.decay, "device": device, "examples": shown or None}
    given |= {"trained": ("v",)} if scores == "frozen" else {}
    return RecallPretraining(layer.to(devices.device(device)), setting.data(noise), setting.seed, setting.batch,
                             **(given | change))


def started(setting: Setting, scores: str) -> TaskVectorAttention:
    """The layer before training, with one of the starts of queries and keys; from 0 these two never move."""
    layer = TaskVectorAttention(setting.d, 0.0 if scores == "zero" else setting.start, seed=setting.seed)
    if scores == "random":
        for name, weight in (("queries", layer.q), ("keys", layer.k)):
            weight.data = (setting.small * rng.normal((setting.d, setting.d), setting.seed, name)).to(weight)
    return layer


def trained(task: RecallPretraining, setting: Setting) -> dict[str, Tensor]:
    """The parameters after training."""
    return fit(task, GradientDescent(setting.lr), setting.steps).params


def followed(task: RecallPretraining, setting: Setting) -> Trained:
    """The same with the order parameters on the way."""
    def follow(name):
        return Quantity(name, lambda params: recall_parameters(params, task.data)[name], (), ABOUT[name])

    at = range(0, setting.steps + 1, setting.every)
    return fit(task, GradientDescent(setting.lr), setting.steps, list(map(follow, ABOUT)), ("seed",), at)


def stored_facts(params: dict[str, Tensor], data: FactualRecall) -> tuple[Tensor, Tensor]:
    """Mean size of b·W_V b over that of a·W_V a, and the share of facts with b·W_V b and b·M b of equal sign; (*E,)."""
    merged, facts = torch.einsum("...hi,...hj->...ij", params["k"], params["q"]), data.facts.to(params["v"])
    value, score = (torch.einsum("ki,...ij,kj->...k", facts, matrix, facts) for matrix in (params["v"], merged))
    size = value.abs().mean(-1) / recall_parameters(params, data)["value_task"]
    return size, (value * score > 0).to(value).mean(-1)


def tests(setting: Setting, noise: float) -> dict[tuple[str, int], RecallPrompts]:
    """Fresh in-context prompts by the signs and the number of their examples; no training reaches their step."""
    data = setting.data(noise)
    return {(signs, count): data.in_context(setting.points, count, setting.seed, 2**30, signs == "opposite")
            for signs in SIGNS for count in setting.examples}


def error(logits: Tensor, prompts: RecallPrompts) -> Tensor:
    """Share of prompts whose right answer does not have the largest logit; a tie of m answers is right in 1/m."""
    return mistakes(logits, prompts).mean(-1)


def mistakes(logits: Tensor, prompts: RecallPrompts) -> Tensor:
    """The same of each prompt: 1, 0, or a share where answers tie."""
    top = logits == logits.amax(-1, keepdim=True)
    right = top.gather(-1, prompts.answer[..., None].to(top.device)).squeeze(-1)
    return 1 - right.float() / top.float().sum(-1)


def table(setting: Setting, noise: float, outputs) -> Tensor:
    """Errors of a function of prompts, shape (seed, signs, examples)."""
    rows = [error(outputs(prompts), prompts) for prompts in tests(setting, noise).values()]
    return torch.stack(rows, -1).unflatten(-1, (len(SIGNS), len(setting.examples)))


def task_vector(task: RecallPretraining, params: dict[str, Tensor], prompts: RecallPrompts) -> Tensor:
    """LN(h_0) on prompts, shape (seed, batch, d)."""
    model = task.model
    return torch.func.functional_call(_Vector(model), {f"layer.{name}": p for name, p in params.items()},
                                      (prompts.tokens.to(params["v"]), prompts.query.to(params["v"])))


class _Vector(torch.nn.Module):
    """The same layer, asked for its task vector."""

    def __init__(self, layer: TaskVectorAttention):
        super().__init__()
        self.layer = layer

    def forward(self, tokens: Tensor, query: Tensor) -> Tensor:
        return self.layer.task_vector(tokens, query)


def _layer(shown: int, model=None, **change):
    """Outputs of a trained layer, as a function of prompts."""
    def outputs(setting, noise, device):
        layer = None if model is None else model(setting)
        task = problem(setting, noise, shown, device, layer, **change)
        return partial(task.predict, trained(task, setting))
    return outputs


def _fixed(vector):
    """Outputs of an untrained rule: the query plus a function of the prompt's words and answers."""
    def outputs(setting, noise, device):
        answers = setting.data(noise).answers
        return lambda prompts: read_out(prompts.query + vector(*prompts.tokens.chunk(2, -2)), answers)
    return outputs


def _linear(setting: Setting) -> LinearRecall:
    return LinearRecall(setting.d, 2 * setting.concepts, (len(setting.seed),))


# What is compared: functions of (setting, noise, device) that return logits as a function of prompts
MODELS = {
    "uniform, questions": _layer(0, scores="zero"),
    "linear, examples": _layer(8, model=_linear),
    "scores only": _layer(0, trained=("q", "k")),
    "scores, identity values": _layer(0, model=lambda s: _identity(s), trained=("q", "k")),
    "residual only": _fixed(lambda words, answers: 0),
    "word arithmetic": _fixed(lambda words, answers: (answers - words).mean(-2)),
    "mean token": _fixed(lambda words, answers: unit((answers + words).mean(-2))),
}


def _identity(setting: Setting) -> TaskVectorAttention:
    """Values at the identity, so that attention reads out the tokens themselves."""
    layer = TaskVectorAttention(setting.d, setting.start, seed=setting.seed)
    layer.v.data = torch.eye(setting.d).expand_as(layer.v).clone()
    return layer


SUM = "sum of all"


def _around_the_sum(tasks: Tensor) -> Tensor:
    """Orthonormal directions with the span of the tasks, the first of which is their sum over its length."""
    basis, triangle = torch.linalg.qr(torch.cat([tasks.sum(0, keepdim=True), tasks[1:]]).T)
    return (basis * triangle.diagonal().sign()).T


def moves(data: FactualRecall) -> dict[str, Tensor]:
    """Linear maps of space that give every task or fact another direction; shapes (d, d), rows are images of axes."""
    tasks, k = data.tasks, data.concepts
    unused = torch.eye(data.d)[-k:]
    if data.d < 3 * k + data.common:
        raise ValueError(f"d must be at least {3 * k + data.common}, for directions that nothing uses; got {data.d}")
    sums = {m: sum(tasks.roll(-i, 0) for i in range(m)) / m**0.5 for m in range(2, k)}
    images = {
        "as trained": (tasks, data.facts),
        "unseen facts": (tasks, unused),
        "differences": ((tasks - tasks.roll(-1, 0)) / 2**0.5, data.facts),
        **{f"sums of {m}": (sums[m], data.facts) for m in sums},
        SUM: (_around_the_sum(tasks), data.facts),
        "new directions": (unused, data.facts),
    }
    rest = torch.eye(data.d)[2 * k :]
    return {name: torch.cat([*pair, rest]) for name, pair in images.items()}


def transferred(task: RecallPretraining, params: dict[str, Tensor], setting: Setting, examples: int) -> xr.DataArray:
    """Errors where tasks or facts have moved, in prompts and answers alike; dimensions (moved, seed).

    For the sum of all tasks they are those of the prompts that ask for it, the first task.
    """
    prompts = task.data.in_context(setting.points, examples, setting.seed, 2**30 + 1)
    rows = {}
    for name, to in moves(task.data).items():
        seen = (prompts.tokens @ to, prompts.query @ to, task.data.answers @ to)
        logits = torch.func.functional_call(task.model, params, tuple(part.to(params["v"]) for part in seen))
        counted = (prompts.task == 0 if name == SUM else prompts.task >= 0).to(logits)
        rows[name] = (mistakes(logits, prompts) * counted).sum(-1) / counted.sum(-1)
    axes = setting.coordinates("seed") | {"moved": ("moved", list(rows), "moved")}
    return labelled({"error": (("moved", "seed"), list(rows.values()), "test error", "fraction")}, axes).error


def common_part(params: dict[str, Tensor], data: FactualRecall) -> tuple[Tensor, Tensor]:
    r"""The two numbers r, w of :math:`W_Va_k \approx r\,a_k + w\sum_ja_j`, by means over the tasks; shapes (*E,)."""
    k, tasks = data.concepts, data.tasks.to(params["v"])
    block = torch.einsum("ki,...ij,lj->...kl", tasks, params["v"], tasks)
    diagonal = block.diagonal(dim1=-2, dim2=-1).mean(-1)
    w = (block.sum((-2, -1)) / k - diagonal) / (k - 1)
    return diagonal - w, w


def without_common_part(params: dict[str, Tensor], data: FactualRecall) -> dict[str, Tensor]:
    """The parameters with w taken off the values of all tasks."""
    ones, (_, w) = data.tasks.to(params["v"]).sum(0), common_part(params, data)
    return params | {"v": params["v"] - w[..., None, None] * torch.outer(ones, ones)}


def pulls(
    data: FactualRecall, prompts: RecallPrompts, start: float = 0.5, spread: float = 0.01, seed: int = 0
) -> Tensor:
    r"""Pull of values to the asked task at a random start, one draw of the values for each of n questions; shape (n,).

    It is :math:`-(a_k - a_j)^\top\partial_{W_V}L\,a_k` with the query's other concept j.
    """
    n, d = prompts.query.shape
    same = torch.eye(d).expand(n, d, d)
    k = prompts.task
    others = (prompts.query @ data.facts.T).abs().scatter(-1, k[:, None], 0).argmax(-1)
    layer = TaskVectorAttention(d, start)
    layer.v.data = spread * rng.normal((n, d, d), seed, "values of each prompt").float()
    layer.k.data, layer.q.data = start * same.clone(), start * same.clone()
    logits = layer(prompts.tokens[:, None], prompts.query[:, None], data.answers)
    loss = torch.nn.functional.cross_entropy(logits[:, 0], prompts.answer, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, (layer.v,))
    return torch.einsum("ni,nij,nj->n", data.tasks[k] - data.tasks[others], -gradient, data.tasks[k])


def rivals(setting: Setting, device: str = "cpu", names: tuple[str, ...] = tuple(MODELS)) -> xr.Dataset:
    """Errors on in-context prompts; dimensions (noise, model, seed, signs, examples)."""
    among("names", names, MODELS)
    values = [table(setting, noise, MODELS[name](setting, noise, device)) for noise in setting.noise for name in names]
    axes = setting.coordinates("noise", "seed", "examples")
    axes |= {"model": ("model", list(names), "model"), "signs": ("signs", list(SIGNS), "signs of the examples")}
    dims = ("noise", "model", "seed", "signs", "examples")
    return labelled({"error": (dims, values, "test error", "fraction")}, axes)
