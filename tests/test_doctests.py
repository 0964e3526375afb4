"""The examples in the docstrings of the core run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import flbook

CORE = [module.name for module in pkgutil.walk_packages(flbook.__path__, "flbook.")
        if not module.name.startswith(("flbook.lectures.", "flbook.__main__"))]
WITH_EXAMPLES = ["flbook.domains", "flbook.measures", "flbook.dynamics.gram", "flbook.dynamics.weights",
                 "flbook.training.batches", "flbook.training.fit", "flbook.training.network",
                 "flbook.training.optimizers"]


@pytest.mark.parametrize("name", CORE)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
    assert found.attempted or name not in WITH_EXAMPLES, "a main module of the core shows how it is used"
