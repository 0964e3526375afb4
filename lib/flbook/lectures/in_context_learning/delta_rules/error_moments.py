r"""The exact risk of a memory that is written example by example.

With the prediction :math:`\alpha\hat\beta_{l-1}` of the task :math:`\beta_l`, its error
:math:`u_l = \alpha\hat\beta_{l-1} - \beta_l` has two moments per coordinate, :math:`e_l = E|u_l|^2/d` and
:math:`c_l = E\langle u_l, \beta_l\rangle/d`. For inputs :math:`x \sim N(0, I)` and tasks of variance 1 that drift with
memory :math:`\rho` they follow one affine recursion, so that a power of a 3 x 3 matrix gives the risk
:math:`R = d\,e_{n+1}`. Derived in the lecture.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from flbook.domains import Positive, require
from flbook.lectures.in_context_learning.shared.attention_risk import second_moments


class Step(NamedTuple):
    r"""What the recursion needs of a step size :math:`\eta(x)`: with :math:`q = |x|^2`,
    :math:`E[\eta q]/d`, :math:`E[\eta^2q^2]/d` and :math:`E[\eta^2q]/d`."""

    mean: float
    square: float
    noise: float


def step_moments(d: int, step: float, implicit: bool = False) -> Step:
    r"""The moments of :math:`\eta = s`, or of the implicit :math:`\eta = s/(1 + s|x|^2)`, for normal inputs.

    The latter are integrals over the law of chi-square, by the trapezoidal rule in :math:`\log|x|^2`.

    Examples
    --------
    >>> [round(value, 6) for value in step_moments(4, 0.1)]
    [0.1, 0.06, 0.01]
    """
    require("step", step, Positive)
    if not implicit:
        return _fixed(d, step)
    z, width = np.linspace(-40, 7, 801, retstep=True)
    q = np.exp(z)
    law = np.exp(z * d / 2 - q / 2 - d / 2 * np.log(2) - gammaln(d / 2)) * width  # density times dq
    eta = 1 / (1 / step + q)
    return Step(*(float(law @ part) / d for part in (eta * q, (eta * q) ** 2, eta**2 * q)))


def _fixed(d: int, step: float) -> Step:
    """The moments of one step size at every input; of a number below 0, too, since they are polynomials."""
    return Step(step, step**2 * (d + 2), step**2)


def risk(d: int, n: int, step: Step, residual: bool, keep: float = 1.0, memory: float = 1.0,
         noise: float = 0.0) -> float:
    r"""Risk after n examples of :math:`\hat\beta_l = \alpha\hat\beta_{l-1} + \eta\,(y_l -
    \kappa\langle\alpha\hat\beta_{l-1}, x_l\rangle)\,x_l`, where the residual is taken (:math:`\kappa = 1`) or not (0).

    Parameters
    ----------
    d, n
        Dimension and examples.
    step
        Of `step_moments`.
    residual
        Whether the error is written, or the label.
    keep
        The gate :math:`\alpha`.
    memory
        :math:`\rho`, the correlation of the task with the next.
    noise
        Standard deviation :math:`\sigma_y`.

    Examples
    --------
    >>> round(risk(4, 80, step_moments(4, 1 / 6), True) / (4 * (5 / 6) ** 80), 6)
    1.0
    """
    m, square = step.mean, step.square
    scatter = step.noise * noise**2
    if residual:
        written = np.array([[1 - 2 * m + square, 0, scatter], [0, 1 - m, 0], [0, 0, 1]])
    else:
        written = np.array([[1, 2 * m, square + scatter], [0, 1, m], [0, 0, 1]])
    off, moved = keep - memory, 1 - memory**2
    drifted = np.array([[keep**2, 2 * keep * off, off**2 + moved],
                        [0, memory * keep, memory * off - moved], [0, 0, 1]])
    power = np.linalg.matrix_power(drifted @ written, n)
    return float(d * (power @ [1.0, -1.0, 1.0])[0])


def best_label_step(d: int, n: int, keep: float = 1.0, memory: float = 1.0, noise: float = 0.0) -> float:
    """The step at which a memory of labels is best after n examples: its risk is quadratic in the step."""
    low, middle, high = (risk(d, n, _fixed(d, step), False, keep, memory, noise) for step in (-1.0, 0.0, 1.0))
    return (low - high) / (4 * ((low + high) / 2 - middle))


def least(d: int, n: int, residual: bool, gated: bool = False, implicit: bool = False, memory: float = 1.0,
          noise: float = 0.0) -> tuple[float, float, float]:
    """The least risk of a rule over its step and gate, and where it is: (risk, step, keep)."""
    def scalars(place):
        return (float(np.exp(np.clip(place[0], -20, 20 if implicit else 0))),
                float(np.exp(-np.exp(np.clip(place[1], -40, 3)))) if gated else 1.0)

    def at(place):
        step, keep = scalars(place)
        return risk(d, n, step_moments(d, step, implicit), residual, keep, memory, noise)

    start = np.array([-np.log(d + 2.0) if residual else -np.log(n + d + 1.0), -np.log(n)])
    options = {"xatol": 1e-4, "fatol": 1e-9, "maxiter": 2000}
    found = [minimize(lambda place: np.log(max(at(place), 1e-300)), first, method="Nelder-Mead", options=options)
             for first in (start + [1.0, 0.5], start + [-0.5, -4.0])]
    best = min(found, key=lambda one: one.fun).x
    return at(best), *scalars(best)


def best_steps(d: int, n: int, memory: float = 1.0, noise: float = 0.0) -> np.ndarray:
    r"""Risk before each of n examples and after them, with the best step at every one and the gate :math:`\rho`.

    .. math:: \eta_l = \frac{e_l}{(d + 2)e_l + \sigma_y^2}, \qquad e_{l+1} = \rho^2(1 - \eta_l)\,e_l + 1 - \rho^2
    """
    e = [1.0]
    for _ in range(n):
        step = e[-1] / ((d + 2) * e[-1] + noise**2)
        e.append(memory**2 * (1 - step) * e[-1] + 1 - memory**2)
    return d * np.array(e)


def deep_risk(layers: int, n: int, d: int, noise: float = 0.0, draws: int = 20000, seed: int = 0) -> float:
    r"""The least risk of L gradient steps on the whole prompt, each of a size of its own, as L layers can take.

    The estimate is :math:`q(S)X^\top y/n` with a polynomial q of degree L - 1 in :math:`S = X^\top X/n`. Its risk is
    quadratic in the coefficients of q, with moments of the eigenvalues of drawn S. Inputs and tasks standard normal.
    """
    values = np.linalg.eigvalsh(second_moments(n, np.eye(d), draws, seed))
    power = np.array([(values**k).mean() for k in range(2 * layers + 1)])
    one, both = np.arange(layers), np.arange(layers)[:, None] + np.arange(layers)
    return float(d * (1 - power[one + 1] @ np.linalg.solve(power[both + 2] + noise**2 / n * power[both + 1],
                                                            power[one + 1])))
