r"""Pretraining on single-index prompts: what one gradient step finds, and the best Gamma, in closed form.

Tasks are :math:`\sigma_*(\langle x, \beta\rangle)` with :math:`\beta` uniform on the unit sphere of an r-dimensional
subspace S of :math:`R^d`, here the first r coordinates; neurons are ReLU.
"""

import math

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from flbook import hermite


def alignment_after_step(d, r):
    r"""Share of the squared weights in S after one step on the link :math:`h_2`, many neurons, exact gradient.

    .. math:: \frac{4M_3 - 4M_4 + M_5}{4M_3 - 3M_4}, \qquad
              M_k = E\,s^k = \prod_{i<k} \frac{r/2 + i}{d/2 + i}

    for :math:`s = \|w_S\|^2`, which has a beta law. Before the step the share is r/d. Derived in the lecture.
    """
    third, fourth, fifth = (_moment(d, r, k) for k in (3, 4, 5))
    return (4 * third - 4 * fourth + fifth) / (4 * third - 3 * fourth)


def _moment(d, r, k: int):
    return math.prod((np.asarray(r, float) / 2 + i) / (np.asarray(d, float) / 2 + i) for i in range(k))


def quadratic_step(w: np.ndarray, r: int) -> np.ndarray:
    r"""The exact gradient of the link :math:`h_2` at bias 0 and unit neurons, shape ``(m, d)``.

    .. math:: g(w) = \frac{3}{\pi\,r(r+2)}\cdot\frac12\,\|w_S\|^2\big(2w_S - \|w_S\|^2 w\big)

    Source: Oko et al. (2024), Lemma 21, of which this is a case; derived in the lecture.
    """
    inside = w * (np.arange(w.shape[-1]) < r)
    share = (inside**2).sum(-1, keepdims=True)
    return 6 * relu_coefficient(2) ** 2 / (r * (r + 2)) * share * (2 * inside - share * w)


def relu_coefficient(k: int, length=1.0, bias=0.0):
    r"""Hermite coefficient :math:`a_k = E\max(\rho z + b, 0)\,h_k(z)` of a neuron of length rho and bias b.

    With :math:`t = b/\rho`, :math:`\varphi` and :math:`\Phi` the normal density and distribution function:

    .. math:: a_0 = \rho(t\Phi(t) + \varphi(t)), \quad a_1 = \rho\,\Phi(t), \quad
              a_k = \frac{\rho}{\sqrt{k(k-1)}}\,\varphi(t)\,h_{k-2}(-t) \quad (k \ge 2)

    At b = 0 it vanishes for every odd k above 1.
    """
    t = np.asarray(bias, float) / length
    density = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    if k == 0:
        return length * (t * ndtr(t) + density)
    if k == 1:
        return length * ndtr(t)
    return length / math.sqrt(k * (k - 1)) * density * hermite.polynomial(k - 2, -t)


def task_moment(w: np.ndarray, b: np.ndarray, r: int) -> np.ndarray:
    r"""What tasks share, :math:`B = E_\beta\,E[f\phi]E[f\phi]^\top` for the link :math:`h_2`, shape ``(m, m)``.

    .. math:: B_{jl} = a_ja_l\,\frac{\|u_j\|^2\|u_l\|^2 + 2\langle u_j, u_l\rangle^2}{r(r+2)}

    with :math:`u_j` the part of :math:`w_j/\|w_j\|` in S and :math:`a_j` its `relu_coefficient` of degree 2.
    """
    length = np.linalg.norm(w, axis=-1)
    u, a = w[:, :r] / length[:, None], relu_coefficient(2, length, b)
    inner = u @ u.T
    square = np.diag(inner)
    return np.outer(a, a) * (np.outer(square, square) + 2 * inner**2) / (r * (r + 2))


def label_square(x: np.ndarray, r: int) -> np.ndarray:
    r""":math:`E_\beta\,h_2(\langle x, \beta\rangle)^2` at points x, shape ``(n, d) -> (n,)``."""
    square = (x[:, :r] ** 2).sum(-1)
    return (3 * square**2 / (r * (r + 2)) - 2 * square / r + 1) / 2


def feature_moment(w: np.ndarray, b: np.ndarray, terms: int = 400) -> np.ndarray:
    r""":math:`\Sigma = E\,\phi\phi^\top`, shape ``(m, m)``: by the sum :math:`\sum_k a_{j,k}a_{l,k}\cos^k`.

    On the diagonal :math:`(\rho^2 + b^2)\Phi(b/\rho) + b\rho\varphi(b/\rho)`; the sum is cut off at `terms`.
    """
    length = np.linalg.norm(w, axis=-1)
    unit = w / length[:, None]
    cosine, t = np.clip(unit @ unit.T, -1, 1), b / length
    density = length * np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    below, here = np.zeros_like(t), density  # times the Hermite polynomials of degrees k - 3 and k - 2 at -t
    power, total = cosine.copy(), sum(np.outer(a, a) * cosine**k for k, a in
                                      enumerate(relu_coefficient(k, length, b) for k in (0, 1)))
    for k in range(2, terms):
        power *= cosine
        a = here / math.sqrt(k * (k - 1))
        total += np.outer(a, a) * power
        below, here = here, (-t * here - math.sqrt(k - 2) * below) / math.sqrt(k - 1)
    np.fill_diagonal(total, (length**2 + b**2) * ndtr(t) + b * density)
    return total


def label_moment(w: np.ndarray, b: np.ndarray, r: int, x: np.ndarray, noise: float = 0.0) -> np.ndarray:
    r""":math:`D = E\,y^2\phi\phi^\top` for the link :math:`h_2`: exact over tasks, over inputs a mean of points x."""
    total = np.zeros((len(b), len(b)))
    for part in np.array_split(x, -(-len(x) // 4096)):
        phi = np.maximum(part @ w.T + b, 0)
        total += phi.T @ (phi * (label_square(part, r) + noise**2)[:, None])
    return total / len(x)


def best_gamma(n: int, shared: np.ndarray, single: np.ndarray, sigma: np.ndarray, ridge: float = 1e-9) -> np.ndarray:
    r"""The Gamma of least risk at prompts of n examples, over all tasks: :math:`A_n^{-1}B\,\Sigma^{-1}`.

    .. math:: A_n = E\,cc^\top = \big(1 - \tfrac1n\big)B + \tfrac1n D

    `ridge`, relative to the largest eigenvalues, settles what neither matrix determines.
    """
    left, right = context_moment(n, shared, single), sigma
    return np.linalg.solve(_lifted(left, ridge), np.linalg.solve(_lifted(right, ridge), shared.T).T)


def best_risk(n, w: np.ndarray, b: np.ndarray, r: int, x: np.ndarray, ridge: float = 1e-9) -> np.ndarray:
    r"""Risk of `best_gamma` at several n, with :math:`B = FF^\top` and D of `label_moment` at points x.

    .. math:: R_n = 1 - \mathrm{tr}\,nG\big(I + (n-1)G\big)^{-1}H, \qquad
              G = F^\top D^{-1}F, \quad H = F^\top\Sigma^{-1}F
    """
    length = np.linalg.norm(w, axis=-1)
    u = w[:, :r] / length[:, None]
    squares = np.concatenate([(u**2).sum(-1)[:, None], 2**0.5 * np.einsum("mi,mj->mij", u, u).reshape(len(u), -1)], 1)
    f = relu_coefficient(2, length, b)[:, None] * squares / (r * (r + 2)) ** 0.5
    g, h = (f.T @ np.linalg.solve(_lifted(part, ridge), f)
            for part in (label_moment(w, b, r, x), feature_moment(w, b, 100)))
    one = np.eye(len(g))
    return np.array([1 - k * np.trace(np.linalg.solve(one + (k - 1) * g, g @ h)) for k in n])


def floor(n, r: float, line: float = 0.0, nodes: int = 20_000):
    r"""Least risk of attention that is linear in the labels, at prompts of n examples: endless neurons and pretraining.

    .. math:: R_n = \sum_{k=0,1}D_ks_k\,\frac{1 - s_k\tau_k}{1 + (n-1)s_k\tau_k}, \qquad
              \tau_k = \frac1{D_k}E\Big[\frac{K_k(x)}{E_\beta y^2}\Big]

    The quadratics of S split into the trace, :math:`D_0 = 1` with :math:`s_0 = \frac1r`, and into
    :math:`D_1 = \frac{r(r+1)}2 - 1` others with :math:`D_1s_1 = 1 - \frac1r`; :math:`K_k(x)` is the sum of the squares
    of an orthonormal basis. Derived in the lecture for the link h_2; in :math:`c_1h_1 + c_2h_2`, with `line` for
    :math:`c_1`, the r lines of S join them, with :math:`D s = c_1^2`, and the strengths of the others get a factor
    :math:`c_2^2`.
    """
    square = chi2.ppf((np.arange(nodes) + 0.5) / nodes, r)  # of |x_S|
    bent = 1 - line**2
    label = line**2 * square / r + bent * (3 * square**2 / (r * (r + 2)) - 2 * square / r + 1) / 2
    trace = (square - r) ** 2 / (2 * r)
    rest, total = (square**2 - 2 * square + r) / 2 - trace, 0.0
    for share, kernel, count in ((line**2, square, r), (bent / r, trace, 1),
                                 (bent * (1 - 1 / r), rest, r * (r + 1) / 2 - 1)):
        if count:
            product = share / count * (kernel / label).mean() / count
            total = total + share * (1 - product) / (1 + (np.asarray(n, float) - 1) * product)
    return total


def context_moment(n: float, shared: np.ndarray, single: np.ndarray) -> np.ndarray:
    r""":math:`A_n = E\,cc^\top` of prompts of n examples."""
    return (1 - 1 / n) * shared + single / n


def risk(gamma: np.ndarray, n: float, shared: np.ndarray, single: np.ndarray, sigma: np.ndarray,
         mean_square: float = 1.0) -> float:
    r"""Exact risk of any Gamma.

    .. math:: E f^2 - 2\,\mathrm{tr}(\Gamma^\top B) + \mathrm{tr}(A_n\Gamma\Sigma\Gamma^\top)
    """
    square = np.einsum("ij,jk,kl,il->", context_moment(n, shared, single), gamma, sigma, gamma, optimize=True)
    return float(mean_square - 2 * (gamma * shared).sum() + square)


def _lifted(matrix: np.ndarray, ridge: float) -> np.ndarray:
    return matrix + ridge * np.linalg.eigvalsh(matrix)[-1] * np.eye(len(matrix))
