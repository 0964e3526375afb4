"""One step on facts: decomposition, step, recall and theory of the figure are the library's, from the same numbers."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.spectral_steps import response, step
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient, stored

FACTS = Facts(count=70, d=9, power=1.6)


@pytest.fixture(scope="module")
def drawn():
    inputs, outputs = FACTS.draw(0)
    return inputs, outputs, torch.linalg.svd(first_gradient(inputs, outputs, FACTS.frequencies))


@pytest.mark.parametrize("steps, rule", [(5, "spectral, 5 steps"), (10, "spectral, 10 steps"), (12, "spectral")])
def test_its_step_and_what_it_stores(tab, drawn, steps, rule):
    inputs, outputs, parts = drawn
    call = """([e, u, p, d, steps]) => {
      const {gradient, decompose, made, memory, recall} = flbookLive.spectral;
      const parts = decompose(gradient(e, u, p, d), d);
      const W = memory(parts, made(parts.s, steps), d);
      return {s: parts.s, W: [...W], ...recall(W, e, u, p.length, d)};
    }"""
    flat = [part.flatten().tolist() for part in (inputs, outputs, FACTS.frequencies)]
    found = tab.evaluate(call, [*flat, 9, steps])
    w = step(rule, *parts)
    np.testing.assert_allclose(found["s"], parts.S, rtol=1e-8)
    np.testing.assert_allclose(np.reshape(found["W"], (9, 9)), w, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found["own"], ((inputs @ w.mT) * outputs).sum(-1), rtol=0, atol=1e-7)
    assert found["stored"] == stored(w, inputs, outputs, 70).tolist()


def test_its_theory(tab):
    p = FACTS.frequencies.tolist()
    found = tab.evaluate("([p, d]) => flbookLive.spectral.response(p, d, p)", [p, 9])
    np.testing.assert_allclose(found, response.response(np.array(p), 9), rtol=1e-8)
    np.testing.assert_allclose(tab.evaluate("n => flbookLive.spectral.frequencies(n, 1.6)", 70), p, rtol=1e-12)


def test_its_draws_are_unit_vectors(tab):
    found = tab.evaluate("() => [...flbookLive.spectral.sphere(5, 7, flbookLive.random(0, 'facts'))]")
    np.testing.assert_allclose(np.linalg.norm(np.reshape(found, (5, 7)), axis=1), 1, rtol=1e-12)


def test_it_opens_with_a_verdict(opened):
    tab = opened("spectral", alpha=2.0, d=48, steps=5)
    assert "So few steps leave rare facts too quiet" in tab.inner_text(".fll-say")
    tab.fill("[name=steps]", "12")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('All singular values')")
    tab.fill("[name=alpha]", "1.2")
    tab.fill("[name=steps]", "9")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('These steps are enough')")
    assert tab.complaints == []
