"""Settings: axes, canonical JSON, names; every mistake gets one sentence before any work."""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from flbook.runs import settings


@dataclass(frozen=True)
class Setting:
    n: int = 20
    mu: tuple = (0.5, 1.0)
    rule: str = "gd"
    seed: tuple = (0, 1, 2)


@dataclass
class Melting:
    n: int = 1


@dataclass(frozen=True)
class Nested:
    other: Setting = field(default_factory=Setting)


def test_axes_are_the_tuples_in_order():
    assert settings.axes(Setting()) == {"mu": (0.5, 1.0), "seed": (0, 1, 2)}
    assert list(settings.axes(Setting())) == ["mu", "seed"]


def test_json_is_canonical_and_tells_settings_apart():
    assert settings.to_json(Setting()) == '{"mu": [0.5, 1.0], "n": 20, "rule": "gd", "seed": [0, 1, 2]}'
    assert json.loads(settings.to_json(Setting(mu=tuple(np.linspace(0.1, 1, 3)))))["mu"] == [0.1, 0.55, 1.0]
    numpys = Setting(n=np.int64(20), mu=tuple(np.array([0.5, 1.0])), seed=tuple(np.arange(3)))
    assert settings.to_json(numpys) == settings.to_json(Setting())
    changed = (replace(Setting(), n=21), replace(Setting(), seed=(0, 2, 1)), replace(Setting(), rule="sam"))
    assert len({settings.to_json(one) for one in (Setting(), *changed)}) == 4


def test_none_stands_for_the_default_and_is_no_axis():
    assert json.loads(settings.to_json(Setting(n=None)))["n"] is None
    assert "n" not in settings.axes(Setting(n=None))


def test_digest_keeps_its_parts_apart():
    assert settings.digest("ab", "c") != settings.digest("a", "bc")
    assert settings.digest("ab", 1) == settings.digest("ab", "1")
    assert len(settings.digest()) == 16 and int(settings.digest("x"), 16) >= 0
    assert settings.digest("flbook") == "c76707ad3bbbeb47"  # the same on every machine and in every year


@pytest.mark.parametrize(
    "setting, sentence",
    [
        (Setting(mu=()), r"^mu is an empty axis"),
        (Setting(mu=(1.0, 2.0, 1)), r"^mu has the value 1 twice"),
        (Setting(mu=[1.0, 2.0]), r"^mu must be a number, a string, None or a tuple of .* not a list"),
        (Setting(mu=(1.0, float("inf"))), r"^mu must be finite numbers, not inf"),
        (Setting(n=float("nan")), r"^n must be finite numbers, not nan"),
        (Setting(mu=(1.0, None)), r"^mu must be a number, .* not a NoneType"),
        (Setting(mu=((1.0,), (2.0,))), r"^mu must be a number.* not a tuple"),
        (Setting(mu=(1.0, "a")), r"^mu mixes numbers and strings"),
        (Setting(seed=(2**31,)), r"^seed must stay below 2\*\*31"),
        (Nested(), r"^other must be a number.* not a Setting"),
        (Melting(), r"^setting must be an instance of a frozen dataclass"),
        (Setting, r"^setting must be an instance of a frozen dataclass"),
        ({"n": 1}, r"^setting must be an instance of a frozen dataclass"),
    ],
)
def test_a_bad_setting_gets_one_sentence(setting, sentence):
    for reader in (settings.axes, settings.to_json):
        with pytest.raises(ValueError, match=sentence):
            reader(setting)


def test_a_lattice_has_equal_ratios_between_its_ends():
    axis = settings.lattice(0.5, 8.0, 5)
    assert axis == (0.5, 1.0, 2.0, 4.0, 8.0)
    assert settings.lattice(1.0, 2.0, 3)[1] == 1.41421, "short enough to be read"


def test_unknown_names_on_an_axis_are_refused():
    settings.among("model", ("lazy",), {"network": 1, "lazy": 2})
    with pytest.raises(ValueError, match="^model must be among network, lazy; got 'deep'$"):
        settings.among("model", ("lazy", "deep"), {"network": 1, "lazy": 2})
