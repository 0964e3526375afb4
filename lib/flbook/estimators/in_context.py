r"""Estimators that answer a prompt: what a trained network is compared with.

Each is called as ``estimator(context, query)``, with a `flbook.shapes.Context` of n examples and queries of shape
``(*E, q, d)``, and returns predictions of shape ``(*E, q)``, for all prompts at once. Without examples (n = 0) each
predicts the mean under its prior: the mean of the pool for `DiscreteMMSE`, 0 for all others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Count, Positive, require
from flbook.shapes import Context

Queries = Float[Tensor, "*#E q d"]
Predictions = Float[Tensor, "*E q"]


@dataclass(frozen=True)
class LeastSquares:
    r"""Least squares; of all solutions (there are many if n < d) the shortest, :math:`\hat\beta = X^+ y`.

    Singular values below 1e-12 of the largest count as zero (1e-5 in single precision).

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> answer = LeastSquares()(Context(x, y=torch.tensor([3.0, 2.0])), torch.tensor([[1.0, 1.0]]))
    >>> bool((answer - 4).abs() < 1e-5)  # the weights are (3, 1)
    True
    """

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        weights = torch.einsum("...n,...dn->...d", context.y, torch.linalg.pinv(context.x, rtol=_cutoff(context.x)))
        return _linear(query, weights)


def _cutoff(x: Tensor) -> float:
    return 1e-12 if x.dtype == torch.float64 else 1e-5


@dataclass(frozen=True)
class Ridge:
    r"""Ridge regression :math:`\hat\beta = (X^\top X + \lambda I)^{-1} X^\top y`.

    With :math:`\lambda = \sigma_y^2/\psi^2` it is the Bayes estimator for tasks :math:`\beta \sim N(0, \psi^2 I)` and
    label noise :math:`\sigma_y`.

    Attributes
    ----------
    lam
        A number above 0 (without a ridge take `LeastSquares`), or a positive definite matrix (d, d) that takes the
        place of :math:`\lambda I`: :math:`\sigma_y^2` times the inverse covariance of the tasks.

    Raises
    ------
    ValueError
        If the ridge is neither.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> Ridge(3.0)(Context(x, y=torch.tensor([4.0, 2.0])), torch.tensor([[1.0, 0.0]]))
    tensor([1.])
    """

    lam: float | Tensor

    def __post_init__(self):
        if not isinstance(self.lam, Tensor):
            require("lam", self.lam, Positive)

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        size = context.x.shape[-1]
        matrix = torch.as_tensor(self.lam, dtype=context.x.dtype, device=context.x.device)
        matrix = matrix if matrix.ndim else matrix * torch.eye(size, dtype=context.x.dtype, device=context.x.device)
        gram = torch.einsum("...nd,...ne->...de", context.x, context.x) + matrix
        moment = torch.einsum("...n,...nd->...d", context.y, context.x)
        return _linear(query, torch.cholesky_solve(moment[..., None], torch.linalg.cholesky(gram))[..., 0])


@dataclass(frozen=True)
class KernelRidge(Checked):
    r"""Kernel ridge regression :math:`\hat f(x) = \sum_i k(x, x_i) [(K + \lambda I)^{-1} y]_i`.

    The mean of a Gaussian process of covariance k under label noise of variance :math:`\lambda`; with
    :math:`k(x, x') = \langle x, x'\rangle` it is `Ridge` of the same :math:`\lambda`.

    Attributes
    ----------
    kernel
        Maps points (*E, n, d) and (*E, p, d) to (*E, n, p), such as those of `flbook.models.kernels`.
    lam
        The ridge.

    Raises
    ------
    ValueError
        If the ridge is no number above 0.
    """

    kernel: Callable[[Tensor, Tensor], Tensor]
    lam: Positive

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        gram = self.kernel(context.x, context.x)
        gram = gram + self.lam * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        alpha = torch.cholesky_solve(context.y[..., None], torch.linalg.cholesky(gram))[..., 0]
        return torch.einsum("...n,...qn->...q", alpha, self.kernel(query, context.x))


@dataclass(frozen=True)
class NearestNeighbours(Checked):
    """The mean label of the k examples nearest to the query; of all examples while there are fewer than k.

    Raises ValueError if k is less than 1.
    """

    k: Count = 3

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
        weights = torch.einsum("...n,...nd->...d", context.y, context.x) / max(context.y.shape[-1], 1)
        return _linear(query, weights)


@dataclass(frozen=True)
class GradientStep(Checked):
    r"""Gradient descent on the prompt's own squared error, from :math:`\beta_0 = 0`.

    .. math:: \beta_{l+1} = \beta_l + \frac{\eta}{n} \sum_i (y_i - \langle\beta_l, x_i\rangle)\, x_i

    Attributes
    ----------
    eta
        One step size for all steps, or a tuple with one for each.
    steps
        How many; with a tuple its length counts instead.

    Raises
    ------
    ValueError
        If a step size is no number, or there is no step.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> GradientStep(eta=1.0, steps=2)(Context(x, y=torch.tensor([4.0, 2.0])), torch.tensor([[1.0, 0.0]]))
    tensor([3.])
    """

    eta: float | tuple[float, ...]
    steps: Count = 1

    def __call__(self, context: Context, query: Queries) -> Predictions:
        """Predictions at the queries."""
        weights = torch.zeros_like(context.x[..., :1, :].sum(-2))
        for eta in self.eta if isinstance(self.eta, tuple) else (self.eta,) * self.steps:
            residual = context.y - torch.einsum("...d,...nd->...n", weights, context.x)
            descent = torch.einsum("...n,...nd->...d", residual, context.x)  # n times minus the gradient
            weights = weights + eta / max(context.y.shape[-1], 1) * descent
        return _linear(query, weights)


@dataclass(frozen=True)
class Lasso(Checked):
    r"""The lasso :math:`\arg\min_\beta \frac1{2n}\|y - X\beta\|^2 + \lambda\|\beta\|_1`, prompt by prompt on the host.

    Solved by coordinate descent; the estimator of scikit-learn. Without a penalty take `LeastSquares`.

    Raises ValueError if lam is no number above 0.
    """

    lam: Positive

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
class DiscreteMMSE(Checked):
    r"""The Bayes estimator for a task drawn from a finite pool, the discrete minimum mean squared error estimator.

    .. math:: \hat\beta = \frac{\sum_m p_m \beta_m}{\sum_m p_m}, \qquad
              p_m = \exp\Big(-\frac{1}{2\sigma_y^2} \sum_i (y_i - \langle\beta_m, x_i\rangle)^2\Big)

    Attributes
    ----------
    pool
        The tasks, shape (pool, d).
    noise
        Standard deviation :math:`\sigma_y` of the label noise.
    chunk
        Tasks worked on together, which bounds the memory at chunk numbers a prompt however large the pool; the sums are
        carried on relative to the largest exponent so far.

    Raises
    ------
    ValueError
        If a number is outside its domain, or the pool is no matrix of tasks.

    Source: Raventos et al. (2023), Section 2.

    Examples
    --------
    >>> rule = DiscreteMMSE(pool=torch.tensor([[1.0, 0.0], [0.0, 1.0]]), noise=0.01)
    >>> x, y = torch.tensor([[2.0, 0.0]]), torch.tensor([2.0])
    >>> rule(Context(x, y), torch.tensor([[1.0, 5.0]]))  # only the first task fits
    tensor([1.])
    """

    pool: Tensor
    noise: Positive
    chunk: Count = 4096

    def __post_init__(self):
        super().__post_init__()
        if self.pool.ndim != 2 or not len(self.pool):
            raise ValueError(f"pool must hold at least one task, of shape (tasks, d); its shape is "
                             f"{tuple(self.pool.shape)}")

    def weights(self, context: Context) -> Float[Tensor, "*E d"]:
        """The posterior mean of the task.

        Parameters
        ----------
        context
            Prompts of n examples, inputs of shape ``(*E, n, d)``.

        Returns
        -------
        Tensor
            Shape ``(*E, d)``.
        """
        gram = torch.einsum("...nd,...ne->...de", context.x, context.x)
        labelled = torch.einsum("...n,...nd->...d", context.y, context.x)
        top = torch.full_like(labelled[..., :1], -math.inf)
        mass, moment = torch.zeros_like(top), torch.zeros_like(labelled)
        for tasks in self.pool.to(context.x).split(self.chunk):  # the sum over i of y_i^2 is common to all tasks
            fit = torch.einsum("...d,md->...m", labelled, tasks)
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
    """Every example of a prompt predicted from those before it, the first one from none, as a causal network does.

    Parameters
    ----------
    predictor
        Called as the estimators of this file are.
    context
        Prompts, inputs of shape ``(*E, n, d)``.

    Returns
    -------
    Tensor
        Shape ``(*E, n)``.

    Examples
    --------
    >>> predict_each(Averaging(), Context(torch.ones(3, 1), torch.tensor([1.0, 3.0, 5.0])))
    tensor([0., 1., 2.])
    """
    x, y = context
    columns = [predictor(Context(x[..., :i, :], y[..., :i]), x[..., i : i + 1, :]) for i in range(x.shape[-2])]
    return torch.cat(columns, -1)


def _linear(query: Float[Tensor, "*#E q d"], weights: Float[Tensor, "*#E d"]) -> Float[Tensor, "*E q"]:
    return torch.einsum("...d,...qd->...q", weights, query)
