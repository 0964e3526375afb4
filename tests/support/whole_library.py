"""All classes and checked functions of the library, and values inside and outside the domain of an annotation."""

import dataclasses
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Annotated, Literal, Union

import numpy as np
import torch

import flbook
from flbook import domains
from flbook.domains import Range


def modules() -> list:
    """Every module of the library but its command line."""
    names = [module.name for module in pkgutil.walk_packages(flbook.__path__, "flbook.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def classes(base: type) -> set[type]:
    """All classes of the library that inherit from one."""
    modules()
    found, open_ = set(), [base]
    while open_:
        below = open_.pop().__subclasses__()
        found |= {kind for kind in below if kind.__module__.startswith("flbook.")}
        open_ += below
    return {kind for kind in found if not kind.__name__.startswith("_")}


def has_domain(hint) -> bool:
    """Does an annotation, or a part of it, say which numbers it takes?"""
    return isinstance(hint, Range) or any(map(has_domain, typing.get_args(hint)))


def dataclasses_with_domains() -> set[type]:
    """All dataclasses with a domain among the annotations of their fields."""
    kinds = {kind for module in modules() for _, kind in inspect.getmembers(module, inspect.isclass)}
    return {kind for kind in kinds if dataclasses.is_dataclass(kind) and not kind.__name__.startswith("_")
            and any(map(has_domain, typing.get_type_hints(kind, include_extras=True).values()))}


def functions_with_domains() -> dict[str, Callable]:
    """All functions, constructors and methods with a domain among their annotations; not of dataclasses."""
    found = {}
    for module in modules():
        own = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
        for owner in (module, *own):
            for member in vars(owner).values():
                function = getattr(member, "__func__", member)  # of a class method
                plain = inspect.unwrap(function) if callable(function) else None
                if not inspect.isfunction(plain) or plain.__code__.co_filename != module.__file__:
                    continue
                arguments = inspect.signature(function).parameters.values()
                if any(has_domain(argument.annotation) for argument in arguments):
                    found[f"{plain.__module__}.{plain.__qualname__}"] = function
    return found


def right_value(hint):
    """A value inside the domain of an annotation; what is no domain takes anything."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is Annotated:
        low, high = max(part.low for part in parts[1:]), min(part.high for part in parts[1:])
        return next(value for value in (low, low + 1, (low + high) / 2) if domains.admits(hint, value))
    if kind is Literal:
        return parts[0]
    if kind is tuple:
        return (right_value(parts[0]),) if parts[-1] is Ellipsis else tuple(map(right_value, parts))
    if kind in (Union, UnionType):
        return None if type(None) in parts else right_value(parts[0])
    if domains._is_tensor_type(hint):
        return torch.ones(2, 2)
    return {int: 1, float: 1.0, str: "a", bool: True}.get(hint) if kind is None else None


def wrong_values(hint) -> Iterator:
    """Values outside the domain of an annotation, one kind of mistake each."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is tuple and parts:
        yield from ((), 3)
        yield from ((value,) for value in wrong_values(parts[0]))
    elif kind is Annotated:
        yield from wrong_values(parts[0])
        yield from (part.low - 1 for part in parts if isinstance(part, Range) and part.low > -np.inf)
    elif kind is Literal:
        yield "abracadabra"
    elif hint is int:
        yield from (2.5, "many")
    elif hint is float:
        yield from (float("nan"), "fast")
