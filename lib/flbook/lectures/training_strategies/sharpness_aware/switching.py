"""Noise neurons and what SAM's perturbation does to them: pairs of a filter and a sample whose noise it answers to."""

import torch
from jaxtyping import Bool, Float
from scipy.special import ndtr
from torch import Tensor

from flbook.dynamics.gram import GramTraining
from flbook.shapes import per_member, signs
from flbook.training.problem import Params


def own_label(problem: GramTraining) -> Bool[Tensor, "*#E k n"]:
    """Pairs of a filter and a sample of the label that it votes for."""
    return signs(problem.gram.w_w.shape[-1], problem.observed)[:, None] * problem.observed[..., None, :] > 0


def memorised(problem: GramTraining, params: Params) -> Float[Tensor, "*E"]:
    """For each sample the largest noise coefficient of its own label's filters; their mean over the samples."""
    rho = problem.noise_memorised(params).flatten(-3, -2)
    return rho.where(own_label(problem), rho.new_tensor(-torch.inf)).amax(-2).mean(-1)


def perturbed(problem: GramTraining, params: Params, radius: float | Tensor) -> Params:
    """The point at which SAM takes its gradient: uphill by `radius`, one number or one a member."""
    grad = problem.gradient(params)
    reach = radius / problem.norm(grad)
    return {name: p + per_member(reach, p) * grad[name] for name, p in params.items()}


def survival(problem: GramTraining, radius: float | Tensor) -> Float[Tensor, "*E"]:
    """Share of the active own-label noise neurons that are still active after the first perturbation."""
    start = problem.start()
    before, after = (problem.patches(at)["noise"] > 0 for at in (start, perturbed(problem, start, radius)))
    active = before & own_label(problem)
    return (active & after).sum((-2, -1)) / active.sum((-2, -1))


def survival_law(ratio, n: int, snr: float = 0.0):
    r"""The same for large d: :math:`2(1-\Phi(\kappa\,\tau/(\sigma_0\sqrt{nm})))`.

    With :math:`\kappa^{-2}=1+n\,\mathrm{SNR}^2/2`, the signal's part of the gradient's length. ratio:
    :math:`\tau/(\sigma_0\sqrt{nm})`, a number or an array.
    """
    return 2 * ndtr(-ratio / (1 + n * snr**2 / 2) ** 0.5)
