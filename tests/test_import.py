"""What importing costs: a reader of stored results never pays for torch."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import flbook

CODE = """
import sys, time
start = time.process_time()
import {modules}
print(time.process_time() - start, *sorted({{"torch", "scipy.stats", "matplotlib"}} & set(sys.modules)))
"""


@pytest.mark.parametrize("modules, seconds", [("flbook, flbook.claims.check", 0.5), ("flbook.plots, flbook.fits", 2.0)])
def test_import_is_quick_and_loads_no_torch(modules, seconds):
    took = []
    for _ in range(4):  # processor time, and the best of a few: a busy machine is no reason to fail
        out = subprocess.run([sys.executable, "-c", CODE.format(modules=modules)], capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        time, *loaded = out.stdout.split()
        assert "torch" not in loaded
        took.append(float(time))
        if min(took) < seconds:
            break
    assert min(took) < seconds, took


def test_every_public_name_resolves():
    for name in flbook.__all__:
        assert getattr(flbook, name) is not None, name
    assert set(flbook.__all__) <= set(dir(flbook))


def test_no_public_name_is_hidden_by_a_submodule():
    assert not [name for name in flbook.__all__ if find_spec(f"flbook.{name}")], "importing it would replace the name"


def test_submodules_resolve_without_an_import_statement():
    code = "import flbook; flbook.data.signal_noise.SignalNoise(); flbook.dynamics.gram.Gram; flbook.rivals.rival"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_unknown_name_is_one_sentence():
    with pytest.raises(AttributeError, match="flbook has no name 'Resnet'; its public names are .*SignalN") as error:
        flbook.Resnet  # noqa: B018
    assert "\n" not in str(error.value)


RENAMED = """
import warnings
import flbook
flbook.RENAMED["Statements"] = ("Claims", "0.2.0", "0.4.0")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert flbook.Statements is flbook.Claims and "Statements" not in flbook.__all__
print(said[0].category.__name__, said[0].filename, said[0].message)
"""


def test_a_renamed_name_works_and_says_where_it_is_asked_for_what_it_is_called_now():
    out = subprocess.run([sys.executable, "-c", RENAMED], capture_output=True, text=True)
    assert out.stdout.strip() == (
        "FutureWarning <string> flbook.Statements is called flbook.Claims since version 0.2.0; the old name goes with "
        "version 0.4.0"), out.stderr


def test_what_was_renamed_leads_to_a_public_name_and_goes_in_time():
    def numbers(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    for old, (new, since, until) in flbook.RENAMED.items():
        assert new in flbook.PUBLIC and old not in flbook.PUBLIC, old
        assert numbers(since)[:2] < numbers(until)[:2], f"{old}: it warns for a minor version at least"
        assert numbers(flbook.__version__) < numbers(until), f"{old} was to go with version {until}"
