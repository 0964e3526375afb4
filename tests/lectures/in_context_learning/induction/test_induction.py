"""The first gradient finds the parents, pooled counts do not."""

import pytest

from flbook.lectures.in_context_learning import induction


def test_the_gradient_finds_parents_and_pooled_counts_do_not():
    setting = induction.experiment.setting(graph=("tree",), tokens=(3,), contexts=(1000,), seed=(0, 1, 2))
    found = induction.run(setting).right.mean("seed").squeeze(drop=True)
    assert float(found.sel({"method": "soft"})) > 0.95 and float(found.sel({"method": "sampled"})) > 0.85
    assert float(found.sel({"method": "pooled"})) < 0.3


def test_short_contexts_are_refused():
    with pytest.raises(ValueError, match="length must be at least 3"):
        induction.experiment.setting(length=2)
