"""Concept prompts at a tiny preset: exact where it is exact."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.in_context_learning import concept_prompts
from flbook.lectures.in_context_learning.concept_prompts import experiment

TINY = experiment.setting("tiny")


def test_decay_alone_moves_the_shared_part_without_noise():
    dataset = experiment.run(TINY).sel(noise=0.0)
    start = 0.3 * 3.0
    np.testing.assert_allclose(dataset.query_shared.sel(decay=0.0), start, rtol=1e-3)  # the head is not mirrored
    np.testing.assert_allclose(dataset.query_shared.sel(decay=0.01), start * 0.98**5, rtol=1e-3)


def test_a_race_and_its_closed_equations_start_together():
    race = concept_prompts.race(TINY, at=[0, 5])
    exact = concept_prompts.reduced(TINY, at=[0, 5])
    np.testing.assert_allclose(race.contrast.sel(step=0), exact.contrast.sel(step=0), rtol=1e-5)
    assert race.merged.dims == ("step", "decay", "seed", "row", "column")


def test_basins_of_the_identity_are_right_and_errors_exact():
    setting = replace(TINY, seed=(0, 1, 2), decay=(0.0,), m=32, steps=150, head=0.02)
    found = concept_prompts.basins(setting, (0.5,), lengths=(4, 1))
    assert float(found.wrong.max()) == float(found.predicted.max()) == float(found.error.max()) == 0
    turned = concept_prompts.basins(replace(setting, spread=1.0, seed=(0, 1, 2, 3), steps=400), (0.0,), lengths=(4, 1))
    wrong = turned.error.where(turned.wrong == 1)
    np.testing.assert_allclose(wrong.sel(n=1).dropna("concept", how="all").max(), 1)


def test_rivals_see_the_same_prompts_and_unknown_ones_are_refused():
    rivals = concept_prompts.rivals(replace(TINY, decay=(0.0,)))
    assert rivals.error.dims == ("noise", "model", "test", "seed") and bool((rivals.error <= 1).all())
    assert float(rivals.error.sel(noise=0.0, model="nearest word").max()) == 0
    with pytest.raises(ValueError, match="names must be among"):
        concept_prompts.rivals(TINY, names=("oracle",))


def test_the_stored_result_is_recomputed_where_rounding_does_not_steer_it():
    again = experiment.measure(experiment.setting("longer", noise=(0.05, 0.2), decay=(0.002,), seed=(3,)))
    stored = experiment.stored().sel(noise=[0.05, 0.2], decay=[0.002], seed=[3])
    for name in again:
        np.testing.assert_allclose(again[name], stored[name], rtol=1e-3, atol=2e-3, err_msg=name)
