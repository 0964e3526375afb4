"""Two-signal data: places and moments."""

import pytest
import torch

from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals

DATA = TwoSignals(n=6, d=400, snr=1.5, tokens=5)


def test_the_first_token_is_the_signal_of_the_class():
    sample = DATA.draw(0)
    plus, minus = sample.mu
    assert float(plus @ minus) == 0 and float(plus.norm()) == pytest.approx(1.5)
    for x, y in zip(sample.x, sample.y, strict=True):
        assert torch.equal(x[0], plus if y > 0 else minus)
    assert torch.equal(sample.x[:, 1:], sample.xi)


def test_noise_tokens_are_fresh_and_have_length_one():
    assert not torch.equal(DATA.draw_test(6, 4).xi, DATA.draw(4).xi)
    square = DATA.draw(tuple(range(10))).xi.square().sum(-1)
    assert abs(float(square.mean()) - 1) < 0.02
    assert abs(float(square.std()) - (2 / 400) ** 0.5) < 0.01
