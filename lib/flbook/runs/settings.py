"""Settings: what an experiment is run at, as one frozen dataclass whose tuples are the axes of its sweep.

An experiment has a `Grid`:

>>> from flbook.domains import Count, Natural, Positive
>>> @dataclasses.dataclass(frozen=True)
... class Setting(Grid):
...     n: tuple[Count, ...] = axis((20, 40), "samples n")
...     seed: tuple[Natural, ...] = axis(range(3), "seed")
...     lr: Positive = 0.1  # step size
>>> axes(Setting())
{'n': (20, 40), 'seed': (0, 1, 2)}
>>> Setting(n=20)
Traceback (most recent call last):
ValueError: n must be a tuple of at least one value, each a whole number of at least 1; got 20

A setting is written as canonical JSON, from which caches and stored results take their names, so two runs of the same
setting find each other and a changed one never passes for the old.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar

from flbook.domains import Checked

_WIDEST = 2**31  # a netCDF file (version 3) holds integers of 32 bits


def axis(values: Iterable, label: str, units: str = "1") -> Any:
    """A field of a `Grid` that is an axis of the sweep: its default values, and what figures call it.

    Parameters
    ----------
    values
        The default values, in order.
    label
        The ``long_name``.
    units
        ``"1"`` for a pure number.

    Returns
    -------
    Any
        A dataclass's field.
    """
    return dataclasses.field(default=tuple(values), metadata={"long_name": label, "units": units})


class Grid(Checked):
    """A setting: a frozen dataclass of plain numbers and strings, each in the domain of its annotation.

    Its tuples are the axes of the sweep, made by `axis`, and its defaults are the book's preset. A subclass may refuse
    cells that the model does not have in `check`, so that no cell is computed before the last is known to exist. Raises
    ValueError, in one sentence.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]  # every subclass is a dataclass

    def __post_init__(self):
        super().__post_init__()
        axes(self)
        self.check()

    def check(self) -> None:
        """Refuse what no single field can refuse."""

    def thinned(self, **changed: Any) -> "Grid":
        """The same setting with some fields changed, such as fewer values of an axis.

        Parameters
        ----------
        **changed
            Fields and their values.

        Returns
        -------
        Grid
            Of the same class, checked anew.
        """
        unknown = [name for name in changed if name not in self.__dataclass_fields__]
        if unknown:
            known = ", ".join(self.__dataclass_fields__)
            raise ValueError(f"the setting has no field {unknown[0]!r}; its fields are {known}")
        return dataclasses.replace(self, **changed)

    def coordinates(self, *names: str) -> dict[str, tuple]:
        """The axes of a Dataset, or some of them, with their values, labels and units.

        Parameters
        ----------
        *names
            Axes; all of them if none is named.

        Returns
        -------
        dict[str, tuple]
            By axis ``(name, values, {"long_name": ..., "units": ...})``, as xarray takes it.
        """
        return {name: (name, list(getattr(self, name)), dict(self.__dataclass_fields__[name].metadata))
                for name in names or axes(self)}

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has, in order.

        Returns
        -------
        tuple[int, ...]
            One number an axis.
        """
        return tuple(map(len, axes(self).values()))


def lattice(low: float, high: float, steps: int) -> tuple[float, ...]:
    """An axis: numbers from low to high at equal ratios, short enough to be read.

    Parameters
    ----------
    low, high
        The ends, above 0.
    steps
        How many numbers, at least 2.

    Returns
    -------
    tuple[float, ...]
        `steps` numbers of six significant digits.
    """
    return tuple(float(f"{low * (high / low) ** (i / (steps - 1)):.6g}") for i in range(steps))


def among(field: str, values: tuple[str, ...], known: Iterable[str]) -> None:
    """Refuse names on an axis that its experiment does not know.

    Parameters
    ----------
    field
        The axis.
    values
        What stands on it.
    known
        The names that the experiment knows.
    """
    unknown = [value for value in values if value not in known]
    if unknown:
        raise ValueError(f"{field} must be among {', '.join(known)}; got {unknown[0]!r}")


def _number(field: str, value: Real) -> int | float:
    """A plain Python number, so that numpy's and Python's own are written alike."""
    if isinstance(value, Integral):
        return value if isinstance(value, bool) else int(value)
    if not math.isfinite(value):
        raise ValueError(f"{field} must be finite numbers, not {float(value)}")
    return float(value)


def _scalar(field: str, value: object) -> int | float | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Real):
        return _number(field, value)
    raise ValueError(
        f"{field} must be a number, a string, None or a tuple of numbers or strings (a tuple is an axis of the sweep), "
        f"not a {type(value).__name__}"
    )


def _field(name: str, value: object) -> int | float | str | tuple | None:
    if value is None:  # "the default of the model"
        return None
    return _axis(name, value) if isinstance(value, tuple) else _scalar(name, value)


def _axis(field: str, values: tuple) -> tuple:
    if not values:
        raise ValueError(f"{field} is an empty axis; it needs at least one value")
    clean = tuple(_scalar(field, value) for value in values)
    if len({isinstance(value, str) for value in clean}) > 1:
        raise ValueError(f"{field} mixes numbers and strings: {values}; an axis is all of one or all of the other")
    if len(set(clean)) < len(clean):
        repeated = next(value for i, value in enumerate(clean) if value in clean[:i])
        raise ValueError(f"{field} has the value {repeated!r} twice; the values of an axis must differ")
    if any(isinstance(value, int) and abs(value) >= _WIDEST for value in clean):
        raise ValueError(f"{field} must stay below 2**31 where it is an integer; write larger values as floats")
    return clean


def fields(setting: object) -> dict[str, int | float | str | tuple | None]:
    """The fields of a setting, in order, as plain numbers, strings, tuples and None.

    Raises ValueError, in one sentence, if `setting` is no frozen dataclass, or a field is something else, a list, not
    finite, or an axis that is empty or repeats a value.

    Parameters
    ----------
    setting
        Any frozen dataclass, a `Grid` or not.

    Returns
    -------
    dict[str, int | float | str | tuple | None]
        Values by name.
    """
    frozen = getattr(getattr(setting, "__dataclass_params__", None), "frozen", False)
    if isinstance(setting, type) or not dataclasses.is_dataclass(setting) or not frozen:
        raise ValueError(f"setting must be an instance of a frozen dataclass, not {setting!r}")
    values = {field.name: getattr(setting, field.name) for field in dataclasses.fields(setting)}
    return {name: _field(name, value) for name, value in values.items()}


def axes(setting: object) -> dict[str, tuple]:
    """The axes of the sweep, in order: every field of the setting that is a tuple. Raises as :func:`fields` does.

    Parameters
    ----------
    setting
        As `fields` takes it.

    Returns
    -------
    dict[str, tuple]
        Values by name.
    """
    return {name: value for name, value in fields(setting).items() if isinstance(value, tuple)}


def to_json(setting: object) -> str:
    """The setting as canonical JSON: sorted keys, tuples as lists. Raises as :func:`fields` does.

    Parameters
    ----------
    setting
        As `fields` takes it.

    Returns
    -------
    str
        One line.
    """
    return json.dumps(fields(setting), sort_keys=True)


def digest(*parts: object) -> str:
    """Sixteen hexadecimal digits of the SHA-256 of these parts, each taken as text.

    Parameters
    ----------
    *parts
        Of any type.

    Returns
    -------
    str
        The same in every process.
    """
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:16]
