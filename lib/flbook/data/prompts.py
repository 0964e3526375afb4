"""Prompts: a context of labelled examples and a query, every prompt with a task of its own; and linear prompts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Seeds, require
from flbook.shapes import Context


class Prompts(NamedTuple):
    """A batch of prompts. What a predictor is given comes first, the answer and the reason for it after."""

    context: Context  # the labelled examples, x (*E n d) and y (*E n), noise included
    query: Float[Tensor, "*E q d"]
    target: Float[Tensor, "*E q"]  # what is to be predicted at the queries, without noise
    task: Float[Tensor, "*E d"]  # what changes from prompt to prompt
    observed: Float[Tensor, "*E q"] | None = None  # labels of the queries, noise included; None where there is no noise


def map_tensors(prompts: Any, change: Callable, *others: Any) -> Any:
    """A function applied to every tensor of the prompts (and to the same one of others); None stays None.

    Parameters
    ----------
    prompts
        Prompts, or any other batch that is a named tuple of tensors, of other such tuples and of None.
    change
        A function of a tensor, and of those at its place in `others`.
    *others
        Batches of the same form.

    Returns
    -------
    NamedTuple
        A batch of the same form, made of what `change` returned.

    Examples
    --------
    >>> prompts = LinearPrompts(n=4, d=2).draw(3, seed=0)
    >>> map_tensors(prompts, torch.Tensor.float).query.dtype
    torch.float32
    """
    if prompts is None or isinstance(prompts, Tensor):
        return None if prompts is None else change(prompts, *others)
    return type(prompts)(*(map_tensors(part, change, *same) for part, *same in zip(prompts, *others, strict=True)))


@dataclass(frozen=True)
class TaskPool(Checked):
    """A finite pool of T tasks that pretraining draws from, instead of a fresh task for every prompt.

    Attributes
    ----------
    size
        Tasks T of the pool.
    seed
        The tasks depend on the pool's own seed (a tuple of seeds: one pool for each), not on that of a batch.
    replacement
        Without it no task comes twice in one batch.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Examples
    --------
    >>> TaskPool(8, seed=(0, 1)).tasks(d=3).shape
    torch.Size([2, 8, 3])
    """

    size: Count
    seed: Seeds = 0
    replacement: bool = True

    def tasks(self, d: int, device="cpu", dtype: torch.dtype = torch.float64) -> Float[Tensor, "*S T d"]:
        """All tasks of the pool, standard normal. They are drawn on the CPU: a pool is the same everywhere.

        Parameters
        ----------
        d
            Dimension of a task.
        device, dtype
            Device and dtype of the result.

        Returns
        -------
        Tensor
            Shape ``(*S, T, d)``, one leading axis if the pool's seed is a tuple.
        """
        return _tasks(self, d, str(device), dtype, rng.fresh_seed())

    def choose(self, batch: int, seed: int, role: str, device="cpu") -> Tensor:
        """The places in the pool of one batch of tasks. Raises ValueError as `check` does.

        Parameters
        ----------
        batch
            Number of tasks.
        seed, role
            Seed and name of the draw; see `flbook.rng`.
        device
            Device that draws.

        Returns
        -------
        Tensor
            Whole numbers below T, shape ``(batch,)``.
        """
        self.check(batch)
        generator = rng.generator(seed, role, device)
        if self.replacement:
            return torch.randint(self.size, (batch,), generator=generator, device=device)
        return torch.randperm(self.size, generator=generator, device=device)[:batch]

    def check(self, batch: int) -> None:
        """Refuse a batch that the pool cannot fill.

        Parameters
        ----------
        batch
            Number of tasks.
        """
        if not self.replacement and batch > self.size:
            raise ValueError(f"batch must be at most the pool's size of {self.size} tasks, since they are drawn "
                             f"without replacement; got {batch}")


@dataclass(frozen=True)
class LinearPrompts(Checked):
    r"""Linear regression in a prompt.

    .. math:: y_i = \langle\beta, x_i\rangle + \varepsilon_i, \qquad x_i \sim N(0, \Lambda), \quad
              \beta \sim N(0, \Lambda_\beta), \quad \varepsilon_i \sim N(0, \sigma_y^2)

    Attributes
    ----------
    n
        Examples of a prompt.
    d
        Dimension of an input.
    noise
        Standard deviation :math:`\sigma_y` of the label noise.
    covariance, task_covariance
        :math:`\Lambda` and :math:`\Lambda_\beta`, identities if None; d numbers are a diagonal, d rows a matrix (an
        array or tensor will do).
    pool
        A finite pool of tasks, to which the task covariance is applied.
    queries
        Queries on one context.

    Raises
    ------
    ValueError
        If a field is outside its domain, or a covariance is not symmetric and positive semi-definite of size d.

    Source: Garg et al. (2022), Section 3; Zhang, Frei and Bartlett (2024), Section 2.

    Examples
    --------
    >>> prompts = LinearPrompts(n=10, d=5).draw(batch=3, seed=0)
    >>> prompts.context.x.shape, prompts.context.y.shape, prompts.query.shape
    (torch.Size([3, 10, 5]), torch.Size([3, 10]), torch.Size([3, 1, 5]))
    """

    n: Count = 10
    d: Count = 5
    noise: NonNegative = 0.0
    covariance: Any = None
    pool: TaskPool | None = None
    queries: Count = 1
    task_covariance: Any = None

    def __post_init__(self):
        super().__post_init__()
        for name in ("covariance", "task_covariance"):
            object.__setattr__(self, name, as_covariance(name, getattr(self, name), self.d))

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch of prompts, a pure function of (seed, step) on each kind of device.

        Inputs, tasks and noise are drawn one by one, so the inputs stay when noise or pool change.

        Parameters
        ----------
        batch
            Number of prompts.
        seed
            One seed, or a tuple of seeds, which gives one leading axis.
        step
            Number of the batch.
        device, dtype
            Device and dtype of the numbers.

        Returns
        -------
        Prompts
            Contexts, ``x`` of shape ``(*E, batch, n, d)``, queries of shape ``(*E, batch, queries, d)``.
        """
        require("batch", batch, Count)

        def normal(what: str, *shape: int) -> Tensor:
            return rng.normal((batch, *shape), seed, f"prompts {what}, step {step}", device, dtype)

        x = coloured(normal("inputs", self.n + self.queries, self.d), self.covariance)
        task = coloured(self._tasks(batch, seed, step, device, dtype, normal), self.task_covariance)
        clean = torch.einsum("...d,...nd->...n", task, x)
        y = clean + self.noise * normal("noise", self.n + self.queries) if self.noise else clean
        n = self.n
        return Prompts(Context(x[..., :n, :], y[..., :n]), x[..., n:, :], clean[..., n:], task, y[..., n:])

    def _tasks(self, batch: int, seed, step: int, device, dtype, normal) -> Tensor:
        """Fresh tasks, or tasks from the pool."""
        pool = self.pool
        if pool is None:
            return normal("tasks", self.d)
        tasks, role = pool.tasks(self.d, device, dtype), f"prompts tasks, step {step}"
        if isinstance(pool.seed, tuple):
            if not isinstance(seed, tuple) or len(seed) != len(pool.seed):
                raise ValueError(f"seed must be a tuple of {len(pool.seed)} seeds, as the pool's; got {seed}")
            chosen = zip(tasks, seed, strict=True)
            return torch.stack([own[pool.choose(batch, one, role, device)] for own, one in chosen])
        return rng.over_seeds(lambda one: tasks[pool.choose(batch, one, role, device)], seed)


def check_batch(batch: int) -> None:
    """Refuse a batch without prompts.

    Parameters
    ----------
    batch
        Number of prompts.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, the prompts of a batch; got {batch}")


def check_noise(noise: float) -> None:
    """Refuse what is no standard deviation.

    Parameters
    ----------
    noise
        Standard deviation of the label noise.
    """
    require("noise", noise, NonNegative)


def as_covariance(name: str, given, d: int) -> tuple | None:
    """A covariance as plain numbers: d of them (a diagonal), or d rows; None stays None.

    Parameters
    ----------
    name
        Name that a refusal gives it.
    given
        d numbers, d rows of them, as sequence, array or tensor; or None.
    d
        Dimension of an input.

    Returns
    -------
    tuple or None
        d floats, d tuples of d floats, or None.

    Raises
    ------
    ValueError
        If it is of another size, not symmetric, or not positive semi-definite.
    """
    if given is None:
        return None
    try:
        matrix = torch.as_tensor(given, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold d = {d} numbers or d rows of them; got {given!r}") from None
    if matrix.shape not in ((d,), (d, d)):
        raise ValueError(f"{name} must hold d = {d} numbers or d rows of them; got shape {tuple(matrix.shape)}")
    full = torch.diag(matrix) if matrix.ndim == 1 else matrix
    if not bool(full.isfinite().all()) or not torch.allclose(full, full.T, rtol=1e-10, atol=1e-12):
        raise ValueError(f"{name} must be finite and symmetric; it differs from its transpose by up to "
                         f"{float((full - full.T).abs().max()):.3g}")
    lowest, highest = (float(value) for value in torch.linalg.eigvalsh(full)[[0, -1]])
    if lowest < -1e-10 * max(abs(highest), abs(lowest)):
        raise ValueError(f"{name} must be positive semi-definite; its smallest eigenvalue is {lowest:.3g}")
    return tuple(tuple(row) if isinstance(row, list) else row for row in matrix.tolist())


def coloured(white: Float[Tensor, "*E d"], covariance: tuple | None) -> Float[Tensor, "*E d"]:
    r""":math:`\Lambda^{1/2} z` for standard normal z: numbers with this covariance, as `as_covariance` gives it.

    Parameters
    ----------
    white
        z, shape ``(*E, d)``.
    covariance
        :math:`\Lambda`, d numbers (a diagonal) or d rows; None is the identity.

    Returns
    -------
    Tensor
        Shape ``(*E, d)``.
    """
    if covariance is None:
        return white
    root = _root(covariance, str(white.device), white.dtype)
    return white * root if root.ndim == 1 else torch.einsum("...d,cd->...c", white, root)


# A training loop draws the next batch at every step: what stays the same is made once and waits on its device.
@lru_cache(maxsize=8)
def _tasks(pool: TaskPool, d: int, device: str, dtype: torch.dtype, fresh: str | None) -> Tensor:
    """The tasks of a pool; `fresh` is FLBOOK_SEED, on which they depend."""
    return rng.normal((pool.size, d), pool.seed, "pool of tasks").to(device, dtype)


@lru_cache(maxsize=8)
def _root(covariance: tuple, device: str, dtype: torch.dtype) -> Tensor:
    """The symmetric root, in float64 on the CPU, so that a nearly singular matrix has the same one everywhere."""
    matrix = torch.tensor(covariance, dtype=torch.float64)
    if matrix.ndim == 1:
        return matrix.clamp(min=0).sqrt().to(device, dtype)
    values, vectors = torch.linalg.eigh(matrix)
    return ((vectors * values.clamp(min=0).sqrt()) @ vectors.T).to(device, dtype)
