"""Two noisy clusters: moments against formulas, exact flips."""

import math

import pytest
import torch

from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture


def test_a_sample_is_signal_plus_noise_across_it():
    data = Mixture(n=30, d=50, gamma=0.3, flip_prob=0.2)
    sample = data.draw((0, 1))
    assert sample.x.shape == (2, 30, 50) and sample.x.dtype == torch.float64
    torch.testing.assert_close(sample.x, sample.y[..., None] * sample.mu + sample.xi)
    assert sample.mu @ sample.mu == pytest.approx(0.3) and (sample.xi @ sample.mu == 0).all()
    assert ((sample.y != sample.observed).sum(-1) == 6).all()


def test_moments():
    data = Mixture(n=400, d=20, gamma=0.25)
    x = data.draw(tuple(range(20))).xi.flatten(0, 1)[:, 1:]
    assert x.var().item() == pytest.approx(0.75 / 20, rel=4 * math.sqrt(2 / x.numel()))
    assert abs(x.mean().item()) < 4 * math.sqrt(0.75 / 20 / x.numel())
    square = data.draw(0).x.square().sum(-1).mean().item()
    assert square == pytest.approx(0.25 + 0.75 * 19 / 20, rel=0.05), "samples have length about 1"


def test_tests_are_fresh():
    data = Mixture(n=8, d=12)
    fresh = data.draw_test(2000, 3)
    assert not torch.isclose(fresh.xi[:8, 1:], data.draw(3).xi[:, 1:]).any()
    assert abs((fresh.y != fresh.observed).double().mean().item() - 0.1) < 4 * math.sqrt(0.09 / 2000)
