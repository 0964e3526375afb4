"""The data model: two orthogonal signals, noise orthogonal to both, and everything else that of SignalNoise."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.lectures.foundation_models.diffusion.class_signals import ClassSignals

DATA = ClassSignals(n=6, d=300, mu_norm=3.0, sigma_xi=2.0, flip_prob=0.34)


def test_patches_are_the_class_signal_and_orthogonal_noise():
    sample = DATA.draw(seed=(0, 1))
    torch.testing.assert_close(sample.mu @ sample.mu.T, 9 * torch.eye(2).double())
    for y, signal in zip(sample.y[0], sample.x[0, :, 0], strict=True):
        assert torch.equal(signal, sample.mu[0 if y > 0 else 1])
    assert torch.equal(sample.x[..., 1, :], sample.xi) and (sample.xi @ sample.mu.T == 0).all()
    assert sample.xi[..., 2:].std().item() == pytest.approx(2.0, rel=0.05)


def test_labels_and_noise_are_those_of_the_model_with_one_signal():
    ours, theirs = DATA.draw(3), SignalNoise(n=6, d=300, mu_norm=3.0, sigma_xi=2.0, flip_prob=0.34).draw(3)
    assert torch.equal(ours.y, theirs.y) and torch.equal(ours.observed, theirs.observed)
    assert torch.equal(ours.xi[:, 2:], theirs.xi[:, 2:])


def test_fresh_samples_have_the_same_law():
    test = DATA.draw_test(500)
    assert 0.4 < (test.y > 0).double().mean() < 0.6 and (test.xi @ test.mu.T == 0).all()
    assert torch.equal(test.x[:, 0], test.mu[(test.y < 0).long()])


def test_refusals():
    with pytest.raises(ValueError, match="^orthogonal must be True"):
        ClassSignals(orthogonal=False)
    with pytest.raises(ValueError, match="^d must be a whole number of at least 3; got 2"):
        ClassSignals(d=2)
    with pytest.raises(ValueError, match="^ClassSignals has no test law"):
        _ = DATA.test_law
