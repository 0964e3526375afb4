"""The examples in the docstrings of the core run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import flbook

CORE = [module.name for module in pkgutil.walk_packages(flbook.__path__, "flbook.")
        if not module.name.startswith(("flbook.lectures.", "flbook.__main__"))]
WITH_EXAMPLES = ["flbook.domains", "flbook.rng", "flbook.shapes", "flbook.fits", "flbook.hermite", "flbook.measures",
                 "flbook.data.signal_noise", "flbook.data.prompts", "flbook.data.single_index", "flbook.data.teacher",
                 "flbook.data.images", "flbook.data.tokens", "flbook.estimators.in_context",
                 "flbook.estimators.regression", "flbook.estimators.online", "flbook.theory.boundaries",
                 "flbook.theory.attention_risk", "flbook.theory.forgetting", "flbook.theory.one_step",
                 "flbook.theory.overlap", "flbook.dynamics.gram", "flbook.dynamics.weights",
                 "flbook.training.batches", "flbook.training.fit", "flbook.training.network",
                 "flbook.training.optimizers"]


@pytest.mark.parametrize("name", CORE)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
    assert found.attempted or name not in WITH_EXAMPLES, "a main module of the core shows how it is used"
