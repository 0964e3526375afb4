r"""Concept prompts: what queries, keys and the head of one attention layer learn, and where what they learned holds.

Claims (Bu et al. 2024): at convergence attention has learned what tells the words of a concept apart and not what they
share, :math:`a_k^\top W_Q a_k \approx 0` and :math:`b_k^\top W_Q b_k = \Omega(1)`, the head has learned both parts of
the labels; the 0-1 loss converges exponentially; and the layer answers prompts of other lengths and other concepts.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.data.prompts import Prompts
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.lectures.in_context_learning.concept_prompts.concept_attention import (
    ConceptAttention,
    KnownConcepts,
    PromptAverages,
    SimilarWords,
    check_head,
)
from flbook.lectures.in_context_learning.concept_prompts.concept_dynamics import (
    ConceptPretraining,
    EveryPrompt,
    LazyConceptPretraining,
    ReducedConcepts,
    head_slope,
    order_parameters,
    right_attention,
)
from flbook.lectures.in_context_learning.concept_prompts.concept_errors import basin
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts
from flbook.runs import Experiment, Grid, among, axis, labelled, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

# Prompts that a layer is tested on; where nothing else is said, some label is that of the query, as is answerable.
TESTS = {
    "as trained": {},
    "1 example": {"n": 1},
    "2 examples": {"n": 2},
    "32 examples": {"n": 32},
    "rare concepts": {"skew": 0.3},
    "recombined": {"recombined": True},
    "words switched": {"word_sign": -1},
    "labels switched": {"label_sign": -1},
}
ABOUT = {"shared": "score of what is shared, a·M a", "contrast": "score of what differs, b·M b",
         "query_shared": "a·W_Q a", "query_contrast": "b·W_Q b",
         "head_shared": "largest |⟨w, c⟩|", "head_contrast": "largest |⟨w, d⟩|"}
CHEAP = ("nearest word", "similarity", "linear")  # of the rivals, MODELS below


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: little noise, with and without decay."""

    noise: tuple[NonNegative, ...] = axis([0.05], "noise σ_ξ")
    decay: tuple[NonNegative, ...] = axis([0.0, 0.002], "weight decay λ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    concepts: Count = 4  # K
    n: Count = 8  # examples of a prompt
    d: Count = 32  # dimension of a word
    m: Count = 64  # neurons of the head
    start: float = 0.3  # queries and keys start at this multiple of the identity
    spread: NonNegative = 0.0  # and this much randomness
    head: NonNegative = 0.1  # standard deviation of the head's weights at the start
    lr: Positive = 2.0
    steps: Natural = 400
    batch: Count = 64  # fresh prompts a step
    points: Count = 500  # fresh prompts of a test

    def check(self) -> None:
        """Refuse prompts and layers that cannot be built."""
        self.prompts(self.noise[0])
        check_head(self.m)

    def prompts(self, noise: float, **change) -> ConceptPrompts:
        """The data model at one noise level; the concept number has no say in it."""
        return ConceptPrompts(**({"concepts": self.concepts, "n": self.n, "d": self.d, "noise": noise} | change))


TESTED = ("noise", "decay", "seed", "test")
experiment = Experiment(
    Setting, version=1, loops=("noise",), chunk={"noise": 1}, stored="longer",
    gives={name: (text, "1") for name, text in ABOUT.items()} | {
        "error": ("test error", "fraction", TESTED),
        "right_attention": ("attention on right labels", "fraction", TESTED),
        "rival_error": ("test error", "fraction", ("noise", "model", "seed")),
    },
    beside={"test": (TESTS, "test", "1"), "model": (CHEAP, "model", "1")},
    presets={
        "tiny": ("Three concepts in the fewest dimensions but two, five steps", dict(
            noise=(0.0, 0.1), decay=(0.0, 0.01), seed=(0, 1), concepts=3, n=4, d=8, m=8, steps=5, batch=8, points=20)),
        "longer": ("Six noise levels in twice the dimension", dict(
            noise=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5), d=64, seed=tuple(range(12)), points=1000)),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train at one noise level: errors and attention by test, order parameters, errors of the cheap rivals."""
    task = problem(s, s.noise, device)
    params = fit(task, GradientDescent(s.lr), s.steps).params
    tests = [(test_prompts(s, s.noise, device, **change), s.prompts(s.noise, **change)) for change in TESTS.values()]
    found = {name: values.mean(-1) for name, values in order_parameters(params, task.data).items()}
    return found | {
        "error": torch.stack([error(task.predict(params, one), one) for one, _ in tests], -1),
        "right_attention": torch.stack([right_attention(params, *pair) for pair in tests], -1),
        "rival_error": torch.stack(rival_errors(s, s.noise, device, CHEAP, ("as trained",))),
    }


run = experiment.run


def network(setting: Setting, device: str = "cpu", **change) -> ConceptAttention:
    """The layers of all seeds before training."""
    given = {name: getattr(setting, name) for name in ("d", "m", "start", "spread", "head", "seed")} | change
    return ConceptAttention(**given).to(devices.device(device))


def problem(setting: Setting, noise: float, device: str = "cpu", **change) -> ConceptPretraining:
    """Pretraining on fresh batches at one noise level; ensemble axes (decay, seed)."""
    decay = torch.tensor(setting.decay, device=devices.device(device))[:, None]
    given = {"batch": setting.batch, "decay": decay, "device": device} | change
    return ConceptPretraining(network(setting, device), setting.prompts(noise), setting.seed, **given)


def test_prompts(setting: Setting, noise: float, device: str = "cpu", **change) -> Prompts:
    """Fresh prompts for every seed; no training reaches their step."""
    data = setting.prompts(noise, **({"contains": True} | change))
    return data.draw(setting.points, setting.seed, 2**30, device)


def error(outputs: Tensor, prompts: Prompts) -> Tensor:
    """Share of prompts whose sign is missed; an output of 0 is half a miss."""
    return (1 - (outputs * prompts.target[..., 0]).sign()).mean(-1) / 2


def quantities(task: ConceptPretraining, prompts: Prompts) -> list[Quantity]:
    """What the lecture follows on test prompts: error, loss, attention, the order parameters and the merged matrix."""
    def loss(params):
        return torch.nn.functional.softplus(-task.predict(params, prompts) * prompts.target[..., 0]).mean(-1)

    def merged(params):
        axes = 2 * task.data.concepts
        return torch.einsum("...hi,...hj->...ij", params["k"], params["q"])[..., :axes, :axes]

    def follow(name):
        return Quantity(name, lambda params: order_parameters(params, task.data)[name], ("concept",), ABOUT[name])

    return [
        Quantity("error", lambda params: error(task.predict(params, prompts), prompts), (), "test error", "fraction"),
        Quantity("loss", loss, (), "test loss", "nats"),
        Quantity("right_attention", lambda params: right_attention(params, prompts, task.data), (),
                 "attention on right labels", "fraction"),
        *map(follow, ABOUT),
        Quantity("merged", merged, ("row", "column"), "merged matrix M"),
    ]


def race(setting: Setting, device: str = "cpu", at: list[int] | None = None) -> xr.Dataset:
    """Everything of `quantities` while training, at the first noise level; dimensions (step, decay, seed)."""
    task = problem(setting, setting.noise[0], device)
    prompts = test_prompts(setting, setting.noise[0], device)
    rule = GradientDescent(setting.lr)
    history = fit(task, rule, setting.steps, quantities(task, prompts), ("decay", "seed"), at).history
    return history.assign_coords(setting.coordinates("decay", "seed"))


def reduced(setting: Setting, at: list[int] | None = None) -> xr.Dataset:
    """The same without noise, for a mirrored head and all prompts at once: the closed dynamics, in float64."""
    data = replace(setting.prompts(0.0), d=2 * setting.concepts)
    layer = network(replace(setting, d=data.d), mirrored=setting.concepts, dtype=torch.float64)
    task = ReducedConcepts.of(layer, data, torch.tensor(setting.decay, dtype=torch.float64)[:, None])
    followed = [
        Quantity("contrast", task.score, ("concept",), ABOUT["contrast"]),
        Quantity("shared", lambda p: p["shared"].square() * p["shared"].sign(), ("concept",), ABOUT["shared"]),
        Quantity("loss", lambda p: task.loss(task.score(p), p["c"], p["d"]), (), "expected loss", "nats"),
    ]
    history = fit(task, GradientDescent(setting.lr), setting.steps, followed, ("decay", "seed"), at).history
    return history.assign_coords(setting.coordinates("decay", "seed"))


def basins(setting: Setting, start: tuple[float, ...], lengths: tuple[int, ...] = (8, 3, 2, 1)) -> xr.Dataset:
    """Which sign each concept ends with, after training on all prompts from starts with more and more of the identity.

    `wrong` and `predicted` are 1 where attention looks at labels opposite to the query's, as trained and by the
    criterion at the start, `before` is the score there, over (start, seed, concept); `error` is that over all
    answerable prompts of n examples, over (start, seed, concept, n). No noise, no decay.
    """
    data = replace(setting.prompts(0.0), d=2 * setting.concepts)
    layers = [network(replace(setting, d=data.d, start=one), dtype=torch.float64) for one in start]
    layer = layers[0]
    for name in ("q", "k", "o"):
        setattr(layer, name, torch.nn.Parameter(torch.stack([getattr(one, name).detach() for one in layers])))
    task, before = EveryPrompt(layer, data), ReducedConcepts.of(layer, data).start()
    task_score = ((before["plus"] ** 2 - before["minus"] ** 2) / 4).numpy()
    slope, active = head_slope(task.start(), data)
    guess = basin(*(part.numpy() for part in (before["plus"], before["minus"], slope, active)), data.contrast)
    params = fit(task, GradientDescent(setting.lr), setting.steps).params
    final = order_parameters(params, data)["contrast"].numpy()
    missed = [task.error_by_concept(params, replace(data, n=n, contains=True)).numpy() for n in lengths]
    dims = ("start", "seed", "concept")
    return labelled(
        {"contrast": (dims, final, ABOUT["contrast"]), "wrong": (dims, (final < 0) * 1.0, "looks at wrong labels"),
         "before": (dims, task_score, "score at the start"),
         "predicted": (dims, (guess < 0) * 1.0, "predicted to look at wrong labels"),
         "error": ((*dims, "n"), np.stack(missed, -1), "test error")},
        {"start": ("start", list(start), "share of the identity at the start"),
         "n": ("n", list(lengths), "examples in a prompt n"), "seed": ("seed", list(setting.seed), "seed")},
    )  # fmt: skip


def _trained(setting: Setting, noise: float, device: str, kind: type = ConceptPretraining, model=None, **change):
    """Outputs of a trained rival, as a function of prompts; without weight decay."""
    layer = network(setting, device) if model is None else model.to(devices.device(device))
    task = kind(layer, setting.prompts(noise), setting.seed, setting.batch, device=device, **change)
    params = fit(task, GradientDescent(setting.lr), setting.steps).params
    return lambda prompts: task.predict(params, prompts)


def _copying(setting: Setting, noise: float, device: str, scale: float | None):
    """A rule that is not trained and knows the label code."""
    rule = SimilarWords(setting.prompts(noise).dictionary()[3].sum(0).to(devices.device(device)), scale)
    return lambda prompts: rule(*prompts[:2])[..., 0]


def _knowing(setting: Setting, noise: float, device: str):
    """A rule that is not trained and knows all directions."""
    rule = KnownConcepts(setting.prompts(noise).dictionary().to(devices.device(device)))
    return lambda prompts: rule(*prompts[:2])[..., 0]


# What is compared: functions of (setting, noise, device) that return outputs as a function of prompts
MODELS = {
    "attention": _trained,
    "nearest word": lambda *given: _copying(*given, None),
    "similarity": lambda *given: _copying(*given, 2.0),
    "knows the concepts": _knowing,
    "linear": lambda s, noise, device: _trained(s, noise, device, model=PromptAverages(s.d, (len(s.seed),))),
    "lazy": lambda *given: _trained(*given, kind=LazyConceptPretraining),
    "frozen": lambda *given: _trained(*given, trained=("o",)),
}

def rivals(setting: Setting, device: str = "cpu", names: tuple[str, ...] = tuple(MODELS),
           tests: tuple[str, ...] = ("as trained", "words switched")) -> xr.Dataset:
    """Test errors of models that see the same batches; dimensions (noise, model, test, seed)."""
    among("names", names, MODELS)
    rows = [row for noise in setting.noise for row in rival_errors(setting, noise, device, names, tests)]
    return labelled({"error": (("noise", "model", "test", "seed"), rows, "test error", "fraction")},
                    setting.coordinates("noise", "seed") | _words(model=names, test=tests))


def rival_errors(setting: Setting, noise: float, device: str, names: tuple[str, ...], tests: tuple[str, ...]) -> list:
    """Test errors at one noise level, one row for every (model, test)."""
    prompts, rows = [test_prompts(setting, noise, device, **TESTS[test]) for test in tests], []
    for name in names:
        outputs = MODELS[name](setting, noise, device)
        rows += [error(outputs(one), one) for one in prompts]
    return rows


def _words(**axes: tuple[str, ...]) -> dict[str, tuple]:
    return {name: (name, list(values), name) for name, values in axes.items()}
