r"""Where the penalties lead in the plane, for many pairs of environments at once, and the borders in closed form.

With two environments the objective depends on them by their mean β̄ and, beside the weight λ, by
:math:`\lambda(\beta_2-\beta_1)^2` alone (derived on the lecture's page); `closeness` is that number.
"""

from itertools import combinations

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from flbook.lectures.training_strategies.shared.environments import SIGNS

_SIGNS = np.array(SIGNS)
_PRODUCTS = _SIGNS[:, :, None] * _SIGNS[:, None, :]
_GAMMA = 1 - 1 / np.sqrt(2)  # of the second-order Rosenbrock step ROS2, which damps stiff directions
STARTS = {  # shares of the log odds of the invariant and of the spurious feature
    "from zero": (0.0, 0.0), "after spurious": (0.0, 1.0), "after spurious, 1/4 invariant": (0.25, 1.0),
    "after spurious, 1/2 invariant": (0.5, 1.0), "after risk": (1.0, 1.0),
}  # fmt: skip


def log_odds(beta: np.ndarray | float) -> np.ndarray | float:
    """How large a feature becomes under risk that is wrong with probability β."""
    return np.log(1 / np.asarray(beta) - 1)


def closeness(betas: Float[np.ndarray, "N 2"], weight: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """The number λ(β₂ - β₁)² by which the difference of the environments enters."""
    return weight * (betas[..., 1] - betas[..., 0]) ** 2


def completed_below(beta: np.ndarray | float) -> np.ndarray | float:
    """The closeness below which IRMv1 sets out from the spurious feature alone towards both features.

    For close environments of mean β and large weights; infinite where the spurious feature is strong.
    """
    b, spread = log_odds(beta), beta * (1 - beta)
    lacking = 1 - (1 - 2 * beta) * b - spread * b**2
    return np.where(lacking > 0, 2 * spread / np.maximum(lacking, 1e-300), np.inf)


def stands_above(beta: np.ndarray | float, alpha: float = 0.25) -> np.ndarray | float:
    """The closeness above which IRMv1 has a minimum near zero, for close environments and large weights."""
    own, mean = (1 - 2 * alpha) ** 2, (1 - 2 * beta) ** 2
    return 0.5 + mean * (0.5 / own - 1)


def _bent(w, shares, weight, penalty):
    """Gradient and Hessian of mean risk and penalty, shapes (N, 2) and (N, 2, 2)."""
    f = w @ _SIGNS.T
    slope, bend = -expit(-f), expit(f) * expit(-f)
    third = bend * (1 - 2 * expit(f))

    def summed(values):  # Σ over the pairs of signs, by environment: value, vector and matrix
        each = shares * values[:, None]
        return each.sum(-1), each @ _SIGNS, np.tensordot(each, _PRODUCTS, 1)

    (_, push, _), (_, _, curve) = summed(slope), summed(bend)
    if penalty == "IRMv1":
        value = summed(slope * f)[0]
        first, second = summed(slope + f * bend)[1], summed(2 * bend + f * third)[2]
    else:
        value, first, second = (part - part.mean(1, keepdims=True)
                                for part in (summed(np.logaddexp(0, -f))[0], push, curve))
    gradient = push.mean(1) + 2 * weight[:, None] * (value[..., None] * first).mean(1)
    outer = first[..., :, None] * first[..., None, :] + value[..., None, None] * second
    return gradient, curve.mean(1) + 2 * weight[:, None, None] * outer.mean(1)


def _solve(matrix, right):
    (p, q), (r, s) = np.moveaxis(matrix, 0, -1)
    det = p * s - q * r
    x, y = right.T
    return np.stack([s * x - q * y, p * y - r * x], -1) / det[:, None], (det > 0.1) & (p > 0.05)


def ends(
    start: Float[np.ndarray, "N 2"], betas: Float[np.ndarray, "N 2"], weight: Float[np.ndarray, " N"],
    alpha: float = 0.25, penalty: str = "IRMv1", time: float = 1e4, within: float = 1e-4,
) -> Float[np.ndarray, "N 2"]:
    """Where gradient flow is after a time, in N planes at once: linearly implicit steps, each plane at its own pace.

    Examples
    --------
    >>> betas, weight = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1000.0, 1000.0])
    >>> start = np.array([[0.0, log_odds(0.15)], [0.0, log_odds(0.35)]])  # the spurious feature alone
    >>> (ends(start, betas, weight)[:, 0] > 0.5).tolist()
    [True, False]
    """
    w, t, pace = start.astype(float), np.zeros(len(start)), 1e-3 / (1 + weight)
    own = np.where(_SIGNS[:, 0] > 0, 1 - alpha, alpha)
    shares = own * np.where(_SIGNS[:, 1] > 0, 1 - betas[..., None], betas[..., None])
    left = np.arange(len(w))
    while left.size:
        step = np.minimum(pace[left], time - t[left])
        at, now, of = w[left], weight[left], shares[left]
        gradient, hessian = _bent(at, of, now, penalty)
        matrix = np.eye(2) + (_GAMMA * step)[:, None, None] * hessian
        first, fine = _solve(matrix, -gradient)
        once = at + step[:, None] * first
        second, _ = _solve(matrix, -_bent(once, of, now, penalty)[0] - 2 * first)
        new = at + step[:, None] * (1.5 * first + 0.5 * second)
        error = np.abs(new - once).max(1) / within
        error = np.where(fine & np.isfinite(error), error, 1e4)
        taken = error <= 1
        w[left[taken]], t[left[taken]] = new[taken], t[left[taken]] + step[taken]
        pace[left] = step * np.clip(0.9 / np.sqrt(np.maximum(error, 1e-10)), 0.2, 4)
        left = left[t[left] < time * (1 - 1e-12)]
    return w


def phases(weight: tuple[float, ...], step: float = 0.02, alpha: float = 0.25) -> xr.DataArray:
    """How much of the invariant feature there is in the end, in units of its log odds.

    Dimensions (penalty, start, weight, pair); of all pairs β₁ < β₂ on a grid, and of all `STARTS`.
    """
    grid = np.arange(step, 0.5 - step / 2, step).round(6)
    pairs = np.array(list(combinations(grid, 2)))
    shape = (len(STARTS), len(weight), len(pairs))
    betas = np.broadcast_to(pairs, (*shape, 2)).reshape(-1, 2)
    weights = np.broadcast_to(np.array(weight)[:, None], shape).ravel()
    whole = np.stack([np.full(len(betas), log_odds(alpha)), log_odds(betas.mean(1))], -1)
    start = whole * np.repeat(list(STARTS.values()), len(weight) * len(pairs), 0)
    found = [ends(start, betas, weights, alpha, penalty)[:, 0].reshape(shape) for penalty in ("IRMv1", "VREx")]
    return xr.DataArray(
        np.array(found) / log_odds(alpha), dims=("penalty", "start", "weight", "pair"), name="kept",
        coords={"penalty": ["IRMv1", "VREx"], "start": list(STARTS), "weight": list(weight),
                "beta_1": ("pair", pairs[:, 0]), "beta_2": ("pair", pairs[:, 1])},
        attrs={"long_name": "invariant feature in the end, of its log odds", "units": "1"},
    )


def border(betas: Float[np.ndarray, "N 2"], alpha: float = 0.25, halvings: int = 14) -> Float[np.ndarray, " N"]:
    """The closeness up to which the flow leads from the spurious feature alone to the invariant one, by bisection."""
    start = np.stack([np.zeros(len(betas)), log_odds(betas.mean(1))], -1)
    low, high = np.full(len(betas), np.log(0.05)), np.full(len(betas), np.log(50.0))
    for _ in range(halvings):
        middle = (low + high) / 2
        weight = np.exp(middle) / (betas[:, 1] - betas[:, 0]) ** 2
        kept = ends(start, betas, weight, alpha)[:, 0] > log_odds(alpha) / 2
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return np.exp((low + high) / 2)
