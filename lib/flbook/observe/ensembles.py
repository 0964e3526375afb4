"""Ensembles: the same observation of every member, whose parameters share one leading axis."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def members(observation: Callable, *also: str) -> Callable:
    r"""The same observation of every member of an ensemble, the results stacked along a leading axis.

    Parameters
    ----------
    observation
        One of `flbook.observe` that takes ``params`` (or, for `signal_and_noise`, the list ``path``), or a function of
        one's own that does.
    *also
        Names of other arguments that carry the axis of the members, such as ``"x"`` where each has its own inputs.

    Returns
    -------
    Callable
        With the arguments of `observation`. What it returns has the form of one member's result: tensors and numbers
        become tensors with a leading axis, texts a list.

    Raises
    ------
    ValueError
        If the observation takes no parameters, an argument is missing, or the axes of the members differ in length.

    Examples
    --------
    >>> from flbook import observe
    >>> ensemble = {"w": torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])}  # three networks x -> <w, x>
    >>> observe.members(observe.agop)(lambda params, x: x @ params["w"], ensemble, torch.ones(5, 2)).shape
    torch.Size([3, 2, 2])
    """
    signature = inspect.signature(observation)
    carried = [name for name in ("params", "path") if name in signature.parameters] + list(also)
    missing = [name for name in also if name not in signature.parameters]
    if len(carried) == len(also) or missing:
        name = getattr(observation, "__name__", "the observation")
        raise ValueError(f"{name} must take params and {', '.join(also) or 'nothing else'} to be asked of an ensemble; "
                         f"it takes {', '.join(signature.parameters)}")

    @wraps(observation)
    def each(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        own = {name: given[name] for name in carried if given.get(name) is not None}
        lengths = {len(t) if t.ndim else 0 for value in own.values() for t in _tensors(value)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"{' and '.join(own)} must carry one leading axis of members; got axes of the lengths "
                             f"{', '.join(map(str, sorted(lengths)))}")
        found = []
        for k in range(lengths.pop()):
            one = inspect.BoundArguments(signature, given | {name: _member(v, k) for name, v in own.items()})
            found.append(observation(*one.args, **one.kwargs))
        return _stacked(found)

    return each


def _tensors(value: Any) -> list[Tensor]:
    """All tensors of a tensor, a dict or a sequence of these."""
    if isinstance(value, Tensor):
        return [value]
    return [t for part in (value.values() if isinstance(value, dict) else value) for t in _tensors(part)]


def _member(value: Any, k: int) -> Any:
    """The k-th member of a tensor, a dict or a sequence of these."""
    if isinstance(value, Tensor):
        return value[k]
    if isinstance(value, dict):
        return {name: _member(part, k) for name, part in value.items()}
    return [_member(part, k) for part in value]


def _stacked(found: Sequence[Any]) -> Any:
    """Results of all members as one of the same form."""
    first = found[0]
    if isinstance(first, Tensor):
        return torch.stack(list(found))
    if isinstance(first, dict):
        return {name: _stacked([one[name] for one in found]) for name in first}
    if isinstance(first, tuple):
        parts = [_stacked(list(part)) for part in zip(*found, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if isinstance(first, bool | int | float):
        return torch.tensor(found, dtype=torch.float64 if isinstance(first, float) else None)
    return list(found)
