r"""Test-time training of attention with an MLP on a single-index prompt: direction first, then the output layer.

The predictor is :math:`f(x) = \sum_j a_j\max(v_j\langle u, x\rangle + b_j, 0)`. Pretraining leaves a projection on the
subspace in which directions lie. At test time the prompt is cut into three parts: (I) a gated second moment gives a
first direction u, (II) online gradient descent refines it, one example after the other, (III) ridge regression fits the
output weights a. Every function works on all prompts at once; they are the leading axes.

Source: Kuwataka and Suzuki (2025), in a simplified form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import hermite, rng
from flbook.shapes import Context


def bounded_square(y: Tensor) -> Tensor:
    r"""The gate :math:`T(y) = y^2/(1 + y^2)`: it shows the direction of an :math:`h_2` and of an :math:`h_3` link."""
    return y.square() / (1 + y.square())


def gated_moment(context: Context) -> Float[Tensor, "*E d d"]:
    r"""The matrix :math:`M = \frac1n\sum_i (T(y_i) - \bar T)\,x_ix_i^\top`; its mean is a multiple of beta beta^T."""
    x, y = context
    gate = bounded_square(y)
    gate = (gate - gate.mean(-1, keepdim=True)) / y.shape[-1]
    return torch.einsum("...nd,...ne->...de", x * gate[..., None], x)


def attention_step(context: Context, queries: Context) -> Float[Tensor, "d d"]:
    r"""The first gradient step on Gamma of gated attention, averaged over prompts: :math:`\frac1T\sum_t M_tM_t'`.

    The prediction for a gated query label is :math:`\langle x_qx_q^\top, \Gamma M\rangle`, linear in Gamma; M' is the
    gated moment of the queries. The mean is a multiple of :math:`E\,\beta\beta^\top`, so of the projection on S.
    """
    return torch.einsum("tde,tef->df", gated_moment(context), gated_moment(queries)) / len(context.y)


def subspace(step: Float[Tensor, "d d"], r: int) -> Float[Tensor, "d r"]:
    """The r directions in which attention sees most after the step, orthonormal columns."""
    if not 1 <= r <= len(step):
        raise ValueError(f"r must lie between 1 and d = {len(step)}, the dimension of the subspace; got {r}")
    return torch.linalg.eigh((step + step.T) / 2).eigenvectors[:, -r:]


def first_direction(context: Context) -> Float[Tensor, "*E d"]:
    """Stage I: the eigenvector of the gated moment whose eigenvalue is largest in size. Its sign means nothing."""
    values, vectors = torch.linalg.eigh(gated_moment(context))
    place = values.abs().argmax(-1)[..., None, None].expand(*values.shape, 1)
    return vectors.gather(-1, place)[..., 0]


def softmax_direction(context: Context, w: Float[Tensor, "*E d"], temperature: float = 32.0) -> Float[Tensor, "*E d"]:
    r"""Stage I by softmax attention: one gradient step on a low-rank update of Gamma, brought back to length 1.

    .. math:: A(x) = \frac{\sum_i y_i e^{y_ix_i^\top\Gamma x/\rho}}{\sum_i e^{y_ix_i^\top\Gamma x/\rho}}, \qquad
              \Gamma = I + ww^\top, \qquad u = \frac{-\nabla_w\sum_q(y_q - A_{-q}(x_q))^2}{\|\cdots\|}

    Each example is a query for the others (:math:`A_{-q}`); the step is long, so that w itself does not count.
    """
    x, y = context
    w = w.detach().requires_grad_()
    keys = x + torch.einsum("...nd,...d,...e->...ne", x, w, w)
    logits = torch.einsum("...ne,...qe->...qn", keys * y[..., None] / temperature, x)
    itself = torch.eye(y.shape[-1], dtype=torch.bool, device=y.device)
    answer = torch.einsum("...qn,...n->...q", logits.masked_fill(itself, -torch.inf).softmax(-1), y)
    (gradient,) = torch.autograd.grad((y - answer).square().sum(), w)
    return torch.nn.functional.normalize(-gradient, dim=-1)


@dataclass(frozen=True)
class Readout:
    r"""The MLP's neurons :math:`\psi_j(z) = \max(v_jz + b_j, 0)` of one input, with signs v and biases b."""

    v: Float[Tensor, " m"]
    b: Float[Tensor, " m"]

    @classmethod
    def draw(cls, m: int, seed: int = 0, spread: float = 2.5) -> "Readout":
        """Signs at equal odds, biases uniform on [-spread, spread], in float64."""
        if m < 1 or not spread > 0:
            raise ValueError(f"m must be at least 1 and spread positive: neurons, largest bias; got {m}, {spread}")
        uniform = torch.rand(2, m, generator=rng.generator(seed, "readout"), dtype=torch.float64)
        return cls((uniform[0] - 0.5).sign(), spread * (2 * uniform[1] - 1))

    def to(self, place: torch.device) -> "Readout":
        """The same neurons on a device."""
        return Readout(self.v.to(place), self.b.to(place))

    def __call__(self, z: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n m"]:
        """What the neurons answer."""
        return (z[..., None] * self.v + self.b).relu()

    def slope(self, z: Float[Tensor, "*E n"], a: Float[Tensor, "*E m"]) -> Float[Tensor, "*E n"]:
        """Derivative of the predictor in z."""
        active = (z[..., None] * self.v + self.b > 0).to(a.dtype)
        return torch.einsum("...m,...nm->...n", a * self.v, active)

    def fit(self, z: Float[Tensor, "*E n"], y: Float[Tensor, "*E n"], lam: float) -> Float[Tensor, "*E m"]:
        r"""Ridge regression :math:`\arg\min_a \frac1n\sum_i (y_i - \langle a, \psi(z_i)\rangle)^2 + \lambda\|a\|^2`."""
        if not lam > 0:
            raise ValueError(f"lam must be positive, a ridge; got {lam}")
        features = self(z)
        gram = torch.einsum("...nk,...nl->...kl", features, features) / z.shape[-1]
        gram.diagonal(dim1=-2, dim2=-1).add_(lam)
        correlation = torch.einsum("...n,...nk->...k", y, features) / z.shape[-1]
        return torch.linalg.solve(gram, correlation)


def refined(readout: Readout, a: Float[Tensor, "*E m"], u: Float[Tensor, "*E d"], first: Context,
            context: Context, wait: float = 10.0) -> Float[Tensor, "*E d"]:  # fmt: skip
    r"""Stage II: one pass of online gradient descent on the squared error, back to length 1 after every example.

    .. math:: u \leftarrow \frac{u + \eta_t (y_t - f(x_t))\,f'(\langle u, x_t\rangle)\,x_t}{\|\cdots\|}, \qquad
              \eta_t = \frac{1}{s\,(t + \text{wait}\cdot d)}

    with s the mean square of f' on the `first` part: the step sizes of Newton's method, on average.
    """
    scale = readout.slope(torch.einsum("...d,...nd->...n", u, first.x), a).square().mean(-1)
    size = u.shape[-1]
    for t, (x, y) in enumerate(zip(context.x.unbind(-2), context.y.unbind(-1), strict=True)):
        z = (x * u).sum(-1, keepdim=True)
        error = y - torch.einsum("...m,...nm->...n", a, readout(z))[..., 0]
        step = error * readout.slope(z, a)[..., 0] / (scale * (t + wait * size))
        u = torch.nn.functional.normalize(u + step[..., None] * x, dim=-1)
    return u


class Adapted(NamedTuple):
    """What test-time training leaves: a direction, its first guess, and the output weights."""

    u: Float[Tensor, "*E d"]
    start: Float[Tensor, "*E d"]
    a: Float[Tensor, "*E m"]


def adapt(readout: Readout, context: Context, lam: float, shares: tuple[float, float] = (0.25, 0.25),
          weak: Callable[[Context], Tensor] = first_direction) -> Adapted:  # fmt: skip
    """All three stages on one prompt each; `shares` of the examples go to stages I and II, the rest to stage III.

    weak: how stage I finds a direction. lam: the ridge of stage III times its number of examples. Raises ValueError if
    a stage is left without examples.
    """
    n = context.y.shape[-1]
    one, two = round(shares[0] * n), round((shares[0] + shares[1]) * n)
    if not 0 < one < two < n:
        raise ValueError(f"n must leave examples to each of three stages, shares {shares} and the rest; got n = {n}")
    parts = [Context(context.x[..., low:high, :], context.y[..., low:high])
             for low, high in ((0, one), (one, two), (two, n))]

    def projected(part: Context, u: Tensor) -> Tensor:
        return torch.einsum("...d,...nd->...n", u, part.x)

    start = weak(parts[0])
    guess = readout.fit(projected(parts[0], start), parts[0].y, lam / one)
    u = refined(readout, guess, start, parts[0], parts[1])
    return Adapted(u, start, readout.fit(projected(parts[2], u), parts[2].y, lam / (n - two)))


def exact_risk(readout: Readout, a: Float[Tensor, "*#E m"], overlap: Float[Tensor, "*E"],
               link: tuple[float, ...]) -> Float[Tensor, "*E"]:  # fmt: skip
    r"""Mean squared error over all inputs against the target without noise; :math:`\rho = \langle u, \beta\rangle`.

    .. math:: \sum_k c_k^2 + E\big[f(w)^2 - 2f(w)g(w)\big], \qquad
              g(w) = E[\sigma_*(\langle\beta, x\rangle) \mid \langle u, x\rangle = w] = \sum_k c_k\rho^kh_k(w)

    one integral over a standard normal w, by the trapezoidal rule. link: the coefficients :math:`c_k`.
    """
    w, weight = normal_grid(overlap.device)
    values = torch.stack([hermite.polynomial(k, w) for k in range(len(link))])
    c = torch.tensor(link, dtype=torch.float64, device=w.device)
    powers = overlap[..., None] ** torch.arange(len(link)).to(w)
    g = torch.einsum("...k,kw->...w", c * powers, values)
    f = torch.einsum("wm,...m->...w", readout(w), a)
    return c.square().sum() + (f.square() - 2 * f * g) @ weight


def normal_grid(place: torch.device | str = "cpu") -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """Nodes and weights of the trapezoidal rule for an expectation over a standard normal number."""
    w = torch.linspace(-8, 8, 801, dtype=torch.float64, device=place)
    weight = torch.exp(-w.square() / 2)
    return w, weight / weight.sum()


def ridge_risk(readout: Readout, link: tuple[float, ...], noise: float, lam: float, count: int) -> float:
    r"""Risk of stage III along the true direction, to first order in what the examples fluctuate.

    .. math:: E(\sigma_* - f_\kappa)^2 + \frac1N\,\mathrm{tr}\,(G + \kappa)^{-1}C\,(G + \kappa)^{-1}G, \qquad
              C = E[(\tau^2 + (\sigma_* - f_\kappa)^2)\,\psi\psi^\top] - \kappa^2aa^\top

    with :math:`G = E\,\psi\psi^\top`, :math:`\kappa = \lambda/N` and :math:`f_\kappa = \langle a, \psi\rangle` the
    ridge regression on endless examples; a bias of the weights of order :math:`\kappa/N` is left out.
    link: the coefficients :math:`c_k`; noise: :math:`\tau`; count: N.
    """
    w, weight = normal_grid(readout.b.device)
    psi, kappa = readout(w), lam / count
    target = sum(c * hermite.polynomial(k, w) for k, c in enumerate(link))
    gram = psi.T * weight @ psi
    ridged = gram + kappa * torch.eye(len(gram)).to(gram)
    a = torch.linalg.solve(ridged, psi.T @ (weight * target))
    misfit = (target - psi @ a).square()
    scatter = psi.T * (weight * (noise**2 + misfit)) @ psi - kappa**2 * torch.outer(a, a)
    spread = torch.linalg.solve(ridged, torch.linalg.solve(ridged, scatter).T)
    return float(misfit @ weight + (spread * gram).sum() / count)
