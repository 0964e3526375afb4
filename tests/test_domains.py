"""Domains: what a field may be is said in its annotation, checked in one place, and refused in one sentence."""

import inspect
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor
from whole_library import dataclasses_with_domains, functions_with_domains, right_value, wrong_values

from flbook.domains import (
    Checked,
    Count,
    FlipProbability,
    Fraction,
    Natural,
    NonNegative,
    Positive,
    Probability,
    admits,
    describe,
)
from flbook.runs import Grid
from flbook.training.optimizers import GradientDescent

NAN, INF = float("nan"), float("inf")
EACH = torch.tensor


@pytest.mark.parametrize("hint, good, bad", [
    (int, [0, -3, np.int64(2)], [2.5, True, "2", None, 2.0]),
    (float, [0, -1.5, np.float32(2)], [NAN, INF, True, "fast", None, 1j]),
    (bool, [True], [1, 0, "yes"]),
    (str, ["a"], [1, None]),
    (Count, [1, 10**9], [0, -1, 1.5]),
    (Natural, [0, 5], [-1, 0.5, NAN]),
    (Positive, [1e-300, 2], [0, -1, NAN, INF]),
    (NonNegative, [0, 0.5], [-1e-9, NAN]),
    (Probability, [0, 1, 0.5], [-0.1, 1.1, 2]),
    (Fraction, [0, 0.999], [1, 1.5, -0.1]),
    (FlipProbability, [0, 0.49], [0.5, 0.7]),
    (Count | None, [None, 3], [0, "none"]),
    (Literal["fast", "slow"], ["fast"], ["medium", 1]),
    (tuple[Count, ...], [(1,), (1, 2, 3)], [(), 3, [1], (1, 0), (1, "2")]),
    (tuple[Fraction, Fraction], [(0.9, 0.999)], [(0.9,), (0.9, 1.0), 0.9, (0.9, 0.9, 0.9)]),
    (Positive | Tensor, [0.1, EACH([0.1, 2.0]), EACH(3)], [NAN, 0, "fast", [0.1], EACH([1.0, 0.0]), EACH([NAN])]),
    (Natural | tuple[Natural, ...], [0, (0, 1)], [-1, (), (0, -1), EACH([1, 2])]),
    (Fraction | Float[Tensor, "*E"], [0.5, EACH([0.5])], [1.5, EACH([0.5, 1.0]), EACH([INF])]),
], ids=str)
def test_a_domain_admits_what_it_says(hint, good, bad):
    assert all(admits(hint, value) for value in good)
    assert [value for value in bad if admits(hint, value)] == []


def test_numbers_on_the_meta_device_are_not_looked_at():
    assert admits(Positive | Tensor, torch.empty(3, device="meta"))


@pytest.mark.parametrize("hint, words", [
    (Count, "a whole number of at least 1"),
    (Positive | Tensor, "a number above 0 or one number a member"),
    (FlipProbability, "a number in [0, 0.5)"),
    (Literal["fast", "slow"], "among fast, slow"),
    (tuple[Probability, ...], "a tuple of at least one value, each a number in [0, 1]"),
    (Count | None, "a whole number of at least 1 or None"),
])
def test_a_domain_in_words(hint, words):
    assert describe(hint) == words


@dataclass(frozen=True)
class Race(Checked):
    """A dataclass of all kinds of fields, one of them of a type of its own."""

    runners: tuple[Count, ...] = (1, 2)
    pace: Positive | Tensor = 1.0
    style: Literal["fast", "slow"] = "fast"
    anything: object = None


@pytest.mark.parametrize("change, sentence", [
    (dict(runners=()), "runners must be a tuple of at least one value, each a whole number of at least 1; got ()"),
    (dict(runners=20), "runners must be a tuple of at least one value, each a whole number of at least 1; got 20"),
    (dict(pace=NAN), "pace must be a number above 0 or one number a member; got nan"),
    (dict(pace=EACH([1.0, -1.0])), "pace must be a number above 0 or one number a member; got [1.0, -1.0]"),
    (dict(style="odd"), "style must be among fast, slow; got 'odd'"),
])
def test_a_checked_dataclass_refuses_in_one_sentence(change, sentence):
    with pytest.raises(ValueError) as error:
        Race(**change)
    assert str(error.value) == sentence
    assert Race(anything=change) is not None


def test_a_long_value_is_cut():
    with pytest.raises(ValueError, match=r"\.\.\.$") as error:
        Race(pace=-torch.ones(1000))
    assert len(str(error.value)) < 150


CLASSES = [kind for kind in dataclasses_with_domains() if not issubclass(kind, Grid)]
REQUIRED = {"rule": GradientDescent(0.1)}  # what no default and no domain gives


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda kind: kind.__name__))
def test_every_checked_class_refuses_before_any_work(kind):
    """Before what the class itself does in `__post_init__`, whose other fields may be nonsense beside each other."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        for wrong in outside(hints[field.name]):
            instance = object.__new__(kind)
            for other in fields(kind):
                usual = other.default
                if usual is MISSING:
                    usual = REQUIRED.get(other.name, right_value(hints[other.name]))
                object.__setattr__(instance, other.name, wrong if other is field else usual)
            with pytest.raises(ValueError, match=f"^{field.name} must be ") as error:
                instance.__post_init__()
            assert "\n" not in str(error.value)


PARTS = {"flbook.models.transformer.linear", "flbook.models.transformer.Block.__init__"}  # GPT looks at what they get
FUNCTIONS = {name: one for name, one in functions_with_domains().items() if name not in PARTS}


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_checked_function_refuses_before_any_work(name):
    function = FUNCTIONS[name]
    hints = {name: one.annotation for name, one in inspect.signature(function).parameters.items()}
    right = {name: right_value(hint) for name, hint in hints.items()}
    for argument, hint in hints.items():
        for wrong in outside(hint):
            with pytest.raises(ValueError, match=f"^{argument} must be ") as error:
                function(**right | {argument: wrong})
            assert "\n" not in str(error.value)


def outside(hint) -> list:
    """Of a union, what lies outside of each of its parts."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    return [value for part in parts for value in wrong_values(part) if not admits(hint, value)]
