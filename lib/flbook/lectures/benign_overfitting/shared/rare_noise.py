"""Errors on fresh noise that are too rare to be counted, by importance sampling."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.gram import GramTraining
from flbook.measures import sobol_normal
from flbook.training.problem import Params


def log_error(problem: GramTraining, params: Params, points: int = 1024) -> Float[Tensor, "*E"]:
    r"""Logarithm of the test error on true labels: fresh noise is drawn where the network errs, and weighted back.

    A sample is missed where its noise excites the filters of the other sign. These answer to standard normal numbers g
    with a mean of :math:`\langle v, g\rangle`, so g is shifted along v until that mean equals the output on the signal,
    by t, and every point counts with the ratio of the densities, :math:`e^{-t\langle v, g\rangle/\|v\| - t^2/2}`.
    At t = 0 its exponential is `flbook.measures.test_error`.

    Parameters
    ----------
    problem
        A network without bias, and with an activation that answers to what is positive.
    params
        Its coefficients after training.
    points
        Fresh noise patches for each sign, rounded up to a power of two.
    """
    size = problem.test_directions
    standard = sobol_normal(points, size).to(problem.observed)
    columns = problem.fresh(params, torch.eye(size).to(standard))  # pre-activations are linear in g: (*E, size, k)
    z, missed = problem.fresh(params, standard), []
    for sign, signal in zip((1, -1), problem.signal_outputs(params), strict=True):
        v = columns @ (-sign * problem.a).clamp(min=0)
        length = v.norm(dim=-1).clamp(min=torch.finfo(v.dtype).tiny)
        t, along = (sign * signal / length).clamp(min=0), v / length[..., None]
        shift = t[..., None] * torch.einsum("...g,...gk->...k", along, columns)
        noise = problem.noise_outputs(params, z + shift[..., None, :])
        log_weight = -t[..., None] * torch.einsum("pg,...g->...p", standard, along) - t[..., None] ** 2 / 2
        wrong = sign * (signal[..., None] + noise) <= 0
        missed.append(torch.where(wrong, log_weight.double(), -torch.inf).logsumexp(-1))
    return torch.stack(missed).logsumexp(0) - math.log(2 * len(standard))
