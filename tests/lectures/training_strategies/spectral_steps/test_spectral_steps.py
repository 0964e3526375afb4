"""One step on facts: what a step stores by brute force, and what each rule makes of the singular values."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import spectral_steps
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient
from flbook.training.orthogonalised import newton_schulz, polar_factor


def test_the_steps_are_those_of_whole_matrices():
    facts = Facts(60, 8, 1.5)
    g = first_gradient(*facts.draw(0), facts.frequencies)
    whole = {"gradient": g, "sign": g.sign(), "spectral": polar_factor(g),
             "spectral, 5 steps": newton_schulz(g, 5), "spectral, 10 steps": newton_schulz(g, 10)}
    assert whole.keys() == set(spectral_steps.RULES)
    for rule, expected in whole.items():
        torch.testing.assert_close(spectral_steps.step(rule, *torch.linalg.svd(g)), expected, rtol=0, atol=1e-9)


def test_an_orthogonalised_step_stores_more_and_ranks_beyond_the_reach_are_not_counted():
    setting = spectral_steps.experiment.setting("tiny")
    found = spectral_steps.run(setting).stored.mean("seed").isel(alpha=0)
    assert (found.sel(rule="spectral") > 1.5 * found.sel(rule="gradient")).all()
    few = spectral_steps.run(spectral_steps.experiment.setting("tiny", reach=0.05)).stored
    assert few.max() <= setting.count(1.5, 24) * 0.05 / 4 + 1


def test_by_rank_counts_what_the_run_counts():
    setting = spectral_steps.experiment.setting("tiny", d=(16,), reach=4.0)
    ranked, run = spectral_steps.by_rank(setting), spectral_steps.run(setting)
    expected = run.stored.squeeze(["alpha", "d"]).transpose("rule", "seed")
    np.testing.assert_array_equal(ranked.stored.sum("rank"), expected)
    np.testing.assert_allclose(ranked.noise.sel(rule="spectral"), 0.25, rtol=1e-9)  # the same from every output


def test_a_crowd_too_small_is_refused():
    with pytest.raises(ValueError, match="crowd"):
        spectral_steps.experiment.setting(crowd=1.0)
