r"""Test-time training on prompts whose link has shifted since pretraining, against fixed weights.

Claims (Kuwataka and Suzuki 2025): an attention layer with an MLP, pretrained on single-index prompts, adapts to the
direction of a prompt, and with test-time training to its link, too, with an error that falls to the noise level as the
prompt grows; fixed weights keep a floor under a shift of the link.

Pretraining is one gradient step on the attention matrix, rounded to the projection on its r top directions, and ridge
regression of the MLP's output layer at the link :math:`h_2`. Test prompts have the link
:math:`\cos\theta\,h_2 + \sin\theta\,h_3`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.estimators.in_context import KernelRidge
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import IndexPrompts, SingleIndexPrompts
from flbook.lectures.in_context_learning.test_time_training import two_stages as stages
from flbook.lectures.in_context_learning.test_time_training.link_shift import shifted_link
from flbook.lectures.in_context_learning.test_time_training.prompt_network import two_layer
from flbook.lectures.in_context_learning.test_time_training.two_stages import Readout
from flbook.models import kernels
from flbook.runs import Experiment, Grid, axis, labelled, single_precision
from flbook.shapes import Context

BATCH = 100  # prompts held at once
Model = Literal["fixed weights", "test-time training", "no pretraining"]
MODELS = get_args(Model)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: three angles, prompts of growing length."""

    shift: tuple[float, ...] = axis([0.0, 30.0, 60.0], "angle of the link θ", "degrees")
    n: tuple[Annotated[int, Range(8)], ...] = axis([128, 256, 512, 1024, 2048], "examples in the prompt n")
    model: tuple[Model, ...] = axis(MODELS, "model")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    d: Count = 32  # dimension of an input
    r: Count = 4  # dimension of the subspace
    m: Count = 64  # neurons of the MLP
    noise: NonNegative = 0.5  # tau, of the labels
    lam: Positive = 0.3  # ridge of the output layer, times its number of examples
    prompts: Count = 6000  # of pretraining
    n_pre: Count = 256  # examples and queries of each
    learner: Natural = 0  # seed of the pretraining, one for all test prompts
    tasks: Count = 8  # test prompts a seed
    queries: Count = 100  # of each, for the rivals; the risk of the models is exact

    def check(self) -> None:
        """Refuse a subspace larger than the space."""
        data(self, self.shift[0], self.n[0])


def data(setting: Setting, shift: float, n: int, queries: int = 1) -> SingleIndexPrompts:
    """Prompts of one angle and length."""
    return SingleIndexPrompts(n=n, d=setting.d, r=setting.r, link=shifted_link(shift), noise=setting.noise,
                              queries=queries)


experiment = Experiment(
    Setting, version=1, loops=("seed", "shift", "n", "model"), chunk={"seed": 5}, stored="longer",
    gives={"risk": ("risk R", "1"), "overlap": ("overlap |⟨u, β⟩|", "1")},
    presets={
        "tiny": ("Eight dimensions, 200 prompts of pretraining, no shift and sixty degrees", dict(
            shift=(0.0, 60.0), n=(64, 1024), seed=(0, 1), d=8, r=2, m=32, prompts=200, n_pre=128, tasks=6,
            queries=40)),
        "angles": ("All angles at one length", dict(
            shift=(0.0, 15.0, 30.0, 45.0, 60.0, 90.0), n=(1024,), model=MODELS[:2], tasks=4)),
        "longer": ("Longer prompts, more dimensions, more tasks", dict(
            shift=(0.0, 30.0, 60.0), n=(128, 256, 512, 1024, 2048, 4096), d=48, prompts=16000, tasks=16)),
    },
)
experiment.kept(single_precision)


@experiment.shared("seed", "shift", "n")
def asked(s: Setting, device: str) -> IndexPrompts:
    """The test prompts, which all models answer."""
    return data(s, s.shift, s.n).draw(s.tasks, s.seed, 10 + s.n, devices.device(device))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Risk of one model against the target without noise, and overlap of the direction that it finds."""
    learned = pretrain(s, device)
    along, a = answer(s.model, s, learned, asked(s, device))
    risk = stages.exact_risk(learned.readout, a, along, shifted_link(s.shift))
    return {"risk": risk.mean(), "overlap": along.abs().mean()}


run = experiment.run


@dataclass(frozen=True)
class Learned:
    """What pretraining leaves: the directions that attention looks in, the MLP's neurons and output weights."""

    basis: Tensor  # d x r
    readout: Readout
    a: Tensor


def pretrain(setting: Setting, device: str = "cpu") -> Learned:
    """One step on attention, then ridge regression of the output layer, both on prompts without a shift."""
    fields = {name: getattr(setting, name) for name in ("d", "r", "m", "noise", "lam", "prompts", "n_pre", "learner")}
    return _pretrained(Setting(**fields), devices.device(device), rng.fresh_seed())


@lru_cache(maxsize=4)
def _pretrained(setting: Setting, place: torch.device, fresh: str) -> Learned:
    """Once for all test prompts; `fresh` is FLBOOK_SEED, on which the draws depend."""
    n, update = setting.n_pre, torch.zeros(setting.d, setting.d, dtype=torch.float64, device=place)
    for step in range(-(-setting.prompts // BATCH)):
        x, y = data(setting, 0.0, 2 * n).draw(BATCH, setting.learner, step, place, torch.float32).context
        update += stages.attention_step(Context(x[:, :n], y[:, :n]), Context(x[:, n:], y[:, n:])).double()
    basis = stages.subspace(update, setting.r)
    readout = Readout.draw(setting.m, setting.learner).to(place)
    long = data(setting, 0.0, 2048).draw(100, setting.learner, 10_000_000, place).context
    inside = Context(long.x @ basis, long.y)
    z = torch.einsum("tnd,td->tn", inside.x, stages.first_direction(inside))
    return Learned(basis, readout, readout.fit(z.flatten(), long.y.flatten(), setting.lam / long.y.numel()))


def answer(name: str, setting: Setting, learned: Learned, batch: IndexPrompts) -> tuple[Tensor, Tensor]:
    """What one model makes of the prompts: <u, beta> of its direction, and its output weights."""
    identity = torch.eye(setting.d).to(learned.basis)
    basis = identity if name == "no pretraining" else learned.basis
    inside, readout = Context(batch.context.x @ basis, batch.context.y), learned.readout
    if name == "fixed weights":
        u, a = stages.first_direction(inside), learned.a
    else:
        u, _, a = stages.adapt(readout, inside, setting.lam * 4 * setting.noise**2)
    along = torch.einsum("td,td->t", u, batch.task @ basis)
    if name == "fixed weights":  # u has no sign; of the two answers the prompt chooses the better
        z = torch.einsum("tnd,td->tn", inside.x, u)
        errors = [(readout(s * z) @ a - inside.y).square().mean(-1) for s in (1, -1)]
        along = torch.where(errors[0] <= errors[1], along, -along)
    return along, a


def fitting(setting: Setting, counts: tuple[int, ...]) -> xr.DataArray:
    """Risk of stage III alone: so many examples, the true direction given; first angle, (fitted, seed)."""
    columns, readout = [], pretrain(setting).readout
    for seed in setting.seed:
        batch = data(setting, setting.shift[0], max(counts)).draw(setting.tasks, seed, 3)
        z = torch.einsum("tnd,td->tn", batch.context.x, batch.task)
        risks = []
        for count in counts:
            lam = setting.lam * 4 * setting.noise**2 / count
            a = readout.fit(z[:, :count], batch.context.y[:, :count], lam)
            link = shifted_link(setting.shift[0])
            risks.append(stages.exact_risk(readout, a, torch.ones(len(a), dtype=a.dtype), link).mean().item())
        columns.append(risks)
    return over("fitted", "examples of stage III", counts, columns, setting, "risk R")


def refining(setting: Setting, counts: tuple[int, ...], spent: int = 1024) -> xr.DataArray:
    """What stage II leaves of the direction after so many examples, inside the subspace that pretraining found.

    One minus the squared cosine of u and beta's part in that subspace; first angle, (refined, seed). Stage I has
    `spent` examples. The median over the tasks of a seed, since a rare prompt is unlucky in stage I.
    """
    learned, columns = pretrain(setting), []
    for group in (setting.seed[k : k + 5] for k in range(0, len(setting.seed), 5)):  # one pass for several seeds
        drawn = []
        for seed in group:
            batch = data(setting, setting.shift[0], spent + max(counts)).draw(setting.tasks, seed, 4)
            drawn.append((batch.context.x @ learned.basis, batch.context.y, batch.task @ learned.basis))
        x, y, beta = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        first = Context(x[:, :spent], y[:, :spent])
        start = stages.first_direction(first)
        guess = learned.readout.fit(torch.einsum("tnd,td->tn", first.x, start), first.y, setting.lam / spent)
        rows = []
        for count in counts:
            second = Context(x[:, spent : spent + count], y[:, spent : spent + count])
            u = stages.refined(learned.readout, guess, start, first, second)
            left = 1 - torch.einsum("td,td->t", u, beta).square() / beta.square().sum(-1)
            rows.append(left.reshape(len(group), -1).median(-1).values.tolist())
        columns.extend(zip(*rows, strict=True))
    return over("refined", "examples of stage II", counts, columns, setting, "what is left of the direction")


def by_softmax(setting: Setting, temperature: float = 32.0) -> xr.Dataset:
    """All three stages, the first by one gradient step on a low-rank update of softmax attention; (seed).

    First angle and length: overlaps after stages I and II, and the risk. The step starts at a random w of length 0.1.
    """
    learned, angle, rows = pretrain(setting), setting.shift[0], []
    for seed in setting.seed:
        batch = data(setting, angle, setting.n[0]).draw(setting.tasks, seed, 5)
        task, inside = batch.task @ learned.basis, Context(batch.context.x @ learned.basis, batch.context.y)
        w = torch.randn(task.shape, generator=rng.generator(seed, "low rank"), dtype=task.dtype)
        w = 0.1 * torch.nn.functional.normalize(w, dim=-1)
        fit = stages.adapt(learned.readout, inside, setting.lam * 4 * setting.noise**2,
                           weak=lambda part, w=w: stages.softmax_direction(part, w, temperature))  # fmt: skip
        first, along = (torch.einsum("td,td->t", u, task) for u in (fit.start, fit.u))
        risk = stages.exact_risk(learned.readout, fit.a, along, shifted_link(angle))
        rows.append([first.abs().mean().item(), along.abs().mean().item(), risk.mean().item()])
    said = {"weak": "overlap after stage I", "strong": "overlap after stage II", "risk": "risk R"}
    columns = zip(said.items(), np.array(rows).T, strict=True)
    return labelled({name: (("seed",), column, words) for (name, words), column in columns},
                    setting.coordinates("seed"))  # fmt: skip


def over(name: str, text: str, counts, columns: list, setting: Setting, what: str) -> xr.DataArray:
    """Columns of seeds as one array over (counts, seed)."""
    return labelled({"found": ((name, "seed"), np.array(columns).T, what)},
                    {name: (name, list(counts), text), **setting.coordinates("seed")}).found.rename(None)


KERNELS: dict[str, kernels.Kernel] = {
    "Gaussian": kernels.distance(lambda t: torch.exp(-t / 2)),
    "cubic": kernels.inner_product(lambda t: (1 + t) ** 3),
}
RIDGES = (1e-2, 1e-1, 1.0)


def alone(setting: Setting, tasks: int = 1) -> xr.Dataset:
    """Kernel ridge regression and a two-layer network on the test prompt alone, best in hindsight; (n, seed).

    First angle. Hindsight chooses kernel and ridge, or stopping time, by the mean over all tasks at each length.
    """
    rows = {"kernel ridge": [], "network": []}
    for n in setting.n:
        batch = data(setting, setting.shift[0], n, setting.queries).draw(tasks * len(setting.seed), setting.seed[0], n)
        found = {"kernel ridge": [KernelRidge(kernel, lam)(batch.context, batch.query)
                                  for kernel in KERNELS.values() for lam in RIDGES],
                 "network": list(two_layer(batch.context, batch.query).values())}
        for name, tried in found.items():
            errors = [(f - batch.target).square().mean(-1) for f in tried]
            best = min(errors, key=lambda error: float(error.mean()))
            rows[name].append(best.reshape(len(setting.seed), tasks).mean(-1).numpy())
    return labelled({name: (("n", "seed"), values, "risk R") for name, values in rows.items()},
                    setting.coordinates("n", "seed"))


def linear_attention(link: tuple[float, ...], spread: tuple[float, ...], angle: float = 30.0) -> np.ndarray:
    """Risks of 3000 tasks in a plane, link turned, under attention that is linear in the labels and trained no more.

    Pretrained on 3000 prompts of this `link`, whose coefficients scatter by `spread`, with the better of two ridges.
    """
    layer = ReLULayer.draw(48, 2, spread=2.0, dtype=torch.float32)
    prompts = SingleIndexPrompts(n=512, d=2, r=2, link=link, spread=spread, noise=0.5)
    batches = (prompts.draw(100, 0, step, dtype=torch.float32) for step in range(30))
    pairs = (pretraining.Example(b.context, b.query[:, 0], b.observed[:, 0]) for b in batches)
    (seen,) = pretraining.summarise([layer], pairs)
    shifted = SingleIndexPrompts(n=512, d=2, r=2, link=shifted_link(angle), noise=0.5, queries=8)
    tried, risks = [pretraining.trained(layer, seen, lam) for lam in (1e-2, 1e-1)], []
    for k in range(10):
        test = shifted.draw(300, 1, k)
        errors = [model(test.context, test.query) - test.target for model in tried]
        risks.append(torch.stack(errors).square().mean(-1))
    together = torch.cat(risks, -1)
    return together[together.mean(-1).argmin()].numpy()
