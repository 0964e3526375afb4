"""Domains: which values a field may take, said in its annotation and checked for all of them in one place.

A frozen dataclass that inherits from `Checked` refuses a value outside its field's domain in one sentence that names
the field, what it was and what it may be, before any work:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Coin(Checked):
...     p: Probability = 0.5
...     tosses: Count = 10
>>> Coin(p=1.5)
Traceback (most recent call last):
ValueError: p must be a number in [0, 1]; got 1.5
>>> Coin(tosses=2.5)
Traceback (most recent call last):
ValueError: tosses must be a whole number of at least 1; got 2.5
"""

import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, wraps
from numbers import Integral, Real
from typing import Annotated, Any, Literal


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, each of which belongs to them or not.

    Attributes
    ----------
    low, high
        The ends.
    ends
        ``"["`` or ``"("``, then ``"]"`` or ``")"``: a round one is left out.

    Examples
    --------
    >>> Range(0, 0.5, "[)").holds(0.5)
    False
    """

    low: float = -math.inf
    high: float = math.inf
    ends: str = "[]"

    def holds(self, value: Any) -> Any:
        """Does the value lie in it? Elementwise for an array.

        Parameters
        ----------
        value
            A number, or an array or tensor of numbers.

        Returns
        -------
        bool, or array of bool
            Answers, of the shape of `value`.
        """
        above = value >= self.low if self.ends[0] == "[" else value > self.low
        return above & (value <= self.high if self.ends[1] == "]" else value < self.high)

    def __str__(self) -> str:
        """In words."""
        if self.high < math.inf:
            return f" in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"
        if self.low == -math.inf:
            return ""
        return f" of at least {self.low:g}" if self.ends[0] == "[" else f" above {self.low:g}"


Count = Annotated[int, Range(1)]  # samples, filters, dimensions, steps
Natural = Annotated[int, Range(0)]  # seeds, steps taken
Positive = Annotated[float, Range(0, ends="(]")]
NonNegative = Annotated[float, Range(0)]
Probability = Annotated[float, Range(0, 1)]
Fraction = Annotated[float, Range(0, 1, "[)")]  # a memory, an overlap
FlipProbability = Annotated[float, Range(0, 0.5, "[)")]  # beyond 1/2 flips carry the label


class Checked:
    """A frozen dataclass whose fields lie in the domains of their annotations.

    Checked are numbers, strings, ``Literal`` choices, tuples of them, and tensors of numbers; fields of other types are
    left to the class, and so is what no field can refuse alone: after ``super().__post_init__()``.

    Raises
    ------
    ValueError
        If a field is outside its domain.
    """

    def __post_init__(self):
        check(self)


def check(instance: Any) -> None:
    """Refuse a dataclass one of whose fields is outside its domain.

    Parameters
    ----------
    instance
        A dataclass with annotated fields.
    """
    hints = _hints(type(instance))
    for field in fields(instance):
        require(field.name, getattr(instance, field.name), hints[field.name])


def require(name: str, value: Any, hint: Any) -> None:
    """Refuse a value outside the domain of an annotation, in one sentence.

    Parameters
    ----------
    name
        What the sentence calls the value.
    value
        The value to check.
    hint
        Its annotation, such as `Positive` or ``int | None``.

    Examples
    --------
    >>> require("seed", 1.5, Natural)
    Traceback (most recent call last):
    ValueError: seed must be a whole number of at least 0; got 1.5
    """
    if not admits(hint, value):
        raise ValueError(f"{name} must be {describe(hint)}; got {_shown(value)}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def admits(hint: Any, value: Any) -> bool:
    """Does a value lie in the domain of an annotation?

    Parameters
    ----------
    hint
        The annotation.
    value
        The value to check.

    Returns
    -------
    bool
        Answer, True also for an annotation that names no domain.
    """
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is Annotated:
        ranges = [part for part in parts[1:] if isinstance(part, Range)]
        return admits(parts[0], value) and all(bool(one.holds(value)) for one in ranges)
    if kind in (typing.Union, types.UnionType):
        if _is_tensor(value):
            return any(_is_tensor_type(part) for part in parts) and all(_all_in(part, value) for part in parts)
        return any(admits(part, value) for part in parts if not _is_tensor_type(part))
    if kind is Literal:
        return value in parts
    if kind is tuple:
        if not isinstance(value, tuple):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return bool(value) and all(admits(parts[0], one) for one in value)
        return len(parts) == len(value) and all(map(admits, parts, value))
    if hint in (None, type(None)):
        return value is None
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if _is_tensor_type(hint):
        return _is_tensor(value)
    return isinstance(value, str) if hint is str else True


def describe(hint: Any) -> str:
    """A domain in words.

    Parameters
    ----------
    hint
        The annotation.

    Returns
    -------
    str
        Words to follow "must be".
    """
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is Annotated:
        return describe(parts[0]) + "".join(str(part) for part in parts[1:] if isinstance(part, Range))
    if kind in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_names(parts)))
    if kind is Literal:
        return "among " + ", ".join(map(str, parts))
    if kind is tuple:
        if not parts:
            return "an empty tuple"
        one = describe(parts[0])
        if parts[-1] is Ellipsis:
            return f"a tuple of at least one value, each {one}"
        return f"a tuple of {len(parts)} values, each {one}"
    words = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
    return words.get(hint, f"a {getattr(hint, '__name__', hint)}")


def _names(parts: tuple) -> Iterator[str]:
    for part in parts:
        yield "one number a member" if _is_tensor_type(part) else describe(part)


def _is_tensor(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _is_tensor_type(hint: Any) -> bool:
    return getattr(hint, "__name__", "") == "Tensor" or "jaxtyping" in getattr(hint, "__module__", "")


def _all_in(hint: Any, value: Any) -> bool:
    """Are all numbers of a tensor in the range of an annotation? On the meta device there are none to look at."""
    ranges = [part for part in typing.get_args(hint)[1:] if isinstance(part, Range)]
    if value.device.type == "meta":
        return True
    return bool(value.isfinite().all()) and all(bool(one.holds(value).all()) for one in ranges)


def _shown(value: Any) -> str:
    text = repr(value.tolist() if _is_tensor(value) and value.device.type != "meta" else value)
    return text if len(text) <= 60 else text[:57] + "..."


Seeds = Natural | tuple[Natural, ...]  # one network, or an ensemble


def checked_arguments(function: Callable) -> Callable:
    """A function or constructor that refuses, before any work, arguments outside the domains of their annotations.

    Like the fields of a `Checked`, and in the same sentence. Raises ValueError.

    Parameters
    ----------
    function
        A function, or the ``__init__`` of a class, with annotations.

    Returns
    -------
    Callable
        The function, with the same name and signature.

    Examples
    --------
    >>> @checked_arguments
    ... def halves(width: Count) -> float:
    ...     return width / 2
    >>> halves(2.5)
    Traceback (most recent call last):
    ValueError: width must be a whole number of at least 1; got 2.5
    """
    signature = inspect.signature(function)

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            require(name, tuple(value) if isinstance(value, range) else value, signature.parameters[name].annotation)
        return function(*args, **kwargs)

    return checked
