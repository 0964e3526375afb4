"""Beside the edge of stability: the steps of the figure are gradient descent's on two layers, its end the library's."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.saddles_and_edge import unbalanced_pair as pair


@pytest.mark.parametrize("c, height", [(0.3, 0.1), (0.8, 0.3)])
def test_its_steps_are_those_of_two_layers(tab, c, height):
    training = pair.start(torch.tensor([c], dtype=torch.float64), height, (0,), 5)
    h, residual = (part[:, 0, 0].numpy() for part in pair.trace(training, 100))
    call = "([c, h, z]) => flbookLive.edge.train(c, h, z, 0, 100)"
    found = tab.evaluate(call, [c, height, float(residual[0])])
    np.testing.assert_allclose(found["h"], h, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["zeta"], residual, rtol=0, atol=1e-6)
    assert tab.evaluate("([h, c]) => flbookLive.edge.end(h, c)", [height, c]) == pytest.approx(pair.end(height, c))


def test_a_drift_lifts_the_sharpness_and_leaves_the_output(tab):
    found = tab.evaluate("() => flbookLive.edge.train(0.4, -0.5, 0, 0.01, 10)")
    np.testing.assert_allclose(found["h"], -0.5 + 0.01 * np.arange(11), atol=1e-12)
    np.testing.assert_allclose(found["zeta"], 0, atol=1e-12)


def test_it_opens_with_a_verdict(opened):
    tab = opened("edge", c=0.3, height=0.1)
    assert "starts 0.1 above the edge and ends 0.105 below" in tab.inner_text(".fll-say")
    tab.fill("[name=drift]", "0.002")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('The drift lifts')")
    assert tab.complaints == []
