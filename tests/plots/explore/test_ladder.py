"""Two features below attention: the loss, its gradient and the flow of the figure are the library's."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.attention_landscape import two_features

DOTS = [[0.5, 0.3], [-0.2, 0.6]]


@pytest.mark.parametrize("n", [3, 40, float("inf")])
def test_its_loss_and_flow_are_the_librarys(tab, n):
    call = "([dots, n]) => flbookLive.ladder.flow(flbookLive.ladder.features(dots), n || Infinity, 0.05, 200)"
    found = tab.evaluate(call, [DOTS, n if n < float("inf") else 0])
    H = two_features.features(torch.tensor(DOTS, dtype=torch.float64))
    losses, path = two_features.flow(H, n, steps=200)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(found["path"], path, rtol=1e-7, atol=1e-9)


def test_features_nearly_alike_separate(tab):
    call = "dots => flbookLive.ladder.flow(flbookLive.ladder.features(dots), Infinity, 0.05, 800).losses"
    losses = tab.evaluate(call, [[1, 0], [0.999, 0.02]])
    assert losses[0] > 0.15 and max(b - a for a, b in zip(losses, losses[1:], strict=False)) < 1e-6
    assert losses[-1] < 1e-4


def test_the_rungs_are_where_features_are_known_or_useless(tab):
    call = "dots => flbookLive.ladder.landscape(flbookLive.ladder.features(dots), Infinity)"
    for dots, rung in (([[1, 0], [0, 1]], 0), ([[1, 0], [0, 0]], 0.25), ([[0, 0], [0, 0]], 0.5)):
        found = tab.evaluate(call, dots)
        assert found["loss"] == pytest.approx(rung, abs=1e-9)
        np.testing.assert_allclose(found["gradient"], 0, atol=1e-9)


def test_a_short_prompt_holds_what_a_long_one_lets_go(opened):
    tab = opened("ladder", n=4096)
    said = "document.querySelector('.fll-say').textContent"
    assert "Both features are learned" in tab.evaluate(said)
    tab.evaluate("document.querySelector('[name=n]').value = 4")
    tab.evaluate("document.querySelector('.fll').dispatchEvent(new Event('input', {bubbles: true}))")
    tab.wait_for_function(f"{said}.includes('no way down of second order')")
    assert tab.complaints == []


def test_a_feature_follows_the_pointer(opened):
    tab = opened("ladder")
    box = tab.locator(".fll svg").first.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] * 92 / 190
    tab.mouse.move(*middle)
    tab.mouse.down()
    tab.mouse.move(middle[0], middle[1] - 0.8 * 76 / 190 * box["height"], steps=4)
    tab.mouse.up()
    assert float(tab.input_value("[name=r2]")) == pytest.approx(0.8, abs=0.03)
    assert float(tab.input_value("[name=a2]")) == pytest.approx(90, abs=3)
    tab.wait_for_function("document.querySelector('.fll-say').textContent.startsWith('The loss is 0.1')")
