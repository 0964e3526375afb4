"""Prompts on a hidden basis at a tiny preset, against closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.in_context_learning.nonparametric_rates import hidden_basis

PROMPTS = hidden_basis.experiment.setting("tiny")


def test_a_context_does_not_see_the_grid_around_it():
    both = hidden_basis.run(replace(PROMPTS, predictor=("pretrained attention",)))
    one = hidden_basis.run(replace(PROMPTS, predictor=("pretrained attention",), n=(20,), T=(4,), seed=(1,)))
    assert one.risk.item() == pytest.approx(both.risk.sel(n=20, T=4, seed=1).item(), rel=1e-6)


def test_prompts_on_a_hidden_basis():
    dataset = hidden_basis.run(PROMPTS)
    assert dict(dataset.risk.sizes) == {"predictor": 6, "n": 2, "T": 2, "seed": 2}
    assert (dataset.known < dataset.expected).all()
    both = ("attention on the basis", "attention on the dictionary")
    many = hidden_basis.run(replace(PROMPTS, predictor=both, n=(20,), T=(4,), batch=600, seed=(0, 1, 2, 3)))
    np.testing.assert_allclose(many.risk.mean("seed").squeeze(), [many.known[0], many.expected[0]], rtol=0.12)
