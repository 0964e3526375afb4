r"""Training features below attention: joint, static and modified dynamics; dead features, too few features, new tasks.

Claims (Kim and Suzuki 2024, section 6 and Figure 1): attention trained together with the features behaves like the
static dynamics, which has it at its optimum; both reach zero loss. From a degenerate start only the modified dynamics
does. With more true features than learned ones a floor is left. Tasks outside the span of the true features are read as
well as their projection on that span (Proposition 2.3). Every step of training sees a new prompt.
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
from flbook.runs import Experiment, Grid, axis, labelled, single_precision
from flbook.shapes import Context

Case = Literal["matched", "dead", "seven", "weak"]
CASES = get_args(Case)
TASKS = ("max", "square")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: 64 neurons, 400 prompts of 128 examples, seconds on one core.
    """

    case: tuple[Case, ...] = axis(CASES[:3], "case")  # as many true features as learned; two learned ones dead at the
    # start; two true ones too many; or, "weak", a true feature of variance 0.01
    model: tuple[Literal["attention", "static", "modified"], ...] = axis(["attention", "static", "modified"], "model")
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
    turn: Positive = 300.0  # time for which attention flows between two steps of the features, over its fastest rate
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
    Setting, version=1, loops=("case", "model"), stored="longer",
    gives={
        "loss": ("training loss L", "1", CURVES),
        "fresh": ("loss L on fresh points", "1", CURVES),
        "max": ("error over floor, task max", "1", CURVES),
        "square": ("error over floor, task square", "1", CURVES),
    },
    beside={"time": (lambda s: s.lr * s.every * np.arange(s.steps // s.every + 1), "time t")},
    presets={
        "tiny": ("All four cases with 24 neurons and three features, sixty prompts", dict(
            case=CASES, seed=(0, 1), m=24, k=3, d=6, n=40, points=60, teacher=8, steps=60, check_every=20)),
        "longer": ("500 neurons and prompts of 1000 examples; a tenth of the paper's 10 000 prompts", dict(
            seed=(0, 1, 2), m=500, n=1000, points=2000, steps=1000, every=20, check_every=50, turn=1000.0)),
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
        "attention": {"gamma": mean_field.best_attention(start, first), "turn": setting.turn},
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
        raise ValueError(f"training diverged at lr = {setting.lr:g} and turn = {setting.turn:g}: take a smaller lr, "
                         "or a longer turn for attention") from None


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


def band(setting: Setting, lr: float = 0.02, steps: int = 500, every: int = 5) -> xr.Dataset:
    r"""The static flow from just below the first rung: what Theorem 5.3 speaks of; (seed, time).

    The teacher's neurons are there and know all true features but the last; all other neurons serve the last learned
    feature, which is random. So the teacher's neurons have 1/kappa of their mass in the teacher, kappa = m/teacher.

    loss L, speed :math:`-dL/dt`, steepness :math:`\delta = \|SG\|_*`, cross :math:`\|\Sigma_{fh}\|`, and `effective`,
    :math:`\delta^2/|dL/dt|` over the teacher's mean :math:`|a|^2`, which kappa bounds at the start.
    """
    x = inputs(setting, 400)
    truth = teacher(setting, "matched").whitened(x)
    last, random = torch.arange(setting.k) == setting.k - 1, student(setting, "matched")
    a = torch.cat([truth.a * ~last, random.a[..., setting.teacher :, :] * last], -2)
    start = Particles(a, torch.cat([truth.w, random.w[..., setting.teacher :, :]], -2))
    population, rows = Population(x, truth.features(x)), []

    def watch(t: int, particles: Particles) -> None:
        if t % every == 0:
            move, loss = mean_field.velocity(particles, population)
            speed = (move.a.square().sum(-1) + move.w.square().sum(-1)).mean(-1)
            fit = mean_field.regress(h := particles.features(x), population.f)
            norm = torch.linalg.matrix_norm(mean_field.second_moment(population.f, h), 2)
            delta = torch.linalg.matrix_norm(fit.unexplained @ fit.gain, "nuc")
            rows.append(torch.stack([loss, speed, delta, norm, delta**2 / speed / size]))

    size = truth.a.square().sum(-1).mean(-1)
    descend(start, population, lr, steps + 1, watch=watch)
    names = {"loss": "loss L", "speed": "speed −dL/dt", "steepness": "steepness δ", "cross": "norm of Σ_fh",
             "effective": "effective density ratio"}
    time = lr * every * np.arange(len(rows))
    return labelled({name: (("seed", "time"), column, text)
                     for (name, text), column in zip(names.items(), torch.stack(rows, -1), strict=True)},
                    setting.coordinates("seed") | {"time": ("time", time, "time t")})


def chaos(setting: Setting, widths: tuple[int, ...], reference: int = 8192, lr: float = 0.05, steps: int = 20):
    """Flows of m particles against one of very many: E|h - h_ref|^2/E|h_ref|^2 at start and end; (m, seed, time).

    Particles start at a = B w, a law whose features do not vanish. From a law symmetric in a, features would be of size
    1/sqrt(m), and the limit would begin where L is not defined. One teacher and one prompt for all seeds.
    """
    one = setting.thinned(seed=setting.seed[:1])
    population = Population(*(part[0] for part in prompt(one, teacher(one, "matched"), 0)))
    lean = rng.normal((setting.k, setting.d), one.seed[0], "lean")

    def flow(m: int, seed: int | tuple[int, ...]) -> list[Tensor]:
        start = mean_field.draw(m, setting.k, setting.d, seed, f"chaos {m}", 2.0)
        start = start._replace(a=torch.einsum("kd,...md->...mk", lean, start.w))
        end, _ = descend(start, population, lr, steps)
        return [start.features(population.x), end.features(population.x)]

    limit = flow(reference, setting.seed[0])
    rows = [[((h - far).square().sum((-2, -1)) / far.square().sum()).numpy()
             for h, far in zip(flow(m, setting.seed), limit, strict=True)] for m in widths]
    return xr.DataArray(np.moveaxis(np.array(rows), 1, 2), dims=("m", "seed", "time"), name="distance",
                        coords={"m": ("m", list(widths), {"long_name": "neurons m", "units": "1"}),
                                **setting.coordinates("seed"), "time": [0.0, lr * steps]},
                        attrs={"long_name": "distance from the limit", "units": "1"})
