r"""Estimators that answer a prompt: what a trained network is compared with.

Each is called as ``estimator(context, query)``, with a `flbook.shapes.Context` of n examples and queries of shape
``(*E, q, d)``, and returns predictions of shape ``(*E, q)``, for all prompts at once. Without examples (n = 0) each
predicts what it believes before it has seen anything: the mean of the pool for `DiscreteMMSE`, 0 for all others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.shapes import Context

Queries = Float[Tensor, "*#E q d"]
Predictions = Float[Tensor, "*E q"]


@dataclass(frozen=True)
class LeastSquares:
    r"""Least squares; of all solutions (there are many if n < d) the shortest, :math:`\hat\beta = X^+ y`.

    Singular values below 1e-12 of the largest count as zero.
    """

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        weights = torch.einsum("...dn,...n->...d", torch.linalg.pinv(context.x, rtol=_cutoff(context.x)), context.y)
        return _linear(query, weights)


def _cutoff(x: Tensor) -> float:
    return 1e-12 if x.dtype == torch.float64 else 1e-5


@dataclass(frozen=True)
class Ridge:
    r"""Ridge regression :math:`\hat\beta = (X^\top X + \lambda I)^{-1} X^\top y`.

    With :math:`\lambda = \sigma_y^2/\psi^2` it is the Bayes estimator for tasks :math:`\beta \sim N(0, \psi^2 I)` and
    label noise :math:`\sigma_y`. `lam` is a number, or a positive definite matrix (d, d) that takes the place of
    :math:`\lambda I`: :math:`\sigma_y^2` times the inverse covariance of the tasks.

    Raises ValueError if lam is a number that is not positive and finite.
    """

    lam: float | Tensor

    def __post_init__(self):
        if not isinstance(self.lam, Tensor):
            _positive("lam", self.lam, "a ridge; without one take LeastSquares()")

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        size = context.x.shape[-1]
        matrix = torch.as_tensor(self.lam).to(context.x)
        matrix = matrix if matrix.ndim else matrix * torch.eye(size, dtype=context.x.dtype, device=context.x.device)
        gram = torch.einsum("...nd,...ne->...de", context.x, context.x) + matrix
        pull = torch.einsum("...nd,...n->...d", context.x, context.y)
        return _linear(query, torch.cholesky_solve(pull[..., None], torch.linalg.cholesky(gram))[..., 0])


@dataclass(frozen=True)
class KernelRidge:
    r"""Kernel ridge regression :math:`\hat f(x) = \sum_i k(x, x_i) [(K + \lambda I)^{-1} y]_i`.

    The mean of a Gaussian process of covariance k under label noise of variance :math:`\lambda`; with
    :math:`k(x, x') = \langle x, x'\rangle` it is `Ridge` of the same :math:`\lambda`.

    kernel: maps points (*E, n, d) and (*E, p, d) to (*E, n, p), such as those of `flbook.models.kernels`.

    Raises ValueError if lam is not positive and finite.
    """

    kernel: Callable[[Tensor, Tensor], Tensor]
    lam: float

    def __post_init__(self):
        _positive("lam", self.lam, "a ridge")

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        gram = self.kernel(context.x, context.x)
        gram = gram + self.lam * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        alpha = torch.cholesky_solve(context.y[..., None], torch.linalg.cholesky(gram))[..., 0]
        return torch.einsum("...qn,...n->...q", self.kernel(query, context.x), alpha)


@dataclass(frozen=True)
class NearestNeighbours:
    """The mean label of the k examples nearest to the query; of all examples while there are fewer than k.

    Raises ValueError if k is less than 1.
    """

    k: int = 3

    def __post_init__(self):
        _at_least_one("k", self.k, "neighbours")

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        if not context.y.shape[-1]:
            return _linear(query, torch.zeros_like(query[..., 0, :]))
        places = torch.cdist(query, context.x).topk(min(self.k, context.y.shape[-1]), largest=False).indices
        labels = context.y[..., None, :].expand(*places.shape[:-1], context.y.shape[-1])
        return labels.gather(-1, places).mean(-1)


@dataclass(frozen=True)
class Averaging:
    r"""The average :math:`\hat\beta = \frac1n\sum_i y_i x_i`: one gradient step of size 1 from zero."""

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        weights = torch.einsum("...nd,...n->...d", context.x, context.y) / max(context.y.shape[-1], 1)
        return _linear(query, weights)


@dataclass(frozen=True)
class GradientStep:
    r"""Gradient descent on the prompt's own squared error, from :math:`\beta_0 = 0`.

    .. math:: \beta_{l+1} = \beta_l + \frac{\eta}{n} \sum_i (y_i - \langle\beta_l, x_i\rangle)\, x_i

    eta: one step size for all steps, or a tuple with one for each (then `steps` is its length).

    Raises ValueError if steps is less than 1.
    """

    eta: float | tuple[float, ...]
    steps: int = 1

    def __post_init__(self):
        _at_least_one("steps", self.steps, "gradient steps")

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        weights = torch.zeros_like(context.x[..., :1, :].sum(-2))
        for eta in self.eta if isinstance(self.eta, tuple) else (self.eta,) * self.steps:
            residual = context.y - torch.einsum("...nd,...d->...n", context.x, weights)
            pull = torch.einsum("...nd,...n->...d", context.x, residual)
            weights = weights + eta / max(context.y.shape[-1], 1) * pull
        return _linear(query, weights)


@dataclass(frozen=True)
class Lasso:
    r"""The lasso :math:`\arg\min_\beta \frac1{2n}\|y - X\beta\|^2 + \lambda\|\beta\|_1`, prompt by prompt on the host.

    Solved by coordinate descent; the estimator of scikit-learn.

    Raises ValueError if lam is not positive and finite.
    """

    lam: float

    def __post_init__(self):
        _positive("lam", self.lam, "a penalty; without one take LeastSquares()")

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        from sklearn.linear_model import Lasso as Solver

        *ensemble, n, size = context.x.shape
        weights = torch.zeros(math.prod(ensemble), size, dtype=torch.float64)
        if n:
            solver = Solver(alpha=self.lam, fit_intercept=False, max_iter=10_000)
            prompts = zip(context.x.reshape(-1, n, size).cpu().numpy(), context.y.reshape(-1, n).cpu().numpy(),
                          strict=True)
            for row, (x, y) in enumerate(prompts):
                weights[row] = torch.from_numpy(solver.fit(x, y).coef_)
        return _linear(query, weights.reshape(*ensemble, size).to(context.x))


@dataclass(frozen=True)
class DiscreteMMSE:
    r"""The Bayes estimator for a task drawn from a finite pool, the discrete minimum mean squared error estimator.

    .. math:: \hat\beta = \frac{\sum_m p_m \beta_m}{\sum_m p_m}, \qquad
              p_m = \exp\Big(-\frac{1}{2\sigma_y^2} \sum_i (y_i - \langle\beta_m, x_i\rangle)^2\Big)

    pool: the tasks, shape (pool, d). noise: :math:`\sigma_y`. chunk: tasks looked at together, which bounds the memory
    at chunk numbers a prompt however large the pool; the sums are carried on relative to the largest exponent so far.

    Raises ValueError if noise is not positive and finite, or the pool is no matrix of tasks.
    Source: Raventos et al. (2023), Section 2.
    """

    pool: Tensor
    noise: float
    chunk: int = 4096

    def __post_init__(self):
        _positive("noise", self.noise, "the standard deviation of the label noise")
        _at_least_one("chunk", self.chunk, "tasks looked at together")
        if self.pool.ndim != 2 or not len(self.pool):
            raise ValueError(f"pool must hold at least one task, of shape (tasks, d); its shape is "
                             f"{tuple(self.pool.shape)}")

    def weights(self, context: Context) -> Float[Tensor, "*E d"]:
        """The posterior mean of the task."""
        gram = torch.einsum("...nd,...ne->...de", context.x, context.x)
        pull = torch.einsum("...nd,...n->...d", context.x, context.y)
        top = torch.full_like(pull[..., :1], -math.inf)
        mass, moment = torch.zeros_like(top), torch.zeros_like(pull)
        for tasks in self.pool.to(context.x).split(self.chunk):  # the sum over i of y_i^2 is common to all tasks
            fit = torch.einsum("...d,md->...m", pull, tasks)
            size = torch.einsum("...k,mk->...m", gram.flatten(-2), torch.einsum("md,me->mde", tasks, tasks).flatten(-2))
            exponent = (fit - size / 2) / self.noise**2
            higher = torch.maximum(top, exponent.amax(-1, keepdim=True))
            p = torch.exp(exponent - higher)
            shrink = torch.exp(top - higher)
            mass = mass * shrink + p.sum(-1, keepdim=True)
            moment = moment * shrink + torch.einsum("...m,md->...d", p, tasks)
            top = higher
        return moment / mass

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        return _linear(query, self.weights(context))


def predict_each(predictor: Callable[[Context, Tensor], Tensor], context: Context) -> Float[Tensor, "*E n"]:
    """Every example of a prompt predicted from those before it, the first one from none, as a causal network does."""
    x, y = context
    columns = [predictor(Context(x[..., :i, :], y[..., :i]), x[..., i : i + 1, :]) for i in range(x.shape[-2])]
    return torch.cat(columns, -1)


def _linear(query: Float[Tensor, "*#E q d"], weights: Float[Tensor, "*#E d"]) -> Float[Tensor, "*E q"]:
    return torch.einsum("...qd,...d->...q", query, weights)


def _positive(name: str, value: float, what: str) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, {what}; got {value}")


def _at_least_one(name: str, value: int, what: str) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, {what}; got {value}")
