"""Digits beside noise: the data, and that both networks see what they say."""

import math

import pytest
import torch

from flbook.lectures.foundation_models.diffusion import digit_patches


def test_pictures_have_the_snr_and_overlapping_means():
    data = digit_patches.digit_patches(0.3, n=20)
    assert data.x.shape == (20, 2, 256) and len(data.x_test) == len(data.y_test) > 300
    assert data.means.norm(dim=1).mean().item() == pytest.approx(0.3 * math.sqrt(256))
    assert 0.7 < data.cosine < 0.8
    both = torch.cat([data.x[:, 0], data.x_test[:, 0]]), torch.cat([data.y, data.y_test])
    torch.testing.assert_close(both[0][both[1] > 0].mean(0), data.means[0])
    assert data.x[:, 1].std().item() == pytest.approx(1.0, rel=0.05)


def test_the_denoiser_sees_more_of_stronger_pictures_and_the_classifier_its_winner():
    ratios, accuracies = [], []
    for snr in (0.1, 1.0):
        data = digit_patches.digit_patches(snr, n=10)
        s, q = digit_patches.denoised(data, m=5, steps=400)
        on_mean, on_noise, right = digit_patches.classified(data, m=5, steps=150)
        ratios.append((s / q, on_mean / on_noise))
        accuracies.append(right)
    (low, little), (high, much) = ratios
    assert 0.2 < low < high < 8 and much / little > 3 * high / low
    assert accuracies[0] < 0.75 < 0.9 < accuracies[1]


def test_refusals():
    with pytest.raises(ValueError, match="^snr must be a number above 0"):
        digit_patches.digit_patches(0.0)
    with pytest.raises(ValueError, match="^n must lie between 2 and"):
        digit_patches.digit_patches(0.1, n=900)
