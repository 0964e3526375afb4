r"""Training features below attention: joint, static and modified dynamics; dead features, too few features, new tasks.

Claims (Kim and Suzuki 2024, section 6 and Figure 1): attention trained together with the features behaves like the
static dynamics, which has it at its optimum; both reach zero loss. From a degenerate start only the modified dynamics
does. With more true features than learned ones a floor is left. Tasks outside the span of the true features are read as
well as their projection on that span (Proposition 2.3). Every step of training sees a new prompt. How fast attention
has to be is measured in `joint_training`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive, Probability
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.lectures.in_context_learning.shared.modified_flow import Modified, descend
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Context

Case = Literal["matched", "dead", "seven", "weak"]
Model = Literal["attention", "static", "modified"]
CASES, MODELS = get_args(Case), get_args(Model)
TASKS = ("max", "square")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: 64 neurons, 400 prompts of 128 examples, seconds on one core.
    """

    case: tuple[Case, ...] = axis(["matched", "dead", "weak"], "case")  # as many true features as learned; two learned
    # ones dead at the start; a true feature of variance 0.01; or, "seven", two true ones too many
    model: tuple[Model, ...] = axis(["static", "modified"], "model")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    m: Count = 64  # neurons
    k: Count = 5  # learned features
    d: Count = 20  # inputs
    n: Count = 128  # examples of a prompt
    fresh: bool = True  # every step sees a new prompt; or all the same one
    points: Count = 400  # pairs (x, -x) of fresh points for the test
    teacher: Count = 20  # its neurons
    lr: Positive = 0.3
    steps: Natural = 400  # prompts
    every: Count = 10  # steps between two records
    tau: Positive = 1e9  # rate at which attention learns, over the neurons' rate
    check_every: Count = 25  # steps between two checks of the modified dynamics
    share: Probability = 0.05  # of the neurons replaced
    size: NonNegative = 0.1  # of the random perturbation
    until: NonNegative = 0.002  # loss below which the modified dynamics leaves the features alone

    def check(self) -> None:
        """Refuse sizes at which features are not defined."""
        if self.k < 3 or self.teacher < self.k + 2 or self.n <= self.k + 2:
            raise ValueError(f"k must be at least 3, teacher at least k + 2 and n above k + 2; got k={self.k}, "
                             f"teacher={self.teacher}, n={self.n}")

    def features(self, case: str) -> int:
        """True features."""
        return self.k + 2 if case == "seven" else self.k


CURVES = ("case", "model", "seed", "time")
experiment = Experiment(
    Setting, version=2, loops=("case", "model"), stored="paper",
    gives={
        "loss": ("training loss L", "1", CURVES),
        "fresh": ("loss L on fresh points", "1", CURVES),
        "max": ("error over floor, task max", "1", CURVES),
        "square": ("error over floor, task square", "1", CURVES),
    },
    beside={"time": (lambda s: s.lr * s.every * np.arange(s.steps // s.every + 1), "time t")},
    presets={
        "tiny": ("All four cases with 24 neurons and three features, sixty prompts", dict(
            case=CASES, model=MODELS, seed=(0, 1), m=24, k=3, d=6, n=40, points=60, teacher=8, steps=60,
            check_every=20)),
        "paper": ("The paper's sizes: 500 neurons, 10 000 prompts of 1000 examples, one seed", dict(
            case=CASES, model=MODELS, seed=(0,), m=500, n=1000, points=2000, steps=10000, every=100, check_every=100,
            tau=6e10)),
    },
)
experiment.kept(single_precision)


@experiment.shared("case")
def truth_and_test(s: Setting, device: str) -> tuple[Particles, Population]:
    """The true features, and fresh points to test on; the three dynamics share them."""
    place = devices.device(device)
    truth = on(place, teacher(s, s.case))
    x = inputs(s, s.points, "fresh points").to(place, torch.float32)
    x = torch.cat([x, -x], -2)  # the law of the inputs is symmetric: so is the sample
    return truth, Population(x, truth.whitened(x, spectrum(s, s.case)).features(x))  # exactly white on these points


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Loss while training, loss and task errors over their floors on fresh points, of one dynamics in one case."""
    (truth, test), records = truth_and_test(s, device), []
    losses = trained(s, s.case, s.model, truth, records)[1][..., :: s.every].double()
    return {"loss": losses} | dict(zip(("fresh", *TASKS), scores(records, truth, test), strict=True))


run = experiment.run


def teacher(setting: Setting, case: str) -> Particles:
    """The true features of all seeds, white on a large sample of inputs (or with one weak eigenvalue)."""
    raw = mean_field.draw(setting.teacher, setting.features(case), setting.d, setting.seed, "teacher", 4.0)
    return raw.whitened(inputs(setting, 4000, "whitening"), spectrum(setting, case))


def spectrum(setting: Setting, case: str) -> Tensor | None:
    """The true features' covariance: the identity over their number (None), or one weak eigenvalue of 0.01."""
    values = [0.99 / (setting.k - 1)] * (setting.k - 1) + [0.01]
    return torch.diag(torch.tensor(values, dtype=torch.float64)) if case == "weak" else None


def inputs(setting: Setting, n: int, role: str = "inputs") -> Tensor:
    """Standard normal inputs (seed, n, d)."""
    return rng.normal((n, setting.d), setting.seed, role)


def student(setting: Setting, case: str) -> Particles:
    """Random neurons; with the last two features exactly zero in the case "dead"."""
    random = mean_field.draw(setting.m, setting.k, setting.d, setting.seed, "student", 2.0)
    return random._replace(a=random.a * (torch.arange(setting.k) < setting.k - 2)) if case == "dead" else random


def on(place: torch.device, parts, dtype: torch.dtype = torch.float32):
    """Particles or a population on a device, in single precision."""
    return type(parts)(*(part.to(place, dtype) for part in parts))


def task(name: str, f: Tensor, offset: Tensor) -> Tensor:
    """A task outside the span: the largest f_l, or |f + c|^2 with c what a sigmoid with its 1/2 would add."""
    return f.amax(-1) if name == "max" else (f + offset[..., None, :]).square().sum(-1)


def task_error(h: Tensor, g: Tensor) -> Tensor:
    """Error of attention with a long prompt on a task with centred labels: the mean square of what h leaves of g."""
    centred = (g - g.mean(-1, keepdim=True))[..., None]
    return mean_field.regress(h, centred).residual.square().mean((-2, -1))


def trained(setting: Setting, case: str, model: str, truth: Particles, records: list | None = None):
    """Particles and losses after training; `records` collects the particles on the way."""
    start = on(truth.a.device, student(setting, case))
    first = prompt(setting, truth, 0)
    how = {
        "static": {},
        "attention": {"gamma": torch.zeros_like(start.a.mT @ start.a), "ratio": setting.tau},
        "modified": {"modified": Modified(every=setting.check_every, share=setting.share, size=setting.size, spread=2.0,
                                          until=setting.until)},
    }[model]

    def watch(t: int, particles: Particles) -> None:
        if records is not None and t % setting.every == 0:
            records.append(particles)

    source = (lambda t: prompt(setting, truth, t)) if setting.fresh else first
    try:
        return descend(start, source, setting.lr, setting.steps + 1, watch=watch, **how)
    except torch.linalg.LinAlgError:
        raise ValueError(f"training diverged at lr = {setting.lr:g} and tau = {setting.tau:g}: take a smaller lr, "
                         "or a faster attention") from None


def prompt(setting: Setting, truth: Particles, step: int) -> Population:
    """The inputs of one prompt with their true features; the same at every step unless `fresh`."""
    x = inputs(setting, setting.n, f"prompt {step}" if setting.fresh else "inputs").to(truth.a)
    return Population(x, truth.features(x))


def scores(records: list[Particles], truth: Particles, test: Population) -> Tensor:
    """Loss and task errors over floors on fresh points; (3, seed, time)."""
    offset = truth.a.mean(-2) / 2
    targets = [task(name, test.f, offset) for name in TASKS]
    floors = [task_error(test.f, g) for g in targets]
    columns = []
    for particles in records:
        h = particles.features(test.x)
        loss = mean_field.regress(h, test.f).residual.square().sum(-1).mean(-1) / 2
        columns.append(torch.stack([loss, *(task_error(h, g) / low for g, low in zip(targets, floors, strict=True))]))
    return torch.stack(columns, -1).double()


def new_tasks(readers: dict, truth: Particles, points: Tensor, lengths: tuple[int, ...], seeds: tuple[int, ...],
              tasks: int = 20) -> xr.Dataset:  # fmt: skip
    """Risk on new mixtures of the true features, from prompts that are the first of the points; each (n, seed).

    readers: by name, what encodes the inputs, and estimators on it of which the best in hindsight counts. The last 200
    points are the queries.
    """
    features, query = truth.features(points), points[:, -200:]
    v = rng.normal((tasks, features.shape[-1]), seeds, "tasks")
    labels = torch.einsum("sqk,stk->stq", features, v)

    def risk(name: str, n: int) -> np.ndarray:
        encode, variants = readers[name]
        context, asked = (encode(x)[:, None].expand(-1, tasks, -1, -1) for x in (points[:, :n], query))
        errors = [reader(Context(context, labels[..., :n]), asked) - labels[..., -200:] for reader in variants]
        return min((error.square().mean((-2, -1)) for error in errors), key=lambda each: float(each.mean())).numpy()

    return xr.Dataset({name: (("n", "seed"), np.stack([risk(name, n) for n in lengths]),
                              {"long_name": "risk", "units": "1"}) for name in readers},
                      coords={"n": ("n", list(lengths), {"long_name": "examples n in the prompt", "units": "1"})})


def sampled(neurons: Tensor, a: Tensor, widths: tuple[int, ...], draws: int = 400) -> xr.DataArray:
    """Mean square over points between the features of N neurons drawn from a crowd and the crowd's; (m, seed).

    neurons: their outputs (n, m); a: their second layers (m, k).
    """
    mean, rows = neurons @ a / len(a), []
    for width in widths:
        picks = torch.randint(len(a), (draws, width), generator=rng.generator(width, "neurons"))
        rows.append([float((neurons[:, i] @ a[i] / width - mean).square().sum(-1).mean()) for i in picks])
    return xr.DataArray(np.array(rows), dims=("m", "seed"), name="error",
                        coords={"m": ("m", list(widths), {"long_name": "neurons m", "units": "1"})},
                        attrs={"long_name": "error of N neurons", "units": "1"})


def barron(setting: Setting, crowd: int = 20_000) -> Particles:
    r"""A teacher of bounded Barron norm: :math:`f(x) = E\,\tanh(Bw)\,\sigma(\langle w, x\rangle)` over normal w.

    The expectation is over a crowd of neurons, so that no network of fewer neurons is the teacher. One for all seeds.
    """
    one = mean_field.draw(crowd, setting.k, setting.d, setting.seed[0], "crowd", 2.0)
    lean = rng.normal((setting.k, setting.d), setting.seed[0], "lean")
    return one._replace(a=torch.tanh(one.w @ lean.T))
