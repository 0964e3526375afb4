"""The gradient of a node: that of the library, from the same tokens; chains by its own stream are products."""

import numpy as np

from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree, first_gradient


def test_its_gradient(tab):
    tokens = ParityTree(d=9, k=4).draw(40, seed=0).tokens.double()
    g = first_gradient(tokens, 9)
    for m in range(3):
        call = "([x, m]) => [...flbookLive.chain.gradient(Int8Array.from(x), 12, 40, m)]"
        found = tab.evaluate(call, [tokens.flatten().int().tolist(), 9 + m])
        np.testing.assert_allclose(found, g[m, : 9 + m], rtol=0, atol=1e-10)


def test_its_chains_are_products_and_wrong_as_often_as_asked(tab):
    parents = tab.evaluate("() => flbookLive.chain.tree([4, 1, 0, 7, 2, 3, 6, 5], 9)")
    assert parents == [[4, 1], [0, 7], [2, 3], [6, 5], [9, 10], [11, 12], [13, 14]]
    call = "([p, q]) => [...flbookLive.chain.chains(9, p, 4000, q, flbookLive.random(0, 'chains'))]"
    clean, noisy = (np.reshape(tab.evaluate(call, [parents, q]), (4000, 16)) for q in (0, 0.1))
    for m, (a, b) in enumerate(parents, 9):
        np.testing.assert_array_equal(clean[:, m], clean[:, a] * clean[:, b])
        product = noisy[:, a] * noisy[:, b] if m < 13 else None
        if product is not None:
            assert abs((noisy[:, m] != product).mean() - 0.1) < 0.02


def test_it_opens_with_a_verdict(opened):
    tab = opened("chain", n=32.0, d=64, flip=0, node="last")
    assert "looks at the wrong places" in tab.inner_text(".fll-say")
    tab.fill("[name=n]", "3.9")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('one step finds them')")
    assert tab.complaints == []
