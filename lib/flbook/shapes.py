"""Axes: the letters that every shape in flbook is written in, and what acts along the ensemble.

Ensemble axes lead, axes with a meaning trail, and no reduction ever crosses the ensemble:

    *E   ensemble: any number of leading axes (dimensions d, seeds, signal strengths, ...); empty for a single network
    n    training samples               i
    P    patches of one sample (2: signal, noise)
    d    dimension of a patch
    j    sign of an output (+1, -1)
    r    filter of one sign, m of them
    k    filters of both signs, k = 2 m, the m of +1 first

In-context learning, where a sample is a prompt: examples with their labels, and one query or several:

    *E   prompts (and tasks, seeds, ...)
    n    examples in a prompt           i
    d    dimension of an input
    q    queries about one and the same context; 1 for the usual prompt

A matrix times a vector, member by member: in ``torch.einsum("...n,...kn->...k", vector, matrix)`` the vector comes
first, which a processor's batched product takes five to eight times faster than the other order.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Context(NamedTuple):
    """The examples of a prompt.

    Everything that answers a prompt, trained or not, is called ``predictor(context, query)`` with queries of shape
    ``(*E, q, d)``, and returns its predictions, shape ``(*E, q)``.

    Attributes
    ----------
    x
        Inputs, shape ``(*E, n, d)``.
    y
        Their labels, shape ``(*E, n)``.
    """

    x: Float[Tensor, "*E n d"]
    y: Float[Tensor, "*E n"]


class Quantity(NamedTuple):
    """Something to record while training: a function of the parameters, and what to call its result.

    Attributes
    ----------
    name
        Of the variable in the Dataset.
    of
        ``of(params)`` returns a tensor of shape ``(*E, *dims)``.
    dims
        Names of its own axes.
    long_name, units
        What figures call it.
    """

    name: str
    of: Callable[[dict[str, Tensor]], Tensor]
    dims: tuple[str, ...] = ()
    long_name: str = ""
    units: str = "1"


def per_member(scalar: float | Tensor, like: Tensor) -> float | Tensor:
    """A number, or one number a member, made ready to multiply a tensor of the ensemble.

    Parameters
    ----------
    scalar
        A number, or a tensor of shape ``*E``.
    like
        What it will multiply, shape ``(*E, ...)``.

    Returns
    -------
    float or Tensor
        The number, or a tensor of shape ``(*E, 1, ..., 1)`` with as many axes as `like`.

    Raises
    ------
    ValueError
        If the shape of the scalar is not that of the ensemble.

    Examples
    --------
    >>> per_member(torch.tensor([0.1, 0.2]), torch.zeros(2, 5, 3)).shape
    torch.Size([2, 1, 1])
    """
    if not isinstance(scalar, Tensor) or scalar.ndim == 0:
        return scalar
    fits = all(size in (1, axis) for size, axis in zip(scalar.shape, like.shape, strict=False))
    if scalar.ndim > like.ndim or not fits:
        raise ValueError(
            f"a scalar given for each member has the ensemble's shape: got {tuple(scalar.shape)} "
            f"for parameters of shape {tuple(like.shape)}"
        )
    return scalar.to(like).reshape(*scalar.shape, *[1] * (like.ndim - scalar.ndim))


def signs(k: int, like: Tensor) -> Tensor:
    """The output sign of each of `k` filters: +1 for the first half, -1 for the second.

    Parameters
    ----------
    k
        Number of filters.
    like
        A tensor whose dtype and device the signs get.

    Returns
    -------
    Tensor
        Signs, shape ``(k,)``.

    Examples
    --------
    >>> signs(4, torch.zeros(()))
    tensor([ 1.,  1., -1., -1.])
    """
    return torch.cat([like.new_ones(k // 2), -like.new_ones(k - k // 2)])


def broadcasts(shape: Sequence[int], ensemble: Sequence[int]) -> bool:
    """Does a shape broadcast to that of the ensemble, without adding to it?

    Parameters
    ----------
    shape
        Lengths of some leading axes.
    ensemble
        Lengths of the ensemble axes.

    Returns
    -------
    bool
        True if each is that of the ensemble, or 1, or absent.
    """
    pairs = zip(reversed(shape), reversed(ensemble), strict=False)
    return len(shape) <= len(ensemble) and all(size in (1, axis) for size, axis in pairs)
