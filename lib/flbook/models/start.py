"""A given start: a model whose parameters before training are one's own draws."""

import copy
from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


def with_start(model: Model, start: Mapping[str, Tensor] | None = None, **named: Tensor) -> Model:
    """The same model with given parameters before training, in their dtype.

    A buffer that remembers a parameter's start, named after it with ``_0``, is given the same.

    Parameters
    ----------
    model
        Any module; it stays as it is.
    start
        Parameters by name, each of the shape that the model's has; those that are not named stay the model's own.
    **named
        The same, as arguments.

    Returns
    -------
    nn.Module
        A copy with the given start.

    Raises
    ------
    ValueError
        If the model has no such parameter, or one of another shape, or the given ones differ in dtype.

    Examples
    --------
    >>> from flbook import TwoLayerCNN
    >>> w = torch.ones(2, 4, 100)
    >>> with_start(TwoLayerCNN(d=100, m=4), w=w).w.equal(w)
    True
    """
    given, own = {**(start or {}), **named}, dict(model.named_parameters())
    for name, value in given.items():
        if name not in own:
            raise ValueError(f"{type(model).__name__} has no parameter {name}; it has {', '.join(own)}")
        if value.shape != own[name].shape:
            raise ValueError(f"the start of {name} must have the shape {tuple(own[name].shape)} that the model's has; "
                             f"got {tuple(value.shape)}")
    dtypes = {value.dtype for value in given.values()}
    if len(dtypes) > 1:
        raise ValueError(f"the start must be of one dtype; got {', '.join(sorted(map(str, dtypes)))}")
    there = copy.deepcopy(model)
    for dtype in dtypes:
        there = there.to(dtype=dtype)
    remembered = dict(there.named_buffers())
    with torch.no_grad():
        for name, value in given.items():
            there.get_parameter(name).copy_(value)
            if f"{name}_0" in remembered:
                remembered[f"{name}_0"].copy_(value)
    return there
