r"""Token coordinates: training of token-selection attention at a cost that does not depend on the dimension.

With :math:`X \in R^{N \times d}` all N = nL training tokens and a query that starts at 0, every iterate has the form

.. math:: \mathbf q = W_0 X^\top a, \qquad W = W_0 + W_0 X^\top B X

(B stays 0 if W is not trained), since the gradients are :math:`\nabla_{\mathbf q} = W X^\top c` and
:math:`\nabla_W = \mathbf q\, c^\top X` with one number c a token. So a and B are the state, and inner products of
tokens and signals are all that training and testing ask of the d-dimensional vectors.

Source: the model of Sakamoto and Sato (2025); the algorithm is this book's.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Positive, checked_arguments
from flbook.lectures.benign_overfitting.shared.tokens import TokenSample, fresh_tokens
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import EmpiricalProblem, Params


class TokenGram(NamedTuple):
    r"""Inner products of the N training tokens and the two signals: plain, through :math:`M = W_0^\top W_0`, and M^2.

    Without an initial W (the identity) the three are the same tensors.
    """

    x_x: Float[Tensor, "*#E N N"]
    mu_x: Float[Tensor, "*#E 2 N"]
    x_m_x: Float[Tensor, "*#E N N"]
    mu_m_x: Float[Tensor, "*#E 2 N"]
    x_mm_x: Float[Tensor, "*#E N N"]
    mu_norm: Float[Tensor, "*#E"]

    @classmethod
    def of(cls, sample: TokenSample, w: Float[Tensor, "*E d d"] | None = None) -> "TokenGram":
        """From given tokens and initial W."""
        x, mu = sample.x.flatten(-3, -2), sample.mu.to(sample.x)
        x_x, mu_x, size = inner(x, x), inner(mu, x), mu[0].norm()
        if w is None:
            return cls(x_x, mu_x, x_x, mu_x, x_x, size)
        keys, signal_keys = x @ w.to(x).mT, mu @ w.to(x).mT  # W x, W mu
        back = keys @ w.to(x)  # M x
        return cls(x_x, mu_x, inner(keys, keys), inner(signal_keys, keys), inner(back, back), size)

    @classmethod
    def with_signals(
        cls, noise: Float[Tensor, "*E n L d"], pattern: Float[Tensor, "n L 2"], mu_norm: Float[Tensor, " mu"]
    ) -> "TokenGram":
        """The same noise under signals of several strengths along the first two axes: a new last ensemble axis."""
        xi, share = noise.flatten(-3, -2), pattern.flatten(-3, -2).to(noise)
        size, along = mu_norm.to(noise)[:, None, None], xi[..., None, :, :2]
        cross = size * inner(along, share)  # noise along the signals, times the signals
        x_x = inner(xi, xi)[..., None, :, :] + cross + cross.mT + size**2 * inner(share, share)
        mu_x = size * along.mT + size**2 * share.mT
        return cls(x_x, mu_x, x_x, mu_x, x_x, mu_norm.to(noise))

    def to(self, *where: Any) -> "TokenGram":
        """On another device or in another dtype; what is one tensor stays one."""
        moved = {id(part): part.to(*where) for part in self}
        return TokenGram(*(moved[id(part)] for part in self))


def inner(rows: Tensor, others: Tensor) -> Tensor:
    """All inner products of the rows of two matrices."""
    return torch.einsum("...nd,...pd->...np", rows, others)


@dataclass(frozen=True)
class TokenTraining(EmpiricalProblem):
    """Attention that selects tokens by one trained query, as a training problem in token coordinates.

    What is trained are ``{"query": (*E, N)}``, the coordinates a, and with ``train_keys`` also ``"w": (*E, N, N)``, the
    coordinates B. Any rule of `flbook.training.optimizers` that is linear in gradients runs on them.

    Parameters
    ----------
    gram
        Inner products of the N = n L training tokens and the signals.
    observed
        Labels of the loss, shape ``(*E, n)``.
    pattern
        Signals in the L tokens of a fresh sample of label +1, and of label -1, shape ``(2, L, 2)``.
    train_keys
        Is W trained too?
    sigma_xi
        Standard deviation of the noise in a coordinate of a token.
    loss
        One of `flbook.training.losses`.

    Raises
    ------
    ValueError
        If labels are not +1 and -1, or do not fit the tokens.

    Examples
    --------
    >>> from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
    >>> data = TokenSelection(n=6, d=50)
    >>> problem = TokenTraining.of(data, data.draw(seed=0))
    >>> problem.attention(problem.start())[0].tolist() == [1 / data.tokens] * data.tokens  # uniform at the start
    True
    """

    coefficients = True

    gram: TokenGram
    observed: Float[Tensor, "*#E n"]  # labels of the loss
    pattern: Float[Tensor, "2 L 2"]  # signals in the tokens of a fresh sample of label +1, of label -1
    train_keys: bool = False
    sigma_xi: float = 1.0
    loss: Any = logistic

    def __post_init__(self):
        check_labels(self.observed)
        if self.observed.shape[-1] * self.tokens != self.gram.x_x.shape[-1]:
            raise ValueError(f"labels of shape {tuple(self.observed.shape)} do not fit {self.gram.x_x.shape[-1]} "
                             f"tokens, {self.tokens} a sample")

    @classmethod
    def of(cls, data: Any, sample: TokenSample, w: Tensor | None = None) -> "TokenTraining":
        """The same problem as ``Training(TokenAttention(data.head, ...), sample.x, sample.observed)``.

        w: the initial W if it is trained.
        """
        labels = torch.tensor([1.0, -1.0], dtype=torch.float64)
        gram = TokenGram.of(sample, None if w is None else w.detach())
        return cls(gram, sample.observed, data.pattern(labels), w is not None, data.sigma_xi)

    def to(self, *where: Any) -> "TokenTraining":
        """On another device or in another dtype."""
        moved = {name: getattr(self, name).to(*where) for name in ("gram", "observed", "pattern")}
        return replace(self, **moved)

    @property
    def tokens(self) -> int:
        """Tokens of a sample."""
        return self.pattern.shape[-2]

    @cached_property
    def values(self) -> Float[Tensor, "*E n L"]:
        """What the head reads in each training token."""
        g = self.gram
        along = (g.mu_x[..., 0, :] - g.mu_x[..., 1, :]) / (2**0.5 * g.mu_norm[..., None] ** 2)
        return along.unflatten(-1, (-1, self.tokens))

    @cached_property
    def differences(self) -> Float[Tensor, "*E n L L"]:
        """By how much each token's value exceeds each other's in the same sample."""
        return self.values[..., :, None] - self.values[..., None, :]

    def start(self) -> Params:
        """A query of zero, and no change of W."""
        g = self.gram
        members = torch.broadcast_shapes(g.x_x.shape[:-2], self.observed.shape[:-1])
        count = g.x_x.shape[-1]
        params = {"query": g.x_x.new_zeros(*members, count)}
        return params | ({"w": g.x_x.new_zeros(*members, count, count)} if self.train_keys else {})

    def added(self, params: Params) -> Float[Tensor, "*E N"] | None:
        r"""The coordinates b of what training W adds to :math:`u = W^\top\mathbf q = M X^\top a + X^\top b`."""
        if "w" not in params:
            return None
        return times(params["w"].mT, times(self.gram.x_m_x, params["query"]))

    def scores(self, params: Params) -> Float[Tensor, "*E n L"]:
        r"""Scores :math:`\langle u, x\rangle` of the training tokens."""
        scores, b = times(self.gram.x_m_x, params["query"]), self.added(params)
        return (scores if b is None else scores + times(self.gram.x_x, b)).unflatten(-1, (-1, self.tokens))

    def attention(self, params: Params) -> Float[Tensor, "*E n L"]:
        """The weight of each training token."""
        return self.scores(params).softmax(-1)

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        return (self.attention(params) * self.values).sum(-1)

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coordinates; not the derivative in a and B."""
        weight = self.attention(params)
        slope = self.loss.slope((weight * self.values).sum(-1), observed) / observed.shape[-1]
        # value minus output, as a sum of differences: exact also where nearly all weight is on one token
        c = (slope[..., None] * weight * times(self.differences, weight)).flatten(-2)
        if "w" not in params:
            return {"query": c}
        a, b = params["query"], params["w"]
        return {"query": c + times(b, times(self.gram.x_x, c)), "w": a[..., :, None] * c[..., None, :]}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the change of query and W that a direction in coordinates stands for."""
        a, g = direction["query"], self.gram
        square = (a * times(g.x_m_x, a)).sum(-1)
        if "w" in direction:
            b = direction["w"]
            square = square + ((g.x_m_x @ b) * (b @ g.x_x)).sum((-2, -1))
        return square.sqrt()

    def direction(self, params: Params) -> tuple[Float[Tensor, "*E 2"], Float[Tensor, "*E"]]:
        r"""What fresh data ask of the query: :math:`\langle u, \mu_\pm\rangle` and :math:`\|u\|^2`."""
        g, a, b = self.gram, params["query"], self.added(params)
        u_mu, u_u = times(g.mu_m_x, a), (a * times(g.x_mm_x, a)).sum(-1)
        if b is not None:
            u_mu = u_mu + times(g.mu_x, b)
            u_u = u_u + (b * (2 * times(g.x_m_x, a) + times(g.x_x, b))).sum(-1)
        return u_mu, u_u

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> tuple[Tensor, Tensor]:
        """Attention ``(*E, 2, points, L)`` and outputs ``(*E, 2, points)`` on fresh samples of label +1 and -1."""
        u_mu, u_u = self.direction(params)
        fresh = [fresh_tokens(u_mu, u_u, self.gram.mu_norm, part, standard, self.sigma_xi) for part in self.pattern]
        weight = torch.stack([scores.softmax(-1) for scores, _ in fresh], -3)
        return weight, (weight * torch.stack([values for _, values in fresh], -3)).sum(-1)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points K"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of label -1."""
        return self.fresh(params, standard)[1].unbind(-2)

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh sample takes."""
        return 2 * self.tokens


def times(matrix: Float[Tensor, "*#E N P"], vector: Float[Tensor, "*#E P"]) -> Float[Tensor, "*E N"]:
    """Matrix times vector, member by member."""
    return torch.einsum("...p,...np->...n", vector, matrix)


@checked_arguments
def gradient_flow(problem: TokenTraining, until: list[float], delta: Positive = 0.1) -> list[Params]:
    """Gradient flow of the query, in steps that move no score by more than `delta`.

    Softmax slows down exponentially as it saturates, so the clock is stretched: what takes a constant step size 10^9
    steps takes some hundred here. Each member has its own clock.

    Parameters
    ----------
    problem
        Without ``train_keys``.
    until
        Times at which parameters are asked for, ascending.
    delta
        Largest change of a score in a step.

    Returns
    -------
    list of Params
        One for each time.

    Raises
    ------
    ValueError
        If W is trained too, or an argument is out of its domain.
    """
    if problem.train_keys:
        raise ValueError("gradient_flow follows the query alone; got a problem with train_keys=True")
    params, found = problem.start(), []
    clock = params["query"].new_zeros(params["query"].shape[:-1])
    for end in until:
        while bool((clock < end * (1 - 1e-9)).any()):
            grad = problem.gradient(params)["query"]
            speed = times(problem.gram.x_m_x, grad).abs().amax(-1)
            step = torch.minimum(delta / speed, end - clock)
            params = {"query": params["query"] - step[..., None] * grad}
            clock = clock + step
        found.append(params)
    return found
