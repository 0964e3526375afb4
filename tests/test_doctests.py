"""The examples in the docstrings of the library run as they stand."""

import doctest
import importlib
from pathlib import Path

import pytest

import flbook

ROOT = Path(flbook.__file__).parent
WITH_EXAMPLES = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
                 for path in ROOT.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")}
OWED = {"domains", "rng", "shapes", "fits", "hermite", "measures", "data.signal_noise", "data.prompts",
        "data.single_index", "data.images", "estimators.in_context", "estimators.regression", "theory.boundaries",
        "theory.one_step", "theory.overlap", "dynamics.gram", "dynamics.weights", "training.batches", "training.fit",
        "training.network", "training.optimizers", "lectures.representation.lazy_and_mean_field.teacher",
        "lectures.benign_overfitting.shared.tokens", "lectures.in_context_learning.shared.online",
        "lectures.in_context_learning.shared.attention_risk", "lectures.in_context_learning.shared.forgetting"}


@pytest.mark.parametrize("name", sorted(WITH_EXAMPLES))
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0 and found.attempted


def test_a_main_module_shows_how_it_is_used():
    assert {f"flbook.{name}" for name in OWED} <= WITH_EXAMPLES
