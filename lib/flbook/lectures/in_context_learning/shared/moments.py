r"""Linear attention as a recursion on the moments of a prompt: its length leaves the cost.

A layer maps every token by one and the same matrix, which depends on the prompt through its second moments alone:

.. math:: z \leftarrow A_l z, \quad A_l = I + P_l M_l Q_l, \quad M_{l+1} = A_l M_l A_l^\top, \quad
          M_0 = \frac1n\sum_{i=1}^n z_i z_i^\top, \quad z_i = (x_i, y_i)

:math:`M_0` holds :math:`S = \frac1n\sum_i x_i x_i^\top`, :math:`\frac1n\sum_i y_i x_i` and
:math:`\frac1n\sum_i y_i^2`. For Gaussian prompts it is a Wishart matrix and can be drawn without the prompt.

Here the prompts of a batch are the LAST axis: the matrices are small, and sums run along the processor's vectors.
"""

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from flbook import rng
from flbook.data.prompts import LinearPrompts, coloured
from flbook.domains import Count, Natural, NonNegative, Positive, checked_arguments
from flbook.shapes import Context, per_member
from flbook.training.problem import Params, PopulationProblem, gradient_of


class Drawn(NamedTuple):
    """A batch of prompts as moments."""

    moments: Float[Tensor, "*E k k b"]
    task: Float[Tensor, "*E d b"]


def moments_of(context: Context) -> Float[Tensor, "*E k k b"]:
    """The moments of given prompts, of shapes ``(*E, b, n, d)`` and ``(*E, b, n)``."""
    tokens = torch.cat([context.x, context.y[..., None]], -1)
    return (tokens.mT @ tokens / tokens.shape[-2]).movedim(-3, -1).contiguous()


def draw_moments(prompts: LinearPrompts, batch: int, seed: int | tuple[int, ...], step: int = 0,
                 dtype: torch.dtype = torch.float64) -> Drawn:
    r"""Moments of a batch of prompts from their own law, at a cost that does not depend on n.

    Given the task, the tokens are Gaussian, so :math:`n M_0 = F A A^\top F^\top` with F a root of their covariance and
    A the triangle of Bartlett's decomposition.

    Parameters
    ----------
    prompts
        The law of the prompts.
    batch
        How many.
    seed, step
        The draw is a pure function of both; a tuple of seeds gives a leading axis.
    dtype
        Of the result; drawn are numbers in float64.

    Raises
    ------
    ValueError
        If tasks come from a pool of several seeds and `seed` is no tuple of as many.

    Source: Bartlett (1933).

    Examples
    --------
    >>> draw_moments(LinearPrompts(n=10**6, d=2), batch=5, seed=0).moments.shape
    torch.Size([3, 3, 5])
    """
    d, k, m = prompts.d, prompts.d + 1, min(prompts.d + 1, prompts.n)
    raw = rng.over_seeds(lambda one: _raw(prompts.n, d, m, batch, one, step), seed).to(dtype)
    normal, diagonal, below = raw.split([d, m, len(_below(k, m)[0])], -2)
    white = normal if prompts.pool is None else _from_pool(prompts, batch, seed, step).to(dtype)
    task = _root(prompts.task_covariance, d).to(dtype) @ white
    triangle = raw.new_zeros(*raw.shape[:-2], k, m, batch)
    triangle[..., range(m), range(m), :] = diagonal
    triangle[..., *_below(k, m), :] = below
    inputs = _times(_root(prompts.covariance, d).to(dtype), triangle[..., :d, :, :])
    labels = (task[..., None, :] * inputs).sum(-3) + prompts.noise * triangle[..., d, :, :]
    tokens = torch.cat([inputs, labels[..., None, :, :]], -3)
    return Drawn((tokens[..., :, None, :, :] * tokens[..., None, :, :, :]).sum(-2) / prompts.n, task)


def _from_pool(prompts: LinearPrompts, batch: int, seed: int | tuple[int, ...], step: int) -> Tensor:
    """Tasks from the pool; pools of several seeds go with as many seeds, one each."""
    pool, role = prompts.pool, f"moments tasks, step {step}"
    tasks = pool.tasks(prompts.d)
    if isinstance(pool.seed, tuple):
        if not isinstance(seed, tuple) or len(seed) != len(pool.seed):
            raise ValueError(f"seed must be a tuple of {len(pool.seed)} seeds, as the pool's; got {seed}")
        chosen = [own[pool.choose(batch, one, role)].T for own, one in zip(tasks, seed, strict=True)]
        return torch.stack(chosen)
    return rng.over_seeds(lambda one: tasks[pool.choose(batch, one, role)].T, seed)


def _below(k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns below the diagonal of a k x m matrix."""
    return np.tril_indices(k, -1, m)


def _raw(n: int, d: int, m: int, batch: int, seed: int, step: int) -> Tensor:
    """Numbers of known law, one column a prompt: the task, the triangle's diagonal (chi), what is below (normal)."""
    generator = rng.numpy_generator(seed, f"moments, step {step}")
    task = generator.standard_normal((d, batch))
    diagonal = np.sqrt(generator.chisquare(n - np.arange(m)[:, None], (m, batch)))
    below = generator.standard_normal((len(_below(d + 1, m)[0]), batch))
    return torch.from_numpy(np.concatenate([task, diagonal, below]))


def _root(covariance: tuple | None, d: int) -> Float[Tensor, "d d"]:
    """The symmetric root of a covariance in the notation of `LinearPrompts`, in float64."""
    return coloured(torch.eye(d, dtype=torch.float64), covariance)


def readout(p: Float[Tensor, "*#E L k k"], q: Float[Tensor, "*#E L k k"],
            moments: Float[Tensor, "*#E k k b"]) -> Float[Tensor, "*E d b"]:
    r"""What the layers of a `LinearTransformer` make of a prompt: the v of :math:`\hat y_q = \langle v, x_q\rangle`.

    From the last layer back, :math:`v = -[e_{d+1}^\top A_{L-1} \cdots A_0]_{1..d}`: one row instead of a matrix.
    """
    depth, size = p.shape[-3], p.shape[-1]
    eye = torch.eye(size, dtype=p.dtype, device=p.device)[..., None]
    met = [moments]
    for layer in range(depth - 1):
        now = met[-1]
        mapped = eye + _times(p[..., layer, :, :], _times_right(now, q[..., layer, :, :]))
        met.append(_Each.apply(_Each.apply(mapped, now), mapped.transpose(-3, -2)))
    row = p[..., depth - 1, -1, :, None]
    row = _rows(q[..., depth - 1, :, :], (row[..., None, :] * met[-1]).sum(-3)) + eye[-1]
    for layer in reversed(range(depth - 1)):
        through = (_rows(p[..., layer, :, :], row)[..., None, :] * met[layer]).sum(-3)
        row = row + _rows(q[..., layer, :, :], through)
    return -row[..., :-1, :]


# The innermost helpers go unchecked: a check would take as long as the product. Shapes: (*E, k, k) shared by prompts,
# (*E, k, m, b) and (*E, k, b) one a prompt.


def _times(shared: Tensor, matrices: Tensor) -> Tensor:
    """A matrix that all prompts share, times theirs."""
    return (shared @ matrices.flatten(-2)).unflatten(-1, matrices.shape[-2:])


def _times_right(matrices: Tensor, shared: Tensor) -> Tensor:
    """The matrices of the prompts times one that they share."""
    return shared.mT[..., None, :, :] @ matrices


class _Each(torch.autograd.Function):
    """Products prompt by prompt, twice as fast as sums of autograd's own: nothing larger than a factor is formed."""

    @staticmethod
    def forward(ctx, one: Tensor, other: Tensor) -> Tensor:
        """The products."""
        ctx.save_for_backward(one, other)
        return _product(one, other)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Gradients in both factors, summed over ensemble axes that a factor does not have."""
        one, other = ctx.saved_tensors
        first, second = ctx.needs_input_grad
        return (_product(grad, other.transpose(-3, -2)).sum_to_size(one.shape) if first else None,
                _product(one.transpose(-3, -2), grad).sum_to_size(other.shape) if second else None)


def _product(one: Tensor, other: Tensor) -> Tensor:
    """One matrix of each prompt times the other."""
    out = one[..., :, 0, None, :] * other[..., None, 0, :, :]
    for j in range(1, one.shape[-2]):
        out.addcmul_(one[..., :, j, None, :], other[..., None, j, :, :])
    return out


def _rows(shared: Tensor, rows: Tensor) -> Tensor:
    """Rows, one a prompt, times a matrix that they share."""
    return shared.mT @ rows


def risk(p: Tensor, q: Tensor, drawn: Drawn, covariance: Float[Tensor, "d d"]) -> Float[Tensor, "*E"]:
    """Mean squared error at a query of this covariance, averaged over the query exactly and over the batch."""
    off = readout(p, q, drawn.moments) - drawn.task
    return torch.einsum("...db,de,...eb->...", off, covariance, off) / off.shape[-1]


class MomentTraining(PopulationProblem):
    r"""Pretraining of layers on fresh prompts: a problem for `flbook.training.fit.fit`, in moments.

    Every step sees a new batch, a pure function of its number and the seed. The loss is the mean squared error, without
    a factor 1/2; it is averaged over the query in closed form. Parameters: ``p`` and ``q``, ``(seeds, L, k, k)``.

    Parameters
    ----------
    prompts
        Their law; k = d + 1.
    layers, batch
        Layers L; prompts of a step.
    seed
        An ensemble with one leading axis.
    start
        Standard deviation of the parameters at the start.
    parts
        "all" entries of P and Q are trained, or "descent": P = diag(B, 1) and Q = diag(-Gamma, 0) with B and Gamma, or
        "steps": the same with B = 0, so plain steps, one preconditioner a layer.
    clip
        The largest length of a gradient, since a rare prompt makes a very long one where layers move the inputs.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.
    """

    @checked_arguments
    def __init__(self, prompts: LinearPrompts, layers: Count, batch: Count, seed: tuple[Natural, ...],
                 start: NonNegative = 0.01, parts: Literal["all", "descent", "steps"] = "all", clip: Positive = 1.0,
                 dtype: torch.dtype = torch.float32):
        k = prompts.d + 1
        self.prompts, self.batch, self.clip, self.dtype = prompts, batch, clip, dtype
        self.seed, self.count = tuple(seed), 0  # count: the step whose batch this is
        root = _root(prompts.covariance, prompts.d)
        self.covariance = (root @ root).to(dtype)
        inner = torch.nn.functional.pad(torch.ones(k - 1, k - 1, dtype=dtype), (0, 1, 0, 1))
        free = {"all": (torch.ones(k, k, dtype=dtype),) * 2, "descent": (inner, inner), "steps": (0 * inner, inner)}
        self.free = dict(zip("pq", free[parts], strict=True))
        shape = (layers, k, k)
        self.begin = {name: start * rng.normal(shape, self.seed, f"start of {name}").to(dtype) * self.free[name]
                      for name in "pq"}
        if parts != "all":
            self.begin["p"][..., -1, -1] = 1.0

    def start(self) -> Params:
        """The parameters before training."""
        return {name: part.clone() for name, part in self.begin.items()}

    def at(self, step: int) -> "MomentTraining":
        """The problem of this step's batch."""
        there = copy.copy(self)
        there.count = step
        return there

    def to(self, device: Any) -> "MomentTraining":
        """On another device; batches are drawn on the CPU."""
        there = copy.copy(self)
        there.covariance = self.covariance.to(device)
        there.free, there.begin = ({name: part.to(device) for name, part in parts.items()}
                                   for parts in (self.free, self.begin))
        return there

    def slope(self, params: Params) -> Params:
        """Gradient of each member's risk on the step's batch, clipped."""
        drawn = draw_moments(self.prompts, self.batch, self.seed, self.count, self.dtype)
        drawn = Drawn(*(part.to(self.covariance.device) for part in drawn))
        grads = gradient_of(lambda leaves: risk(leaves["p"], leaves["q"], drawn, self.covariance), params)
        free = {name: grad * self.free[name] for name, grad in grads.items()}
        shrink = (self.clip / self.norm(free)).clamp(max=1.0)
        return {name: per_member(shrink, grad) * grad for name, grad in free.items()}

    def norm(self, direction: Params) -> Float[Tensor, " seeds"]:
        """Euclidean length of a direction, one a member."""
        return sum(part.square().flatten(1).sum(-1) for part in direction.values()).sqrt()

    def test_risk(self, params: Params, drawn: Drawn) -> Float[Tensor, " seeds"]:
        """The risk on prompts drawn before, the same for all members, in float64."""
        p, q = (params[name].double() for name in "pq")
        shared = Drawn(*(part.double()[None] for part in drawn))
        return risk(p, q, shared, self.covariance.double())


def flow(gradient: Any, u: float, w: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Gradient flow of the two factors of :math:`\Gamma = uW` at the given times, solved to 1e-12.

    .. math:: \dot u = -\langle G, W\rangle, \qquad \dot W = -u\,G, \qquad G = \nabla L(uW)

    Parameters
    ----------
    gradient
        The function :math:`\Gamma \mapsto \nabla L(\Gamma)`, on matrices ``(d, d)``.
    u, w
        Where the flow starts: a number, and a matrix ``(d, d)``.
    times
        At which it is asked, ascending; the flow starts at 0.

    Returns
    -------
    u, W
        Of shapes ``(times,)`` and ``(times, d, d)``.
    """
    from scipy.integrate import solve_ivp

    shape = w.shape

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        factor = state[1:].reshape(shape)
        slope = gradient(state[0] * factor)
        return np.r_[-(slope * factor).sum(), -state[0] * slope.ravel()]

    path = solve_ivp(rate, (0, times[-1]), np.r_[u, w.ravel()], method="LSODA", t_eval=times, rtol=1e-12, atol=1e-14)
    return path.y[0], path.y[1:].T.reshape(-1, *shape)
