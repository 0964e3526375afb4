"""Overlaps of learned neurons with a teacher's: the order parameters of two-layer networks."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import checked_arguments


class OrderParameters(NamedTuple):
    """Inner products of m learned neurons and k of a teacher, ensemble axes first."""

    students: Float[Tensor, "*E m m"]  # Q = W W'
    overlaps: Float[Tensor, "*E m k"]  # R = W T'
    teachers: Float[Tensor, "k k"]  # T T'
    cosines: Float[Tensor, "*E m k"]  # R over the lengths; 0 for a neuron of length 0


@checked_arguments
def order_parameters(weights: Float[Tensor, "*E m d"], teacher: Float[Tensor, "k d"]) -> OrderParameters:
    r"""What a population loss over Gaussian inputs depends on, in place of m d weights.

    .. math:: Q_{ij} = \langle w_i, w_j\rangle, \qquad R_{ia} = \langle w_i, t_a\rangle, \qquad
              T_{ab} = \langle t_a, t_b\rangle

    Parameters
    ----------
    weights
        First layers of an ensemble of networks, shape ``(*E, m, d)``.
    teacher
        The directions of the target, shape ``(k, d)``; one direction may come as ``(1, d)``.

    Returns
    -------
    OrderParameters
        Inner products and cosines.

    Raises
    ------
    ValueError
        If the two have other dimensions d.

    Source: Saad and Solla (1995).

    Examples
    --------
    >>> order_parameters(torch.tensor([[0.0, 2.0]]), torch.eye(2)).cosines.tolist()
    [[0.0, 1.0]]
    """
    if weights.shape[-1] != teacher.shape[-1]:
        raise ValueError(f"weights and teacher must have one dimension d; got {weights.shape[-1]} and "
                         f"{teacher.shape[-1]}")
    overlaps = weights @ teacher.mT
    lengths = weights.norm(dim=-1)[..., None] * teacher.norm(dim=-1)
    cosines = torch.where(lengths > 0, overlaps / lengths.clamp(min=torch.finfo(lengths.dtype).tiny), 0.0)
    return OrderParameters(weights @ weights.mT, overlaps, teacher @ teacher.mT, cosines)
