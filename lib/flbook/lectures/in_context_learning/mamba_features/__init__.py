r"""The gate of a Mamba layer as a feature extractor: a direction found in the prompt, behind a link that hides it.

Claims: for labels :math:`h_3(\langle\beta, x\rangle)` the state of an ungated layer, like linear attention, has mean
zero; a gated one points at beta, at a rate set by the gate's strength :math:`c_1^2/E T^2` times the examples that it
remembers; for :math:`h_4` a state that holds a matrix does it, read twice. Mechanisms behind Oh, Huang and Suzuki
(2025), with gates made by hand; no reproduction of their training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, hermite
from flbook.domains import Count, Natural
from flbook.estimators import KernelRidge
from flbook.lectures.in_context_learning.mamba_features import gates as law
from flbook.lectures.in_context_learning.mamba_features.gates import mixture, places, silu_gates
from flbook.lectures.in_context_learning.mamba_features.mamba_block import MambaBlock, average_of_gates, square_reader
from flbook.lectures.in_context_learning.shared import forgetting as theory
from flbook.lectures.in_context_learning.shared.mamba import Mamba, tokens
from flbook.lectures.in_context_learning.shared.online import LeastMeanSquares
from flbook.lectures.in_context_learning.shared.single_index_prompts import IndexPrompts, SingleIndexPrompts
from flbook.models import kernels
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Context

LINK = hermite.he(3)
SIGMOID = (4.0, -6.0)  # slope w and bias b of the selective gates
SLOW = (4.0, -2.0)
EVEN = (-4.0, -4.0)  # for h_4: labels far below zero are written
RIDGES = (30.0, 1000.0)
DEGREE = 5  # of the readout


def silu_block(gamma: Tensor, channels: int, n: int) -> MambaBlock:
    """A block with so many SiLU channels, mixed at their best."""
    return average_of_gates(gamma, *places(channels), mixture(channels).tolist(), n)


def softmax_statistic(context: Context, query: Tensor) -> Tensor:
    r"""What softmax attention with the label in its score collects: :math:`\sum_l y_l e^{y_l}x_l / \sum_l e^{y_l}`."""
    weight = torch.softmax(context.y, -1) * context.y
    return torch.einsum("...n,...nd,...qd->...q", weight, context.x, query)


PREDICTORS = {
    "none": lambda eye, n: Mamba.of(eye, float(theory.decay(n))),
    "sigmoid": lambda eye, n: Mamba.gated(eye, *SIGMOID),
    "slow": lambda eye, n: Mamba.gated(eye, *SLOW, a=1 / n),
    "silu 4": lambda eye, n: silu_block(eye, 4, n),
    "silu 12": lambda eye, n: silu_block(eye, 12, n),
    "softmax": lambda eye, n: softmax_statistic,
    "lms": lambda eye, n: LeastMeanSquares(1 / (len(eye) + 2)),
}


def gate_law(name: str, n: int) -> tuple[Callable, float]:
    """Of a gate with a law: T as a function of the label, and the effective examples."""
    plain = float(theory.effective_samples(theory.decay(n), n))
    if name.startswith("silu"):
        channels = int(name.split()[1])
        v, gates = mixture(channels), silu_gates(channels)
        return lambda y: sum(a * gate(y) for a, gate in zip(v, gates, strict=True)), plain
    if name == "none":
        return lambda y: y, plain
    (slope, bias), a = (SIGMOID, 1.0) if name == "sigmoid" else (SLOW, 1 / n)
    return lambda y: y * law.written(slope * y + bias, a), law.memory(slope, bias, a, n, LINK)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: five gates in 32 dimensions."""

    gate: tuple[Literal[tuple(PREDICTORS)], ...] = axis(["none", "sigmoid", "slow", "silu 4", "silu 12"], "gate")
    d: tuple[Count, ...] = axis([32], "dimension d")
    n: tuple[Count, ...] = axis([64, 128, 256, 512, 1024], "examples n")  # of a prompt
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    r: Count = 4  # dimension of the subspace in which the direction lies
    prompts: Count = 5  # a seed

    def check(self) -> None:
        """Refuse a subspace that does not fit."""
        SingleIndexPrompts(d=min(self.d), r=self.r)


DIMS = ("d", "n", "gate", "seed")
experiment = Experiment(
    Setting, version=1, loops=("d", "n", "seed", "gate"),  # one seed at a time: the memory of one
    gives={"overlap": ("squared cosine with β", "1", DIMS),
           "inside": ("squared cosine with β inside the subspace", "1", DIMS)},
    presets={
        "tiny": ("Three gates in eight dimensions", dict(
            gate=("none", "slow", "silu 4"), d=(6, 8), n=(40, 160), seed=(0, 1), r=2, prompts=4)),
        "longer": ("Three dimensions, and prompts of up to 4096 examples; forty seeds", dict(
            d=(16, 32, 64), n=(64, 128, 256, 512, 1024, 2048, 4096), seed=tuple(range(40)), prompts=8)),
    },
    stored="longer",
)


@experiment.shared("d", "n", "seed")
def drawn(s: Setting, device: str) -> IndexPrompts:
    """The prompts that every gate reads."""
    prompts = SingleIndexPrompts(n=s.n, d=s.d, r=s.r, link=LINK.coefficients)
    return prompts.draw(s.prompts, s.seed, device=devices.device(device))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Squared cosine of one gate's state with beta, in all dimensions and inside the subspace."""
    prompts = drawn(s, device)
    found = directions(s.gate, prompts.context)
    return {"overlap": squared_cosine(found, prompts.task).mean(),
            "inside": squared_cosine(found[..., : s.r], prompts.task[..., : s.r]).mean()}


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the stored result keeps: the squared cosines in float32."""
    return dataset[["overlap", "inside"]].astype("float32")


run = experiment.run


@torch.no_grad()
def directions(name: str, context: Context) -> Tensor:
    """The estimate of beta that a predictor holds after the examples: its answers to the unit vectors, (*E, d)."""
    *ensemble, n, d = context.x.shape
    eye = torch.eye(d, dtype=context.x.dtype)
    predictor = PREDICTORS[name](eye, n)
    if isinstance(predictor, torch.nn.Module):  # made by hand, on the CPU
        predictor.to(context.x.device)
    return predictor(context, eye.to(context.x.device).expand(*ensemble, d, d))


def squared_cosine(found: Tensor, task: Tensor) -> Tensor:
    """Squared cosines of estimates with directions."""
    return torch.cosine_similarity(found, task, dim=-1).square()


def features(direction: Tensor, query: Tensor) -> Tensor:
    """Hermite polynomials up to the readout's degree, of the queries along an estimated direction."""
    along = torch.einsum("...d,...qd->...q", torch.nn.functional.normalize(direction, dim=-1), query)
    return torch.stack([hermite.polynomial(k, along) for k in range(DEGREE + 1)], -1)


def _share(answer: Tensor, target: Tensor) -> Tensor:
    return (answer - target).square().mean((-2, -1)) / target.square().mean((-2, -1))


def risk(seeds: tuple[int, ...], n: tuple[int, ...], d: int = 32, r: int = 4, prompts: int = 4, queries: int = 200,
         names: tuple[str, ...] = ("silu 4", "none", "softmax", "lms")) -> xr.Dataset:
    """Squared error at fresh queries as a share of the labels' mean square there; dimensions (predictor, n, seed).

    The state's direction goes through a readout that is fitted once, on other prompts of the same length: the place of
    the network behind the layer. ``inside`` is the gated layer whose matrix is the projection to the subspace. The
    kernel, of degree three, has no pretraining; it gets the best of its ridges.
    """
    kernel = kernels.inner_product(lambda t: (1 + t) ** 3)
    table: dict[str, list] = {name: [] for name in (*names, "inside", "kernel")}
    for size in n:
        data = SingleIndexPrompts(n=size, d=d, r=r, link=LINK.coefficients, queries=queries)
        past, new = data.draw(8 * prompts, 10_000, step=1), data.draw(prompts, seeds)
        held = {name: [directions(name, part.context) for part in (past, new)] for name in names}
        inside = torch.arange(d) < r
        held["inside"] = [direction * inside for direction in held[names[0]]]
        for name, (before, fresh) in held.items():
            readout = torch.linalg.lstsq(features(before, past.query).flatten(0, 1), past.target.flatten()[:, None])
            table[name].append(_share((features(fresh, new.query) @ readout.solution)[..., 0], new.target))
        some = Context(new.context.x[:, :1], new.context.y[:, :1])  # of every seed; kernels are slow
        answers = [KernelRidge(kernel, lam)(some, new.query[:, :1]) for lam in RIDGES]
        errors = torch.stack([_share(answer, new.target[:, :1]) for answer in answers])
        table["kernel"].append(errors[errors.mean(-1).argmin()])
    return labelled({"risk": (("predictor", "n", "seed"), list(table.values()), "risk R as a share of E y²")},
                    {"predictor": list(table), "n": ("n", list(n), "examples n"), "seed": list(seeds)})


@torch.no_grad()
def even(seeds: tuple[int, ...], n: tuple[int, ...], d: tuple[int, ...] = (8, 16), queries: int = 400,
         prompts: int = 4) -> xr.Dataset:
    """Labels h_4, the state a matrix H; dimensions (d, n, seed).

    ``reading``: squared correlation over queries of x H x with the degree two of the hidden coordinate, both less
    their part in 1 and the query's squared length. ``eigenvector``: squared cosine of H's extreme eigenvector.
    """
    cells = []
    for dim, size in product(d, n):
        drawn = SingleIndexPrompts(n=size, d=dim, r=dim, link=hermite.he(4).coefficients, queries=queries)
        batch = drawn.draw(prompts, seeds)
        block = square_reader(dim, *EVEN, a=1 / size)
        answer, length = block(batch.context, batch.query), batch.query.square().sum(-1)
        hidden = torch.einsum("...d,...qd->...q", batch.task, batch.query).square()
        plain = torch.stack([torch.ones_like(length), length], -1)
        residuals = [part - (plain @ torch.linalg.lstsq(plain, part[..., None]).solution)[..., 0]
                     for part in (answer, hidden)]
        weight = block.layer.weights(block.channels(tokens(batch.context, marked=True)))
        matrix = torch.einsum("...l,...lc,...ld->...cd", weight, batch.context.x, batch.context.x)
        top = torch.linalg.eigh(matrix)[1][..., -1]
        cells.append((torch.cosine_similarity(*residuals, dim=-1).square().mean(-1),
                      squared_cosine(top, batch.task).mean(-1)))
    dims, (reading, eigenvector) = ("d", "n", "seed"), zip(*cells, strict=True)
    axes = {"d": ("d", list(d), "dimension d"), "n": ("n", list(n), "examples n"), "seed": list(seeds)}
    return labelled({"reading": (dims, reading, "squared correlation of the reading"),
                     "eigenvector": (dims, eigenvector, "squared cosine of the eigenvector")}, axes)


def pretraining_step(seeds: tuple[int, ...], prompts: tuple[int, ...], d: int = 16, r: int = 2, n: int = 128,
                     queries: int = 16) -> xr.Dataset:
    r"""One gradient step on :math:`\Gamma`, from a small multiple of I, behind a readout of degree three.

    .. math:: -\nabla_\Gamma \propto \frac1T\sum_t y_q\,\langle x_q, s\rangle^2\,x_q s^\top, \qquad
              E = \sqrt6\,E\langle\beta, s\rangle^3\,E\,\beta\beta^\top

    outside: the step's squared length outside the subspace of the directions; share: how much of it lies inside;
    dimensions (prompts, seed).
    """
    data = SingleIndexPrompts(n=n, d=d, r=r, link=LINK.coefficients, queries=queries)
    sizes, found = sorted(prompts), []
    for seed in seeds:
        batch = data.draw(sizes[-1], seed, step=2)
        s = directions("silu 4", batch.context)
        weight = batch.target * torch.einsum("td,tqd->tq", s, batch.query).square()
        for size in sizes:
            part = slice(0, size)
            step = torch.einsum("tq,tqd,tc->dc", weight[part], batch.query[part], s[part]) / (size * queries)
            inside, whole = step[:r, :r].square().sum(), step.square().sum()
            found.append([(whole - inside).item(), (inside / whole).item()])
    values = np.array(found).reshape(len(seeds), len(sizes), 2)
    return labelled({"outside": (("seed", "prompts"), values[..., 0], "squared length outside the subspace"),
                     "share": (("seed", "prompts"), values[..., 1], "share of it inside the subspace")},
                    {"prompts": ("prompts", sizes, "pretraining prompts T"), "seed": list(seeds)})
