"""Exponents that are turned: the training and the table of the figure are the library's."""

import numpy as np
import pytest
import torch

from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.training.parametrisation import MAXIMAL_UPDATE, NEURAL_TANGENT, STANDARD, Parametrisation


@pytest.mark.parametrize("which", [STANDARD, NEURAL_TANGENT, MAXIMAL_UPDATE,
                                   Parametrisation((0.0, -0.5, -0.25), (1.0, -2.0, -0.5))])  # fmt: skip
def test_its_exponents_are_those_of_the_table(tab, which):
    r1, r2, r3 = which.descent
    found = tab.evaluate("s => flbookLive.update.moved(s)", {"p": -which.size[2], "r1": r1, "r2": r2, "r3": r3})
    assert found == list(which.moved())


def test_its_networks_are_the_librarys(tab):
    call = """() => { const {x, y, nets} = flbookLive.update.draw(3), {U, W, V} = nets[0];
        const moved = flbookLive.update.train(nets[0], x, y, [0.3, 0.2, 0.1], 4);
        return {x, y, U: [...U], W: [...W], V: [...V], moved}; }"""
    found = tab.evaluate(call)
    x, y, U, W, V = (torch.tensor(found[name], dtype=torch.float64) for name in ("x", "y", "U", "W", "V"))
    n = len(V)
    rates = network.Weights(*(torch.tensor([lr], dtype=torch.float64) for lr in (0.3, 0.2, 0.1)))
    start = network.Weights(U.reshape(n, -1), W.reshape(n, n), V[None])
    moved = network.moved(start, x, y, rates, (1, 2, 3, 4))
    np.testing.assert_allclose(found["moved"], moved[:, 0], rtol=1e-8)


def test_it_says_the_regime(opened):
    tab = opened("update")
    said = "document.querySelector('.fll-say').textContent"
    assert tab.evaluate(said).startswith("Lazy")
    for name, word in (("maximal", "Every layer moves alike"), ("standard", "Unstable"), ("slow", "Lazy")):
        tab.select_option("[name=like]", name)
        tab.wait_for_function(f"word => {said}.startsWith(word)", arg=word)
    tab.fill("[name=r3]", "-2")
    tab.fill("[name=r2]", "-2")
    tab.wait_for_function(f"{said}.startsWith('Wide networks do not learn')")
    assert tab.input_value("[name=like]") == "own" and tab.complaints == []
