r"""Fine-tuning all weights of trained networks, each copy on the examples of one prompt, by Adam or gradient descent.

Measured, without a theorem: what is left at the query when a copy has fitted the examples of its prompt? Step size and
number of steps are chosen on other tasks than those of the test.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from flbook.data.prompts import LinearPrompts, Prompts, map_tensors
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning import what_is_icl
from flbook.lectures.in_context_learning.what_is_icl import training_laws
from flbook.lectures.in_context_learning.what_is_icl.adaptation import fine_tune
from flbook.models.start import with_start
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.optimizers import Adam, GradientDescent

Rule = Literal["Adam", "gradient descent"]
Tasks = Literal["held out", "test"]
USES = get_args(Tasks)
RULES = {"Adam": (Adam, 1e-4), "gradient descent": (GradientDescent, 3e-3)}  # with the unit of their step sizes
BASE = training_laws.base(training_laws.experiment.setting("longer"))
LOOKS = (0, 1, 2, 3, 5, 10, 20, 40, 100, 200, 300, 1000, 2000, 4000)  # steps after which the copies are asked


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; the networks are those of `training_laws`. In the book: one step size."""

    rule: tuple[Rule, ...] = axis(get_args(Rule), "rule")
    size: tuple[Positive, ...] = axis((1.0,), "step size over 1e-4 (Adam) or 3e-3 (gradient descent)")
    tasks: tuple[Tasks, ...] = axis(USES, "tasks")
    seed: tuple[Natural, ...] = axis(range(2), "seed")  # of the network and of its prompts
    k: Count = 6  # examples of a prompt
    held_out: Count = 4  # prompts of a seed on which step size and number of steps are chosen
    points: Count = 4  # prompts of a seed for the test
    steps: Count = 100


def looks(s: Setting) -> np.ndarray:
    """Steps after which the copies are asked."""
    return np.array([t for t in LOOKS if t <= s.steps])


experiment = Experiment(
    Setting, version=1, loops=("rule", "size"), left=("tasks", "seed"), chunk={"rule": 1, "size": 1}, stored="longer",
    gives={
        "error": (*what_is_icl.ERROR[:2], ("rule", "size", "tasks", "seed", "step")),
        "loss": ("mean squared error on the examples / variance of the answer", "1",
                 ("rule", "size", "tasks", "seed", "step")),
    },
    beside={"step": (looks, "step of fine-tuning")},
    presets={
        "tiny": ("One prompt for each use, three steps", dict(held_out=1, points=1, steps=3)),
        "longer": ("Three step sizes for each rule, ten networks, until little moves", dict(
            size=(1.0, 3.0, 10.0), seed=tuple(range(10)), held_out=10, points=30, steps=300)),
        "long": ("Thirteen times as many steps of a third of the smallest size, on fewer prompts", dict(
            size=(0.3,), tasks=("test",), seed=tuple(range(10)), steps=4000)),
    },
)  # fmt: skip
experiment.kept(single_precision)


def counts(s: Setting) -> dict[str, int]:
    """Prompts of a seed, by their use."""
    return {use: s.held_out if use == "held out" else s.points for use in s.tasks}


@experiment.shared()
def drawn(s: Setting, device: str) -> tuple[PromptTransformer, Prompts]:
    """The trained networks, one for each seed, and the prompts of a seed: those of one use after the other."""
    network = training_laws.opened(s.seed).to(device)
    law = LinearPrompts(s.k, network.d)
    uses = [law.draw(count, s.seed, USES.index(use), device, torch.float32) for use, count in counts(s).items()]
    return network, map_tensors(uses[0], lambda *parts: torch.cat(parts, 1), *uses[1:])


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Copies under one rule at one step size; one copy for each prompt."""
    network, prompts = drawn(s, device)
    total = prompts.target.shape[1]
    rule, unit = RULES[s.rule]
    copies = copies_of(network, total).to(device)
    flat = map_tensors(prompts, lambda t: t.flatten(0, 1))
    history = fine_tune(copies, flat, rule(s.size * unit), s.steps, looks(s).tolist()).history

    def by_seed(values: torch.Tensor) -> torch.Tensor:
        """Means over the prompts of a seed and a use, over the variance d of an answer."""
        uses = values.unflatten(0, (len(s.seed), total)).split(list(counts(s).values()), 1)
        return torch.stack([part.mean(1) for part in uses]) / network.d

    return {name: by_seed(torch.from_numpy(history[name].transpose("prompt", "step").values))
            for name in ("error", "loss")}


def copies_of(network: PromptTransformer, count: int) -> PromptTransformer:
    """As many copies of each network of an ensemble, member by member."""
    fresh = what_is_icl.untrained(BASE, tuple(range(count * len(network.gpt.position))))
    return with_start(fresh, {name: p.detach().repeat_interleave(count, 0) for name, p in network.named_parameters()})


run = experiment.run
