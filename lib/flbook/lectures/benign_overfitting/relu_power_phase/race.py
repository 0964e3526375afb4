r"""The race of a ReLU^q network, q > 2, solved in closed form from its initial weights.

While outputs are small every sample has the slope 1/2 of the logistic loss, and every filter runs alone. With
orthogonal noise, balanced classes and :math:`d \gg n^2`, in the time :math:`\eta t` of gradient flow,

.. math:: \dot u_{j,r} = a\,u_{j,r}^{q-1}, \quad a = \frac{s q\|\mu\|^2}{4}, \qquad
          \dot z_i = b_i\,z_i^{q-1}, \quad b_i = \frac{s q\|\xi_i\|^2}{2n},

where :math:`u_{j,r} = j\langle w_{j,r}, \mu\rangle`, :math:`z_i = \max_r \langle w_{y_i,r}, \xi_i\rangle` and s is the
weight of a filter in the output. Sample i is fitted, and stops pulling, when its :math:`z_i` blows up.

Source: derived in the lecture on powers of ReLU.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.gram import GramTraining
from flbook.lectures.benign_overfitting.relu_power_phase.blow_up import blow_up_time
from flbook.models.activations import ReLUPower
from flbook.shapes import signs
from flbook.training.problem import Params

_FITTED = 3.0  # the output at which a race counts as decided: a loss of 0.05


def contestants(problem: GramTraining) -> tuple[Float[Tensor, "*E k"], Float[Tensor, "*E n"]]:
    r"""Where the race starts: every filter's :math:`j\langle w, \mu\rangle`, and every sample's best filter."""
    return positions(problem, problem.start())


def positions(problem: GramTraining, params: Params) -> tuple[Float[Tensor, "*E k"], Float[Tensor, "*E n"]]:
    """Where it stands at given parameters: u of every filter, z of every sample."""
    on_mu, on_xi = problem.preactivations(params)
    best = on_xi.unflatten(-2, (2, on_xi.shape[-2] // 2)).amax(-2)
    return signs(on_mu.shape[-1], on_mu) * on_mu, torch.where(problem.y > 0, best[..., 0, :], best[..., 1, :])


def blow_up_times(problem: GramTraining) -> tuple[Float[Tensor, "*E k"], Float[Tensor, "*E n"]]:
    r"""When each filter's signal and each sample's noise would blow up if nothing stopped them, in :math:`\eta t`.

    Infinity for a filter that starts on the wrong side of 0. Raises ValueError unless the activation is ReLU^q, q > 2.
    """
    q = power(problem)
    u, z = contestants(problem)
    signal, noise = rates(problem, q)
    times = blow_up_time(u.cpu(), signal[..., None].cpu().numpy(), q), blow_up_time(z.cpu(), noise.cpu().numpy(), q)
    return tuple(torch.as_tensor(time).to(u) for time in times)


def rates(problem: GramTraining, q: float) -> tuple[Float[Tensor, "*#E"], Float[Tensor, "*#E n"]]:
    """The constants a and b of the two growth laws."""
    square = problem.gram.xi_xi.diagonal(dim1=-2, dim2=-1)
    factor = problem.scale * q
    return factor * problem.gram.mu_mu / 4, factor * square / (2 * square.shape[-1])


def forecast(problem: GramTraining) -> Params:
    r"""The signal that training will have learned, from the initial weights alone; memorised noise is left at 0.

    The samples of a class pull until they are fitted, one by one, so the class's filters run for as long as its samples
    take on average, :math:`\bar T_j`, the mean of their blow-up times:

    .. math:: u_{j,r} = \big(u_{j,r}(0)^{-(q-2)} - (q-2)\,a\,\bar T_j\big)^{-1/(q-2)},

    or the level at which one filter alone fits the class, if the bracket is below what that takes: signal blew up.
    """
    q, k = power(problem), problem.gram.w_w.shape[-1]
    u, _ = contestants(problem)
    clock = class_clocks(problem, blow_up_times(problem)[1]).repeat_interleave(k // 2, -1)
    fitted = (_FITTED / problem.scale) ** (1 / q)
    tiny = torch.finfo(u.dtype).tiny ** 0.5
    bracket = u.clamp(min=tiny) ** -(q - 2) - (q - 2) * rates(problem, q)[0][..., None] * clock
    end = torch.where(u > 0, bracket.clamp(min=fitted ** -(q - 2)) ** (-1 / (q - 2)), u)
    end = torch.where(u > 0, torch.maximum(end, u), u)
    return problem.start() | {"mu": signs(k, u) * (end - u) / problem.gram.mu_mu[..., None]}


def class_clocks(problem: GramTraining, noise: Float[Tensor, "*E n"]) -> Float[Tensor, "*E 2"]:
    r""":math:`\bar T_j`, the mean time in which the samples of a class are fitted, from their blow-up times."""
    return torch.stack([_mean_where(noise, problem.y > 0), _mean_where(noise, problem.y < 0)], -1)


def power(problem: GramTraining) -> float:
    """The power q of the activation, above 2."""
    q = getattr(problem.activation, "q", None)
    if not (isinstance(problem.activation, ReLUPower) and q > 2):
        raise ValueError(f"activation must be ReLU^q with q > 2 for a race with a finite end; got {problem.activation}")
    return q


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the chosen samples."""
    return torch.where(chosen, values, 0.0).sum(-1) / chosen.sum(-1)
