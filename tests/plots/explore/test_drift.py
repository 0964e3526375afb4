"""A task that drifts: the risks and the memories of the figure are the library's."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.delta_rules import error_moments as theory
from flbook.lectures.in_context_learning.delta_rules.kalman_filter import KalmanFilter
from flbook.lectures.in_context_learning.delta_rules.update_rules import UpdateRules
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.shapes import Context

SETTING = dict(d=3, step=0.12, keep=0.93, memory=0.96, noise=0.7)


@pytest.mark.parametrize("residual", [True, False])
def test_its_risks_are_exact(tab, residual):
    found = tab.evaluate("([n, r, s]) => flbookLive.drift.risks(n, r, s)", [40, residual, SETTING])
    moments = theory.step_moments(3, 0.12)
    expected = [theory.risk(3, n, moments, residual, 0.93, 0.96, 0.7) for n in range(41)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_its_step_for_labels_is_the_best(tab):
    found = tab.evaluate("([n, s]) => flbookLive.drift.bestStep(n, s)", [40, SETTING])
    assert found == pytest.approx(theory.best_label_step(3, 40, 0.93, 0.96, 0.7), rel=1e-8)


def test_its_memories_and_its_filter(tab):
    drawn = DriftingPrompts(n=9, d=3, memory=0.96, noise=0.7).draw(1, (0,))
    x, y = (part[0, 0].tolist() for part in drawn.context)
    scalars = torch.tensor([[[np.log(0.12), np.log(1 / 0.93 - 1), 0.0]]], dtype=torch.float64)
    rules = UpdateRules(["gated_attention"])
    for residual in (False, True):
        rules.residual = torch.tensor([[[[residual]]]])
        found = tab.evaluate("([x, y, r, s]) => flbookLive.drift.remember(x, y, r, s)", [x, y, residual, SETTING])
        np.testing.assert_allclose(found[-1], rules.memory(scalars, drawn.context)[0, 0, 0], rtol=1e-8)
    found = tab.evaluate("([x, y, s]) => flbookLive.drift.kalman(x, y, s)", [x, y, SETTING])
    steps = list(KalmanFilter(0.96, 0.7).steps(Context(*(part[0, 0] for part in drawn.context))))
    np.testing.assert_allclose(found["path"], torch.stack([mean for mean, _ in steps]), rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(found["trace"], [float(spread.trace()) for _, spread in steps], rtol=1e-8)


def test_its_filter_follows_better_than_any_memory(tab):
    call = "s => [flbookLive.drift.filterRisk(40, s)[40], flbookLive.drift.risks(40, true, s)[40]]"
    filtered, delta = tab.evaluate(call, SETTING)
    assert 0.5 * delta < filtered < delta


def test_it_opens_with_a_verdict(opened):
    tab = opened("drift", noise=0.0, drift=0.0, forget=0.0)
    assert "Writing residuals pays" in tab.inner_text(".fll-say")
    tab.fill("[name=noise]", "2")
    tab.fill("[name=step]", "0.3")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('the labels win')")
    assert tab.complaints == []
