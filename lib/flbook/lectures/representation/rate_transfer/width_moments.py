r"""A two-layer linear network at any width, trained in the inner products of its neurons.

.. math:: f(x) = \frac1{\gamma n}\, v^\top U x,\qquad x \sim N(0, I_d),\qquad y = b_*^\top x,

sees the width n only through :math:`M = U^\top U/n`, :math:`q = U^\top v/n` and :math:`s = |v|^2/n`. One step of
gradient descent on the risk :math:`\frac12|e|^2`, :math:`e = b_* - q/\gamma`, that moves U by :math:`g\, v e^\top` and
v by :math:`g_v\, U e`, is exactly

.. math::
   M' &= M + g(q e^\top + e q^\top) + g^2 s\, e e^\top, \\
   q' &= q + g s e + g_v M e + g g_v (e \cdot q)\, e, \\
   s' &= s + 2 g_v\, e \cdot q + g_v^2\, e^\top M e .
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from flbook.dynamics.wishart import bartlett
from flbook.rng import normal

Numbers = Float[ndarray, "*E"] | float  # one number, or an ensemble of them
Start = Literal["paired", "orthogonal"]
NAMES = ("standard", "tangent", "maximal")


class WidthMoments(NamedTuple):
    """Inner products of neurons over the width; leading axes are an ensemble."""

    M: Float[ndarray, "*E d d"]
    q: Float[ndarray, "*E d"]
    s: Numbers


class Scale(NamedTuple):
    """What a parametrisation does to this network at one width."""

    gamma: float  # output scale: f = v . U x / (gamma n)
    ratio: float  # how many times as fast as U the output weights v move

    def rates(self, eta: Numbers) -> tuple[Numbers, Numbers]:
        """The factors g and g_v of a step at the rate eta."""
        g = eta * self.gamma
        return g, g * self.ratio


def scale(name: str, width: int) -> Scale:
    r"""The scale of a parametrisation: standard, tangent or maximal.

    In the maximal one :math:`\gamma = 1` and a weight's rate is :math:`\eta\gamma^2 n`; in the tangent one
    :math:`\gamma = n^{-1/2}`; in the standard one the output weights are :math:`v/\sqrt n` and have the rate of U.
    """
    if name not in NAMES:
        raise ValueError(f"parametrisation must be among {', '.join(NAMES)}; got {name!r}")
    return Scale(1.0 if name == "maximal" else width**-0.5, float(width) if name == "standard" else 1.0)


def start(width: int, d: int, seeds: tuple[int, ...], kind: Start = "paired") -> WidthMoments:
    """Gaussian weights whose output is 0, or orthogonal ones, which are the limit of infinite width at any width.

    Neurons come in pairs with the same input weights and opposite output weights. So q = 0, and M and s are those of
    width/2 independent neurons, drawn by Bartlett's decomposition: the width costs nothing.
    """
    if width % 2 or width // 2 < d + 1:
        raise ValueError(f"width must be even and at least 2 (d + 1) = {2 * (d + 1)}; got {width}")
    zero, count = np.zeros((len(seeds), d)), width // 2
    if kind == "orthogonal":
        return WidthMoments(np.repeat(np.eye(d)[None], len(seeds), 0), zero, np.ones(len(seeds)))
    factor = np.concatenate([bartlett(d + 1, np.array([count]), one).numpy() for one in seeds])
    products = factor @ factor.swapaxes(-1, -2) / count
    return WidthMoments(products[:, :d, :d], zero, products[:, d, d])


def error(state: WidthMoments, target: Float[ndarray, " d"], gamma: float) -> Float[ndarray, "*E d"]:
    """The target less what the network computes; its squared length is twice the risk."""
    return target - state.q / gamma


def step(state: WidthMoments, e: Float[ndarray, "*E d"], g: Numbers, g_v: Numbers) -> WidthMoments:
    """One step of gradient descent; g and g_v have the shape of the ensemble, or one that broadcasts."""
    M, q, s = state
    Me = np.einsum("...ij,...j->...i", M, e)
    eq, eMe = (e * q).sum(-1), (e * Me).sum(-1)
    qe, ee = q[..., :, None] * e[..., None, :], e[..., :, None] * e[..., None, :]
    one, own, other, both = (np.asarray(x)[..., None] for x in (g, g**2 * s, g_v, g * s + g * g_v * eq))
    return WidthMoments(
        M + one[..., None] * (qe + qe.swapaxes(-1, -2)) + own[..., None] * ee,
        q + both * e + other * Me,
        s + 2 * g_v * eq + g_v**2 * eMe,
    )


def along(state: WidthMoments, target: Float[ndarray, " d"]) -> Numbers:
    r"""The tangent kernel along the target, :math:`s + u^\top M u` with :math:`u = b_*/|b_*|`, in units of the rate.

    Where the network is right it is the largest eigenvalue of the risk's Hessian, for one rate of all weights.
    """
    u = target / np.linalg.norm(target)
    return state.s + np.einsum("i,...ij,j->...", u, state.M, u)


def best_single_step(state: WidthMoments, target: Float[ndarray, " d"], ratio: float) -> Numbers:
    r"""The rate whose one step from f = 0 is best, :math:`b_* \cdot A b_*/|A b_*|^2` with :math:`A = sI + M` (M times
    the ratio of the rates)."""
    moved = np.asarray(state.s)[..., None] * target + ratio * state.M @ target
    return (moved @ target) / (moved**2).sum(-1)


def weights(width: int, d: int, seed: int) -> tuple[ndarray, ndarray]:
    """Gaussian weights in pairs, U and v, as a network would hold them."""
    half = normal((width // 2, d + 1), seed, "pairs of neurons").numpy()
    U, v = half[:, :d], half[:, d]
    return np.concatenate([U, U]), np.concatenate([v, -v])


def moments(U: Float[ndarray, "n d"], v: Float[ndarray, " n"]) -> WidthMoments:
    """The inner products of given weights."""
    n = len(v)
    return WidthMoments(U.T @ U / n, U.T @ v / n, np.asarray(v @ v / n))
