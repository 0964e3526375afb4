"""Contexts with a parent: the figure's slopes are the library's, from the same contexts, and its draws their laws."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts, stationary, transitions
from flbook.lectures.in_context_learning.induction.parent_gradient import gradient, largest

T = 12


def test_its_slopes(tab):
    drawn = CausalContexts(tokens=4, length=T).draw(60, 0)
    call = """contexts => {
      const {add, found, byLag} = flbookLive.parent, g = new Float64Array(144);
      for (const one of contexts) add(g, one, 1 / contexts.length);
      return {g: [...g], found: found(g), lags: [0, 1, 5].map(lag => byLag(g, lag))};
    }"""
    parts = zip(drawn.tokens.tolist(), drawn.query.tolist(), drawn.next.tolist(), strict=True)
    found = tab.evaluate(call, [dict(zip(("tokens", "query", "next"), part, strict=True)) for part in parts])
    g = gradient(drawn)
    np.testing.assert_allclose(np.reshape(found["g"], (T, T)), g.tril(), atol=1e-12)
    assert found["found"] == largest(g)[1:].tolist()
    assert found["lags"] == pytest.approx([float(g.diagonal(-lag).mean()) for lag in (0, 1, 5)])


def test_its_laws(tab):
    call = """() => {
      const {transitions, stationary} = flbookLive.parent, stream = flbookLive.random(0, "contexts");
      const pi = transitions(4, 0.3, stream);
      return {pi, mu: stationary(pi)};
    }"""
    found = tab.evaluate(call)
    pi = torch.tensor(found["pi"], dtype=torch.float64)
    np.testing.assert_allclose(pi.sum(-1), 1, rtol=1e-12)
    assert (pi.diagonal() >= 0.3).all()
    np.testing.assert_allclose(found["mu"], stationary(pi), rtol=1e-9)


def test_its_tokens_follow_the_rows(tab):
    call = """() => {
      const {transitions, context} = flbookLive.parent, stream = flbookLive.random(1, "contexts");
      let same = 0, all = 0, next = 0;
      for (let k = 0; k < 3000; k++) {
        const {tokens, query, next: y} = context(transitions(3, 0.5, stream), stream);
        for (let i = 1; i < tokens.length; i++) { same += tokens[i] === tokens[i - 1]; all++; }
        next += y === query;
      }
      return [same / all, next / 3000];
    }"""
    free = transitions((20_000,), 3, 1.0, 0.0, 0)
    again = float((stationary(free) * free.diagonal(dim1=-2, dim2=-1)).sum(-1).mean())  # frequent tokens repeat more
    assert tab.evaluate(call) == pytest.approx([0.5 + again / 2, 2 / 3], abs=0.03)


def test_it_opens_with_a_verdict(opened):
    tab = opened("parent", S=3, N=3000, rho=0)
    assert "On average the parent leads." in tab.inner_text(".fll-say")
    tab.fill("[name=rho]", "0.4")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('looks at itself')")
    assert tab.complaints == []
