"""One step on the chain, and fresh labels."""

import pytest

from flbook.lectures.in_context_learning.chain_of_thought import chain_step


def test_many_chains_are_enough_and_few_are_not():
    found = chain_step.run(chain_step.experiment.setting("tiny", n=(30, 2500), d=24)).accuracy.sel(tokens="rounded")
    assert float(found.sel(n=2500).min()) == 1.0
    assert float(found.sel(n=30).mean()) < 0.8


def test_the_step_size_lifts_the_last_nodes_parents_by_the_gap():
    setting = chain_step.experiment.setting("tiny")
    assert setting.lr * 4 / 11**2 == pytest.approx(setting.gap)
