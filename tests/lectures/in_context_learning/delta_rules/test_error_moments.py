"""Exact risks: against closed forms of other files, against draws, and the best gate."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import delta_rules
from flbook.lectures.in_context_learning.delta_rules import error_moments as theory
from flbook.lectures.in_context_learning.delta_rules.update_rules import RULES, UpdateRules
from flbook.lectures.in_context_learning.shared import forgetting
from flbook.lectures.in_context_learning.shared.attention_risk import descent_risk, second_moments
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts


def test_the_moments_are_those_of_mean_squares_and_of_averages():
    step = theory.step_moments(5, 0.1)
    assert theory.risk(5, 30, step, True, noise=0.7) == pytest.approx(float(forgetting.lms_risk(5, 30, 0.7, 0.1)))
    risk, step, keep = theory.least(4, 30, False, noise=0.7)
    assert (risk, keep) == (pytest.approx(float(forgetting.mamba_risk(np.ones(4), 30, 0.7, 1.0))), 1.0)
    assert step == pytest.approx(theory.best_label_step(4, 30, noise=0.7), rel=1e-3)
    one = theory.least(4, 60, False, gated=True, memory=0.95, noise=0.5)
    assert one[0] == pytest.approx(forgetting.drifting_risk(4, 60, one[2], 0.95, 0.5), rel=1e-6)


@pytest.mark.parametrize("rule", ["attention", "gated_attention", "delta", "normalised", "gated_delta"])
def test_draws_have_these_risks(rule):
    switches, step, keep = RULES[rule], 0.08, 0.9 if RULES[rule].gated else 1.0
    drawn = DriftingPrompts(n=6, d=3, memory=0.95, noise=0.5).draw(100_000, (0,))
    theta = torch.tensor([[[np.log(step), np.log(1 / 0.9 - 1), 0.0]]])
    found = float(delta_rules.risk(UpdateRules([rule]).memory(theta, drawn.context), drawn.task))
    moments = theory.step_moments(3, step, switches.implicit)
    assert found == pytest.approx(theory.risk(3, 6, moments, switches.residual, keep, 0.95, 0.5), rel=0.02)


def test_the_implicit_step_tends_to_a_projection():
    endless = theory.step_moments(4, 1e9, implicit=True)
    np.testing.assert_allclose(endless, (1 / 4, 1 / 4, 1 / 8), rtol=1e-6)
    assert theory.risk(4, 10, endless, True) == pytest.approx(4 * 0.75**10, rel=1e-6)
    small = theory.step_moments(4, 1e-6, implicit=True)
    np.testing.assert_allclose(small, theory.step_moments(4, 1e-6), rtol=1e-4)


def test_chunks_and_depth_begin_with_linear_attention():
    one = float(forgetting.attention_risk(np.ones(4), 24))
    assert float(forgetting.chunk_risk(4, 24, 24)) == pytest.approx(one)
    assert float(forgetting.chunk_risk(4, 24, 1)) == pytest.approx(float(forgetting.lms_risk(4, 24)))
    assert (np.diff(forgetting.chunk_risk(4, 24, np.array([1, 2, 3, 4, 6, 8, 12, 24]))) > 0).all()
    assert theory.deep_risk(1, 24, 4) == pytest.approx(one, rel=0.01)
    drawn = second_moments(24, np.eye(4), 20000)
    assert theory.deep_risk(3, 24, 4) == pytest.approx(descent_risk(3, drawn, np.eye(4)), rel=1e-6)


def test_the_best_gate_is_the_memory_of_the_task():
    for memory in (0.9, 0.97):
        for implicit in (False, True):
            found = theory.least(4, 200, True, True, implicit, memory, 0.5)
            assert found[2] == pytest.approx(memory, abs=1e-4)
        assert theory.least(4, 200, True, True, False, memory, 0.5)[0] == pytest.approx(
            theory.best_steps(4, 200, memory, 0.5)[-1], rel=1e-6)
        assert theory.least(4, 200, False, True, False, memory, 0.5)[2] < memory - 0.03
