r"""Task diversity: pretrained on few tasks a model remembers them, pretrained on many it can do all.

Claims. Raventos et al. (2023): a transformer pretrained on M tasks answers fresh tasks like the Bayes estimator for its
M tasks (dMMSE) if M is small, and like ridge regression, the Bayes estimator for all tasks, if M is large. Lu et al.
(2024): linear attention, fitted without a ridge, changes at M = d tasks, and has a peak of double descent at d^2
prompts.

The sweep is the second claim, on fresh tasks, by exact minimisation. Risks are mean squared errors without a factor
1/2; those of the sweep count the noise of the query's label, as the theory does, all others do not.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, rng
from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.domains import Checked, Count, Fraction, Natural, NonNegative, Positive
from flbook.estimators import DiscreteMMSE, Ridge, predict_each, ridge
from flbook.lectures.in_context_learning.shared.attention_risk import attention_risk
from flbook.lectures.in_context_learning.shared.moments import Drawn, draw_moments
from flbook.lectures.in_context_learning.task_diversity.pool_risk import icl_risk
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, checkpoints, labelled
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, pretrain

RIDGELESS = 1e-10  # the ridge of what is called ridgeless, in units of the features' mean square
SMALLEST = 1e-200  # that a mean square counts as: a ridge is above 0


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the sweep depends on; tuples are the axes.

    In the book: the number of tasks, at two prompts for each pair of coordinates.
    """

    d: tuple[Count, ...] = axis([20], "dimension d")
    kappa: tuple[Positive, ...] = axis([0.25, 0.5, 1.0, 2.0, 5.0], "tasks over dimension κ")
    tau: tuple[Positive, ...] = axis([2.0], "prompts over dimension squared τ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    alpha: Positive = 4.0  # examples of a prompt over d
    rho: NonNegative = 0.1  # variance of the label noise

    def check(self) -> None:
        """Refuse empty pools, and the pole at which the risk is infinite."""
        for kappa in self.kappa:
            if round(kappa * min(self.d)) < 1:
                raise ValueError(f"kappa must leave at least one task; got {kappa} at d = {min(self.d)}")
        if 1 in self.tau:
            raise ValueError("tau must differ from 1, where the risk is infinite")


experiment = Experiment(
    Setting, version=1, loops=("d", "kappa", "tau", "seed"), chunk={"kappa": 1, "tau": 1}, stored="longer",
    gives={
        "risk": ("risk on fresh tasks", "1"),
        "limit": ("risk, all sizes large", "1", ("d", "kappa", "tau")),
    },
    presets={
        "tiny": ("Five dimensions, fewer tasks than that and more, fewer prompts than entries and more", dict(
            d=(5,), kappa=(0.5, 2.0), tau=(0.5, 3.0), seed=(0, 1, 2))),
        "descent": ("Number of prompts, at five tasks a dimension", dict(
            kappa=(5.0,), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0))),
        "longer": ("Prompts and tasks at the dimension where the theory should hold", dict(
            d=(40,), kappa=(0.5, 5.0), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, float]:
    """Fit by least squares of least norm: the exact risk on fresh tasks, and the theory."""
    examples, where = round(s.alpha * s.d), devices.device(device)
    gamma = fitted(s.d, examples, round(s.kappa * s.d), round(s.tau * s.d * s.d), s.rho, s.seed, where)
    return {"risk": exact_risk(gamma, examples, s.rho), "limit": icl_risk(s.tau, s.alpha, s.kappa, s.rho)}


run = experiment.run


def features(drawn: Drawn, query: torch.Tensor) -> torch.Tensor:
    r"""What the entries of Gamma are multiplied with, one row of d (d + 1) numbers a prompt.

    .. math:: x_q \otimes \Big[\frac d\ell\sum_i y_i x_i,\ \frac1\ell\sum_i y_i^2\Big]
    """
    d = drawn.task.shape[-2]
    last = drawn.moments[..., -1, :]
    summary = torch.cat([d * last[..., :d, :], last[..., d:, :]], -2)
    return torch.einsum("...bd,...eb->...bde", query, summary).flatten(-2)


def exact_risk(gamma: np.ndarray, examples: int, rho: float) -> float:
    r"""Risk of a fitted d x (d + 1) matrix on fresh Gaussian tasks, query noise included: no test data.

    The column that meets :math:`\frac1\ell\sum y^2` is uncorrelated with all else, and adds its own length.
    """
    d = len(gamma)
    linear = attention_risk(d * gamma[:, :d].T, examples, np.eye(d) / d, rho**0.5)
    square = (1 + 2 / examples) * ((1 + rho) ** 2 + 2 / d)
    return linear + float((gamma[:, d] ** 2).sum()) / d * square + rho


def fitted(d: int, examples: int, tasks: int, prompts: int, rho: float, seed: int, device) -> np.ndarray:
    """The matrix of least norm that minimises the squared error over the prompts of a pretraining set."""
    law = LinearPrompts(n=examples, d=d, noise=rho**0.5, covariance=(1 / d,) * d, pool=TaskPool(tasks, seed))
    drawn = Drawn(*(part.to(device) for part in draw_moments(law, prompts, seed)))
    query = replace(law, n=1).draw(prompts, seed, -1, device)  # fresh inputs; the task is that of the moments
    labels = torch.einsum("bd,db->b", query.query[:, 0], drawn.task) + query.observed[:, 0] - query.target[:, 0]
    rows = features(drawn, query.query[:, 0])
    scale = max(float(rows.square().mean()), SMALLEST) * rows.shape[-1]
    return ridge(rows, labels, RIDGELESS * scale).reshape(d, d + 1).cpu().numpy()


def estimators(
    sizes: tuple[int, ...], d: int = 8, n: int = 16, noise: float = 0.5, prompts: int = 100,
    seed: tuple[int, ...] = tuple(range(10)),
) -> xr.Dataset:
    """dMMSE and ridge regression, example by example, on fresh tasks and on tasks of the pool: squared errors over d.

    Each seed has a pool of its own for every size. Errors are to the noiseless target, after 0 to n - 1 examples.
    """
    errors = np.empty((2, 2, len(sizes), len(seed), n))  # estimator, tasks
    apart = np.empty((len(sizes), len(seed), n))
    for i, size in enumerate(sizes):
        for j, one in enumerate(seed):
            pool = TaskPool(size, one)
            rivals = (DiscreteMMSE(pool.tasks(d), noise), Ridge(noise**2))
            for k, own in enumerate((None, pool)):
                context, _, _, task, _ = LinearPrompts(n=n, d=d, noise=noise, pool=own).draw(prompts, one)
                target = torch.einsum("bnd,bd->bn", context.x, task)
                answers = [predict_each(rival, context) for rival in rivals]
                for r, answer in enumerate(answers):
                    errors[r, k, i, j] = (answer - target).square().mean(0).numpy() / d
                if own is None:
                    apart[i, j] = (answers[0] - answers[1]).square().mean(0).numpy() / d
    dims = ("estimator", "tasks", "size", "seed", "position")
    axes = {"estimator": ("estimator", ["dMMSE", "ridge"], "estimator"), "tasks": ("tasks", ["fresh", "pool"], "tasks"),
            "size": ("size", list(sizes), "tasks in the pool M"), "seed": ("seed", list(seed), "seed"),
            "position": ("position", list(range(n)), "examples seen")}
    return labelled({"error": (dims, errors, "squared error over d"),
                     "apart": (dims[2:], apart, "squared distance of the two, over d")}, axes)


@dataclass(frozen=True)
class Pretrained(Checked):
    """A transformer pretrained on a pool of tasks, and how."""

    tasks: Count = 4  # M
    d: Count = 4
    n: Count = 8  # the longest context
    noise: NonNegative = 0.5
    width: Count = 48
    layers: Count = 3
    heads: Count = 2
    sigma_0: NonNegative = 0.1  # initial weights
    steps: Count = 5000
    batch: Count = 64
    lr: Positive = 4e-3
    warmup: Natural = 100
    decay: Literal["cosine", "linear", "constant"] = "cosine"
    beta_2: Fraction = 0.98

    @classmethod
    def few(cls) -> "Pretrained":
        """Four tasks."""
        return cls()

    @classmethod
    def many(cls) -> "Pretrained":
        """As many as a small network does not remember."""
        return cls(tasks=256)

    @classmethod
    def paper(cls, tasks: int) -> "Pretrained":
        """One point of the grid of Raventos et al., for a GPU; they go from 4 tasks to about a million."""
        return cls(tasks=tasks, d=8, n=15, width=128, layers=8, sigma_0=0.02, steps=500_000, batch=256, lr=1e-3,
                   warmup=250_000, decay="linear", beta_2=0.999)

    def law(self) -> LinearPrompts:
        """The prompts that it is pretrained on."""
        return LinearPrompts(n=self.n, d=self.d, noise=self.noise, pool=TaskPool(self.tasks))

    def path(self) -> Path:
        """Where it lies."""
        return experiment.path(f"_{self.d}_{self.tasks}.safetensors")

    def untrained(self) -> PromptTransformer:
        """The network at its start."""
        return PromptTransformer(self.d, self.n, self.width, self.layers, self.heads, self.sigma_0)


def network(given: Pretrained, device: str = "cpu") -> tuple[PromptTransformer, torch.Tensor]:
    """The transformer from its checkpoint, and the tasks that it was pretrained on.

    Raises ValueError if there is no checkpoint, or it belongs to another setting.
    """
    kept = checkpoints.load(given.path(), given, device)
    pool, model = kept.pop("pool").double(), given.untrained()
    model.load_state_dict({name: value.float() for name, value in kept.items()})
    return model.to(device).eval(), pool


def retrain(given: Pretrained, device: str = "cpu") -> None:
    """Pretrain it again, and write its checkpoint."""
    recipe = Recipe(given.steps, given.batch, given.lr, given.warmup, given.decay, beta_2=given.beta_2)
    model = pretrain(given.untrained(), given.law(), recipe, device=device).model
    half = {name: value.half() for name, value in model.state_dict().items()}
    checkpoints.save(given.path(), half | {"pool": given.law().pool.tasks(given.d).float()}, given)


def compare(given: Pretrained, model: PromptTransformer, pool: torch.Tensor, prompts: int = 400,
            seed: tuple[int, ...] = tuple(range(10)), own: bool = False) -> xr.Dataset:
    """A transformer beside dMMSE for its tasks and ridge regression: errors and distances over d.

    On fresh tasks, or on those of its own pool.
    """
    names = ("transformer", "dMMSE", "ridge")
    rivals = (DiscreteMMSE(pool, given.noise), Ridge(given.noise**2))
    context, query, _, task, observed = LinearPrompts(n=given.n, d=given.d, noise=given.noise).draw(prompts, seed)
    whole = Context(torch.cat([context.x, query], -2), torch.cat([context.y, observed], -1))
    if own:
        picked = rng.over_seeds(
            lambda one: torch.randint(len(pool), (prompts,), generator=rng.generator(one, "tasks of its own")), seed
        )
        moved, task = pool[picked] - task, pool[picked]
        whole = Context(whole.x, whole.y + torch.einsum("...d,...nd->...n", moved, whole.x))
    clean = torch.einsum("...d,...nd->...n", task, whole.x)
    with torch.no_grad():
        answers = [model.predictions(whole.x.float(), whole.y.float()).double()]
    answers += [predict_each(rival, whole) for rival in rivals]
    error = torch.stack([(answer - clean).square().mean(1) for answer in answers]) / given.d
    apart = torch.stack([(answers[0] - answer).square().mean(1) for answer in answers]) / given.d
    axes = {"estimator": ("estimator", list(names), "estimator"), "seed": ("seed", list(seed), "seed"),
            "position": ("position", list(range(given.n + 1)), "examples seen")}
    return labelled({"error": (tuple(axes), error, "squared error over d"),
                     "apart": (tuple(axes), apart, "squared distance to the transformer, over d")}, axes)
