"""Which tests a run asks for: those whose numbers hang on the processor, or those of some lectures alone."""

import os
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
EXPERIMENTS = TESTS.parent / "lib" / "flbook" / "lectures"
# What lies in tests/, one list or the other: sums in another order may change what these compute ...
NUMERIC = {"data", "dynamics", "estimators", "lectures", "models", "observe", "report", "theory", "training",
           "test_devices.py", "test_doctests.py", "test_ensembles.py", "test_fits.py", "test_hermite.py",
           "test_measures.py", "test_rivals.py", "test_rng.py", "test_theory.py"}
# ... and here nothing is added up: pages, pictures, files, sentences, imports, shapes.
EXACT = {"book", "claims", "course", "plots", "runs", "test_address.py", "test_chosen.py", "test_domains.py",
         "test_environments.py", "test_gpu_capable.py", "test_import.py", "test_layers.py", "test_main.py",
         "test_portable.py", "test_shapes.py", "test_workflows.py", "lectures/test_presets.py",
         "lectures/test_refusals.py"}


def numeric(path: Path) -> bool:
    """May the numbers of a file of tests hang on the processor? The list that names it most closely decides."""
    places = [place.as_posix() for place in (path.relative_to(TESTS), *path.relative_to(TESTS).parents)]
    return next(place in NUMERIC for place in places if place in NUMERIC | EXACT)


def lectures() -> list[str]:
    """The lectures that the run is about, as ``"chapter/name"``; none means all."""
    return os.environ.get("FLBOOK_LECTURES", "").split()


@cache
def names(lecture: str) -> list[str]:
    """What the tests of all lectures call their cases of one: its own name, and its experiments'."""
    files = (EXPERIMENTS / lecture).glob("*.py")
    return [lecture, *(f"{Path(lecture).parent}/{file.stem}" for file in sorted(files) if file.stem != "__init__")]


def about(lecture: str, path: Path, case: str) -> bool:
    """Is a test of this lecture? It lies in its folder, or the case in its brackets is called so."""
    asked = "|".join(map(re.escape, names(lecture)))
    return TESTS / "lectures" / lecture in path.parents or bool(re.search(rf"(?<!\w)({asked})(?!\w)", case))
