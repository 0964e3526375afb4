r"""A soft committee machine taught by another, one sample a step: its order parameters, in the limit and at finite d.

Student :math:`\sum_i g(\lambda_i)`, teacher :math:`\sum_n g(\nu_n)`, :math:`g(z) = \mathrm{erf}(z/\sqrt 2)`, with the
fields :math:`\lambda_i = w_i\cdot x/\sqrt d`, :math:`\nu_n = w^*_n\cdot x/\sqrt d`. With the error e (and label noise
of standard deviation sigma) a step is :math:`w_i \leftarrow w_i - \frac{\eta}{\sqrt d}\,g'(\lambda_i)\,e\,x`. What the
fields' law depends on is the order parameters

.. math:: Q = ww^\top/d, \quad R = ww^{*\top}/d, \quad T = w^*w^{*\top}/d .

As d grows they follow ordinary differential equations in alpha = steps/d (`Committee.rate`). At finite d they are a
Markov chain whose step needs K + M + 1 random numbers and not d (`Committee.step`), exactly in law.

A field numbered p is a student's for p < K, a teacher's from there on; C is the covariance of all of them.

Sources: Saad and Solla (1995), equations (6) to (9); Goldt et al. (2019).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import erf

from flbook.domains import Checked, Count, NonNegative, Positive
from flbook.dynamics.equations import Number, State


def covariance(Q: Float[ndarray, "*E K K"], R: Float[ndarray, "*E K M"], T: Float[ndarray, "M M"]) -> ndarray:
    """The covariance of all fields, shape (*E, K + M, K + M)."""
    T = np.broadcast_to(T, (*Q.shape[:-2], *T.shape))
    return np.concatenate([np.concatenate([Q, R], -1), np.concatenate([R.swapaxes(-1, -2), T], -1)], -2)


def _one_plus(C: ndarray) -> ndarray:
    return 1 + np.diagonal(C, axis1=-2, axis2=-1)


def two_point(C: Float[ndarray, "*E F F"]) -> Float[ndarray, "*E F F"]:
    r""":math:`E\,g(u_p)g(u_q) = \frac2\pi\arcsin\frac{C_{pq}}{\sqrt{(1 + C_{pp})(1 + C_{qq})}}`."""
    s = _one_plus(C)
    return 2 / np.pi * np.arcsin(C / np.sqrt(s[..., :, None] * s[..., None, :]))


def slope_pair(C: Float[ndarray, "*E F F"]) -> Float[ndarray, "*E F F"]:
    r""":math:`E\,g'(u_p)g'(u_q) = \frac2\pi\big((1 + C_{pp})(1 + C_{qq}) - C_{pq}^2\big)^{-1/2}` for p other than q.

    For p = q the same formula holds.
    """
    s = _one_plus(C)
    return 2 / np.pi / np.sqrt(s[..., :, None] * s[..., None, :] - C**2)


def three_point(C: Float[ndarray, "*E F F"], K: int) -> Float[ndarray, "*E K F F"]:
    r""":math:`E\,g'(u_i)\,u_j\,g(u_k)` for a student i and any j, k."""
    s, a = _one_plus(C), C[..., :K, :]
    s_i, c_ij, c_ik = s[..., :K, None, None], a[..., :, None], a[..., None, :]
    root = np.sqrt(s_i * s[..., None, None, :] - c_ik**2)
    return 2 / np.pi * (C[..., None, :, :] * s_i - c_ij * c_ik) / (s_i * root)


def four_point(C: Float[ndarray, "*E F F"], K: int) -> Float[ndarray, "*E K K F F"]:
    r""":math:`E\,g'(u_i)g'(u_j)g(u_k)g(u_l)` for students i, j and any k, l."""
    s, a = _one_plus(C), C[..., :K, :]
    s_i, s_j = s[..., :K, None, None, None], s[..., None, :K, None, None]
    c_ij = C[..., :K, :K][..., None, None]
    c_ik, c_il = a[..., :, None, :, None], a[..., :, None, None, :]
    c_jk, c_jl = a[..., None, :, :, None], a[..., None, :, None, :]
    L4 = s_i * s_j - c_ij**2
    L0 = L4 * C[..., None, None, :, :] - c_jk * c_jl * s_i - c_ik * c_il * s_j + c_ij * (c_ik * c_jl + c_il * c_jk)
    L1 = L4 * s[..., None, None, :, None] - c_jk**2 * s_i - c_ik**2 * s_j + 2 * c_ij * c_ik * c_jk
    L2 = L4 * s[..., None, None, None, :] - c_jl**2 * s_i - c_il**2 * s_j + 2 * c_ij * c_il * c_jl
    return 4 / np.pi**2 / np.sqrt(L4) * np.arcsin(L0 / np.sqrt(L1 * L2))


@dataclass(frozen=True)
class Committee(Checked):
    """A student of K units and a teacher of M orthonormal units under one-pass SGD; the state is {"Q", "R"}."""

    K: Count = 2
    M: Count = 2
    lr: Positive = 0.5  # eta
    noise: NonNegative = 0.0  # sigma, standard deviation of the label noise

    @property
    def sign(self) -> Float[ndarray, " F"]:
        """The error is the sum of sign times g over all fields."""
        return np.repeat([1.0, -1.0], [self.K, self.M])

    def fields(self, state: State) -> Float[ndarray, "*E F F"]:
        """The covariance of all fields."""
        return covariance(state["Q"], state["R"], np.eye(self.M))

    def risk(self, state: State) -> Number:
        """Half the mean squared error against the noise-free teacher."""
        return np.einsum("p,...pq,q->...", self.sign, two_point(self.fields(state)), self.sign) / 2

    def rate(self, state: State) -> State:
        """The derivatives of Q and R in alpha = steps/d, as d grows."""
        C, K = self.fields(state), self.K
        drift = -self.lr * np.einsum("...ijp,p->...ij", three_point(C, K), self.sign)
        square = np.einsum("...ijpq,p,q->...ij", four_point(C, K), self.sign, self.sign)
        diffusion = self.lr**2 * (square + self.noise**2 * slope_pair(C[..., :K, :K]))
        own = drift[..., :K]
        return {"Q": own + own.swapaxes(-1, -2) + diffusion, "R": drift[..., K:]}

    def step(self, state: State, d: int, unit: Float[ndarray, "*E F"], rest: Number, label: Number = 0.0) -> State:
        """One step of SGD at dimension d, from standard normal numbers.

        `unit` are the input's coordinates in the span of all weights, `rest` is its squared length outside of it (chi
        squared with d - K - M degrees of freedom), `label` is the label noise in units of sigma.
        """
        f = np.einsum("...pq,...q->...p", np.linalg.cholesky(self.fields(state)), unit)
        return self.update(state, f, ((unit**2).sum(-1) + rest) / d, d, label)

    def update(self, state: State, f: Float[ndarray, "*E F"], square: Number, d: int, label: Number = 0.0) -> State:
        """The same step, given the fields f and :math:`|x|^2/d`."""
        error = erf(f / 2**0.5) @ self.sign - self.noise * label
        move = -self.lr * np.sqrt(2 / np.pi) * np.exp(-(f[..., : self.K] ** 2) / 2) * np.asarray(error)[..., None]
        cross = move[..., :, None] * f[..., None, :] / d
        own = cross[..., : self.K]
        grown = move[..., :, None] * move[..., None, :] * np.asarray(square / d)[..., None, None]
        return {"Q": state["Q"] + own + own.swapaxes(-1, -2) + grown, "R": state["R"] + cross[..., self.K :]}


def symmetric(own: float, between: float, overlap: float, asymmetry: float = 0.0) -> State:
    """Two students of squared length `own` and mutual overlap `between`, alike to two teachers.

    Each has the overlap R with either teacher, and `asymmetry` more with its own one.
    """
    return {"Q": np.full((2, 2), between) + (own - between) * np.eye(2),
            "R": np.full((2, 2), overlap) + asymmetry * np.eye(2)}  # fmt: skip
