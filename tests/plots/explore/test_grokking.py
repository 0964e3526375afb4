"""The machine in the browser: fit, gradients, root and rounds are the library's, from the same pairs."""

import numpy as np
import pytest
import torch

from flbook.lectures.representation.grokking.modular_table import ModularTable, inputs, targets
from flbook.lectures.representation.grokking.recursive_machine import (
    coefficients,
    gradient_product,
    one_round,
    profile,
    progress,
    recursion,
)

P = 7
SPLIT = ModularTable(P, 0.6).draw(0)


def test_one_round(tab):
    x, y = inputs(SPLIT.train, P), targets(SPLIT.train, P)
    metric = one_round(x, y, torch.eye(2 * P, dtype=torch.float64))[1]
    call = """([M, pairs, p]) => {
      const {coefficients, product, root} = flbookLive.grokking;
      const alpha = coefficients(M, pairs, p), G = product(M, alpha, pairs, p);
      return {alpha: [...alpha], G: [...G], next: [...root(G, 2 * p)]};
    }"""
    found = tab.evaluate(call, [metric.flatten().tolist(), SPLIT.train.tolist(), P])
    alpha = coefficients(x, y, metric)
    size = float(alpha.abs().max())
    np.testing.assert_allclose(np.reshape(found["alpha"], alpha.shape), alpha, rtol=0, atol=1e-8 * size)
    product = gradient_product(x, alpha, metric)
    np.testing.assert_allclose(np.reshape(found["G"], product.shape), product, rtol=0, atol=1e-8 * float(product.max()))
    np.testing.assert_allclose(np.reshape(found["next"], product.shape), one_round(x, y, metric)[1], rtol=0, atol=1e-6)


def test_its_rounds(tab):
    call = "([train, test, p]) => flbookLive.grokking.rounds(train, test, p, 3)"
    found = tab.evaluate(call, [SPLIT.train.tolist(), SPLIT.test.tolist(), P])
    for mine, theirs in zip(recursion(P, SPLIT, 3), found, strict=True):
        assert theirs["accuracy"] == pytest.approx(float(mine.accuracy))
        np.testing.assert_allclose(theirs["profile"], profile(mine.metric), rtol=0, atol=1e-6)
        assert theirs["R"] == pytest.approx(float(progress(mine.metric)), abs=1e-6)


@pytest.mark.parametrize("split", ["random", "equal", "uneven"])
def test_its_draws(tab, split):
    call = """split => { const {drawn, histogram} = flbookLive.grokking;
      const [train, test] = drawn(11, 0.55, split, flbookLive.random(0, "table"));
      return {train, test, N: histogram(train, 11)}; }"""
    found = tab.evaluate(call, split)
    assert sorted(map(tuple, found["train"] + found["test"])) == [(a, b) for a in range(11) for b in range(11)]
    counts = sorted(found["N"])
    assert sum(counts) == 66
    assert split == "random" or counts == {"equal": [6] * 11, "uneven": [2] * 5 + [6] + [10] * 5}[split]


def test_it_opens_with_a_verdict(opened):
    tab = opened("grokking", share=0.8, round=4)
    assert "In round 4" in tab.inner_text(".fll-say") and "passes one half in round" in tab.inner_text(".fll-say")
    tab.fill("[name=round]", "9")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('In round 9')")
    tab.fill("[name=share]", "0.4")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('does not reach')")
    assert tab.complaints == []
