r"""Sign descent, gradient descent and what lies between them on bigrams whose words follow Zipf's law.

Claim (Kunstner et al. 2023): on language, with all data in every step, Adam behaves like sign descent with momentum,
and normalising the gradient does not explain it. Claim (Kunstner et al. 2024): the words that are rare explain it.

Every rule has its best step on one grid, for each seed: two decades at eight steps a decade, around what the rule
needs, judged by the excess loss after the last step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural, NonNegative
from flbook.lectures.training_strategies.sign_descent.bigrams import Bigrams, BigramTraining
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import Adam, GradientDescent, Momentum, NormalisedDescent, SignDescent
from flbook.training.problem import Rule

MEMORY = 0.9
RULES: dict[str, tuple[Callable[..., Rule], float]] = {  # how it is made from a step size, and where its grid begins
    "gradient descent": (GradientDescent, 5.0),
    "momentum": (lambda lr: Momentum(lr, MEMORY), 5.0),
    "normalised": (NormalisedDescent, 0.5),
    "normalised with memory": (lambda lr: NormalisedDescent(lr, MEMORY), 0.05),
    "rows divided by p": (GradientDescent, 0.5),
    "rows divided by p, momentum": (lambda lr: Momentum(lr, MEMORY), 0.3),
    "sign descent": (SignDescent, 0.005),
    "sign descent with memory": (lambda lr: SignDescent(lr, MEMORY), 0.0007),
    "Adam": (Adam, 0.2),
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal[tuple(RULES)], ...] = axis(RULES, "rule")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    words: Count = 200  # V
    successors: Count = 5  # k
    power: NonNegative = 1.0  # of Zipf's law
    steps: Count = 200
    text: Count = 2000  # words of the text that stands for the law in `on_text`

    @property
    def data(self) -> Bigrams:
        """The law of the words."""
        return Bigrams(self.words, self.successors, self.power)

    def check(self) -> None:
        """Refuse a law that there is not."""
        _ = self.data


experiment = Experiment(
    Setting, version=1, loops=("rule",), chunk={"rule": 1},
    gives={"excess": ("excess loss", "nats"), "lr": ("best step size η", "1")},
    presets={
        "tiny": ("All rules in a blink", dict(seed=(0, 1), words=20, successors=3, steps=20)),
        "longer": ("Five times the words, twice the steps", dict(words=1000, steps=400)),
    },
)


def problem(setting: Setting, device: str = "cpu", dtype: torch.dtype = torch.float32) -> BigramTraining:
    """The training problems of all seeds."""
    return BigramTraining.of(setting.data, setting.seed).to(devices.device(device), dtype)


def grid(name: str) -> np.ndarray:
    """The steps among which a rule has its best."""
    return RULES[name][1] * 10 ** (np.arange(17) / 8)


def trained_on(name: str, training: BigramTraining) -> BigramTraining:
    """What a rule of this name sees: the rows divided by their frequencies, or the problem itself."""
    return training.levelled() if name.startswith("rows divided") else training


@experiment.shared()
def drawn(s: Setting, device: str) -> tuple[BigramTraining, BigramTraining]:
    """The problems as they are trained, and in float64 to judge by."""
    return problem(s, device), problem(s, device, torch.float64)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Excess loss of a rule at its best step, and that step."""
    training, exact = drawn(s, device)
    steps = torch.from_numpy(grid(s.rule)).to(exact.q)
    many = trained_on(s.rule, training).copies(len(steps))
    lr = steps.to(training.q)[:, None].expand(many.ensemble)
    params = fit(many, RULES[s.rule][0](lr), s.steps).params
    excess = exact.train_loss({"w": params["w"].double()}).nan_to_num(torch.inf)  # (lr, seed)
    return {"excess": excess.amin(0), "lr": steps[excess.argmin(0)]}


run = experiment.run


@experiment.also
def course(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Excess loss step by step, and that of every row at the end, each rule at its best step.

    Dimensions (step, rule, seed) and (rule, seed, word).
    """
    training, exact = problem(setting, device), problem(setting, device, torch.float64)
    tuned, histories, rows = experiment.measure(setting, device), [], []
    loss = Quantity("excess", lambda params: exact.train_loss({"w": params["w"].double()}), (), "excess loss", "nats")
    for name in setting.rule:
        lr = torch.tensor(tuned.lr.sel(rule=name).values).to(training.q)
        end = fit(trained_on(name, training), RULES[name][0](lr), setting.steps, [loss], ("seed",))
        histories.append(end.history)
        rows.append(exact.excess({"w": end.params["w"].double()}).cpu())
    joined = xr.concat(histories, "rule").transpose("step", "rule", "seed")
    words = ("word", range(1, setting.words + 1), {"long_name": "rank of the word", "units": "1"})
    ends = labelled({"row": (("rule", "seed", "word"), torch.stack(rows), "excess loss of the row", "nats")},
                    setting.coordinates("rule", "seed") | {"word": words})
    return joined.assign_coords(setting.coordinates("rule", "seed")).merge(ends).merge(tuned[["lr"]])


@experiment.also
def rows(setting: Setting, device: str = "cpu") -> xr.Dataset:
    r"""Excess loss of every row over steps, under gradient descent and sign descent; dimensions (step, seed, word).

    Gradient descent at :math:`\eta p_1 = 4`, at which no row's gradient can grow, and sign descent at 0.02.
    """
    training = problem(setting, device, torch.float64)
    at = sorted({0, *np.geomspace(1, setting.steps, 80).round().astype(int).tolist()})
    words = {"word": ("word", range(1, setting.words + 1), {"long_name": "rank of the word", "units": "1"})}
    excess, found = [Quantity("excess", training.excess, ("word",), "excess loss of the row", "nats")], {}
    for name, rule in {"descent": GradientDescent(4 / float(training.p[0])), "sign": SignDescent(0.02)}.items():
        found[name] = fit(training, rule, setting.steps, excess, ("seed",), at=at).history.excess
    return xr.Dataset(found).assign_coords(setting.coordinates("seed") | words)


@experiment.also
def on_text(setting: Setting, device: str = "cpu") -> xr.Dataset:
    r"""Training on a text in place of the law: excess loss on the law, of the whole and of every row.

    Gradient descent at :math:`\eta p_1 = 4` with the frequencies of the law, and sign descent at 0.02; dimensions
    (step, rule, seed) and (step, rule, seed, word). With them how often each word occurs, (seed, word).
    """
    law = problem(setting, device, torch.float64)
    training = BigramTraining.of_text(setting.data, setting.text, setting.seed).to(law.q)
    at = sorted({0, *np.geomspace(1, setting.steps, 100).round().astype(int).tolist()})
    watched = [
        Quantity("train_loss", training.train_loss, (), "excess loss on the text", "nats"),
        Quantity("excess", law.train_loss, (), "excess loss on the law", "nats"),
        Quantity("row", law.excess, ("word",), "excess loss of the row on the law", "nats"),
    ]
    rules = {"gradient descent": GradientDescent(4 / float(law.p[0])), "sign descent": SignDescent(0.02)}
    found = [fit(training, rule, setting.steps, watched, ("seed",), at=at).history for rule in rules.values()]
    words = {"word": ("word", range(1, setting.words + 1), {"long_name": "rank of the word", "units": "1"})}
    joined = xr.concat(found, "rule").assign_coords(
        {"rule": list(rules)} | setting.coordinates("seed") | words)  # fmt: skip
    often = (training.p * setting.text).round().cpu()
    return joined.assign(often=(("seed", "word"), often, {"long_name": "occurrences of the word", "units": "1"}))


def best_stop(excess: xr.DataArray) -> xr.DataArray:
    """The step of the least mean over the seeds, for each rule."""
    return excess.step.isel(step=excess.mean("seed").argmin("step")).drop_vars("step")


def half_time(excess: xr.DataArray) -> xr.DataArray:
    """The step at which a row has lost half its excess, interpolated; dimensions (seed, word)."""
    below = excess <= excess.isel(step=0) / 2
    if not bool(below.any("step").all()):
        raise ValueError("excess must fall to half in every row; train for more steps")
    last = below.argmax("step")
    high, low = excess.isel(step=last - 1), excess.isel(step=last)
    share = (high - excess.isel(step=0) / 2) / (high - low)
    return (high.step + share * (low.step - high.step)).drop_vars("step")
