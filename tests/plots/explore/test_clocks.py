"""Two clocks of a denoiser: strengths, quadrature and losses of the figure are the library's."""

import numpy as np
import pytest

from flbook.lectures.foundation_models.two_clocks import clocks


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.8, 0.96])
def test_its_strengths_and_clocks(tab, kept):
    call = """k => {
      const {strengths, rate, halfGap, learning} = flbookLive.clocks, {a, v2} = strengths(k);
      return [a, v2, rate(50, k), halfGap(k), learning(12)];
    }"""
    a, v2, _ = clocks.strengths(kept)
    expected = [a, v2, clocks.memory_rate(50, kept), clocks.half_gap(kept), clocks.learning_time(12)]
    np.testing.assert_allclose(tab.evaluate(call, kept), expected, rtol=1e-8)


@pytest.mark.parametrize("n, d, kept", [(40, 8, 0.8), (500, 16, 0.4)])
def test_its_losses(tab, n, d, kept):
    s = np.geomspace(1, 1e7, 30)
    call = "([s, n, d, k]) => { const c = flbookLive.clocks; return c.losses(s, n, d, k, c.marchenkoPastur(d / n)); }"
    found = tab.evaluate(call, [s.tolist(), n, d, kept])
    train, test = clocks.exact_losses(s, n, d, kept, *clocks.marchenko_pastur(d / n, 60))
    np.testing.assert_allclose(found["train"], train, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found["test"], test, rtol=0, atol=1e-8)


def test_it_opens_with_a_verdict(opened):
    tab = opened("clocks", n=64, d=8, kept=0.8)
    assert "In between there is time to stop" in tab.inner_text(".fll-say")
    tab.fill("[name=d]", "64")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('The clocks are too close')")
    assert tab.complaints == []
