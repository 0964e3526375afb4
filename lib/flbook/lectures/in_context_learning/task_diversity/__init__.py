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

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.dynamics.moments import Drawn, draw_moments
from flbook.estimators import DiscreteMMSE, Ridge, predict_each, ridge
from flbook.lectures.in_context_learning.task_diversity.pool_risk import icl_risk
from flbook.models.transformer import PromptTransformer
from flbook.runs import checkpoints, results
from flbook.runs.sweep import sweep
from flbook.shapes import Context
from flbook.theory.attention_risk import attention_risk
from flbook.training.pretrain import Recipe, pretrain

VERSION = 1
TINY = 1e-10  # the ridge of what is called ridgeless, in units of the features' mean square


@dataclass(frozen=True)
class Setting:
    """Everything the sweep depends on; tuples are the axes."""

    d: tuple[int, ...] = (20,)
    kappa: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 5.0)  # tasks over d
    tau: tuple[float, ...] = (2.0,)  # prompts over d^2
    seed: tuple[int, ...] = tuple(range(10))
    alpha: float = 4.0  # examples of a prompt over d
    rho: float = 0.1  # variance of the label noise

    @classmethod
    def book(cls) -> "Setting":
        """Number of tasks, at two prompts for each pair of coordinates."""
        return cls()

    @classmethod
    def descent(cls) -> "Setting":
        """Number of prompts, at five tasks a dimension."""
        return cls(kappa=(5.0,), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0))

    @classmethod
    def paper(cls) -> "Setting":
        """Prompts and tasks at the dimension where the theory should hold."""
        return cls(d=(40,), kappa=(0.5, 5.0), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0))

    def thinned(self, **change) -> "Setting":
        """The same setting with some fields changed."""
        return replace(self, **change)


def features(drawn: Drawn, query: torch.Tensor) -> torch.Tensor:
    r"""What the entries of Gamma are multiplied with, one row of d (d + 1) numbers a prompt.

    .. math:: x_q \otimes \Big[\frac d\ell\sum_i y_i x_i,\ \frac1\ell\sum_i y_i^2\Big]
    """
    d = drawn.task.shape[-2]
    last = drawn.moments[..., -1, :]
    pull = torch.cat([d * last[..., :d, :], last[..., d:, :]], -2)
    return torch.einsum("...bd,...eb->...bde", query, pull).flatten(-2)


def exact_risk(gamma: np.ndarray, examples: int, rho: float) -> float:
    r"""Risk of a fitted d x (d + 1) matrix on fresh Gaussian tasks, query noise included: no test data.

    The column that meets :math:`\frac1\ell\sum y^2` is uncorrelated with all else, and adds its own length.
    """
    d = len(gamma)
    linear = attention_risk(d * gamma[:, :d].T, examples, np.eye(d) / d, rho**0.5)
    square = (1 + 2 / examples) * ((1 + rho) ** 2 + 2 / d)
    return linear + float((gamma[:, d] ** 2).sum()) / d * square + rho


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Fit every (d, kappa, tau, seed) by least squares of least norm; its exact risk on fresh tasks, and the theory."""
    where = devices.device(device)
    shape = tuple(len(axis) for axis in (setting.d, setting.kappa, setting.tau, setting.seed))
    risk, limit = np.empty(shape), np.empty(shape[:-1])
    for i, d in enumerate(setting.d):
        examples = round(setting.alpha * d)
        for j, kappa in enumerate(setting.kappa):
            for k, tau in enumerate(setting.tau):
                limit[i, j, k] = icl_risk(tau, setting.alpha, kappa, setting.rho)
                for s, seed in enumerate(setting.seed):
                    gamma = fitted(d, examples, round(kappa * d), round(tau * d * d), setting.rho, seed, where)
                    risk[i, j, k, s] = exact_risk(gamma, examples, setting.rho)
    dims = ("d", "kappa", "tau", "seed")
    return xr.Dataset({"risk": (dims, risk, {"long_name": "risk on fresh tasks", "units": "1"}),
                       "limit": (dims[:-1], limit, {"long_name": "risk, all sizes large", "units": "1"})},
                      _coordinates(setting))


def fitted(d: int, examples: int, tasks: int, prompts: int, rho: float, seed: int, device) -> np.ndarray:
    """The matrix of least norm that minimises the squared error over the prompts of a pretraining set."""
    law = LinearPrompts(n=examples, d=d, noise=rho**0.5, covariance=(1 / d,) * d, pool=TaskPool(tasks, seed))
    drawn = draw_moments(law, prompts, seed)
    query = replace(law, n=1).draw(prompts, seed, step=-1)  # fresh inputs; the task is that of the moments
    labels = torch.einsum("bd,db->b", query.query[:, 0], drawn.task) + query.observed[:, 0] - query.target[:, 0]
    rows = features(drawn, query.query[:, 0]).to(device)
    scale = float(rows.square().mean()) * rows.shape[-1]
    return ridge(rows, labels.to(device), TINY * scale).reshape(d, d + 1).cpu().numpy()


def _coordinates(setting: Setting) -> dict[str, tuple]:
    labels = {"d": "dimension d", "kappa": "tasks over dimension κ", "tau": "prompts over dimension squared τ",
              "seed": "seed"}
    return {name: (name, list(getattr(setting, name)), {"long_name": label, "units": "1"})
            for name, label in labels.items()}


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    devices.device(device)
    for d in setting.d:
        for kappa in setting.kappa:
            if round(kappa * d) < 1:
                raise ValueError(f"kappa must leave at least one task; got {kappa} at d = {d}")
        for tau in setting.tau:
            icl_risk(tau, setting.alpha, 1.0, setting.rho)
    largest = max(setting.d)
    cell_bytes = 24 * max(setting.tau) * largest**3 * (largest + 1)  # one at a time is in memory
    return sweep(measure, setting, device=device, cell_bytes=cell_bytes, **how)


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
    axes = {"estimator": ["dMMSE", "ridge"], "tasks": ["fresh", "pool"], "size": list(sizes), "seed": list(seed),
            "position": list(range(n))}
    labels = {"size": "tasks in the pool M", "position": "examples seen"}
    return xr.Dataset(
        {"error": (dims, errors, {"long_name": "squared error over d", "units": "1"}),
         "apart": (dims[2:], apart, {"long_name": "squared distance of the two, over d", "units": "1"})},
        {name: (name, values, {"long_name": labels.get(name, name), "units": "1"}) for name, values in axes.items()})


@dataclass(frozen=True)
class Pretrained:
    """A transformer pretrained on a pool of tasks, and how."""

    tasks: int = 4  # M
    d: int = 4
    n: int = 8  # the longest context
    noise: float = 0.5
    width: int = 48
    layers: int = 3
    heads: int = 2
    sigma_0: float = 0.1  # initial weights
    steps: int = 5000
    batch: int = 64
    lr: float = 4e-3
    warmup: int = 100
    decay: str = "cosine"
    beta_2: float = 0.98

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
        return results.path("task_diversity").with_name(f"task_diversity_{self.d}_{self.tasks}.safetensors")

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
            seed: tuple[int, ...] = tuple(range(10))) -> xr.Dataset:
    """A transformer beside dMMSE for its tasks and ridge regression, on fresh tasks: errors and distances over d."""
    names = ("transformer", "dMMSE", "ridge")
    rivals = (DiscreteMMSE(pool, given.noise), Ridge(given.noise**2))
    context, query, target, task, observed = LinearPrompts(n=given.n, d=given.d, noise=given.noise).draw(prompts, seed)
    whole = Context(torch.cat([context.x, query], -2), torch.cat([context.y, observed], -1))
    clean = torch.einsum("...nd,...d->...n", whole.x, task)
    with torch.no_grad():
        answers = [model.predictions(whole.x.float(), whole.y.float()).double()]
    answers += [predict_each(rival, whole) for rival in rivals]
    error = torch.stack([(answer - clean).square().mean(1) for answer in answers]) / given.d
    apart = torch.stack([(answers[0] - answer).square().mean(1) for answer in answers]) / given.d
    axes = {"estimator": list(names), "seed": list(seed), "position": list(range(given.n + 1))}
    labels = {"position": "examples seen"}
    return xr.Dataset(
        {"error": (tuple(axes), error.numpy(), {"long_name": "squared error on fresh tasks, over d", "units": "1"}),
         "apart": (tuple(axes), apart.numpy(), {"long_name": "squared distance to the transformer, over d",
                                               "units": "1"})},
        {name: (name, values, {"long_name": labels.get(name, name), "units": "1"}) for name, values in axes.items()})


if __name__ == "__main__":
    for each in (Pretrained.few(), Pretrained.many()):
        retrain(each)
