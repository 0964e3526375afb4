"""The XOR data model: moments and its symmetry."""

import math

import pytest
import torch

from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise, unit_signals


def test_by_hand():
    data = XorSignalNoise(n=8, d=5, mu_norm=2.0, angle=60.0, flip_prob=0.25)
    sample = data.draw(0)
    u, v = data.signals
    torch.testing.assert_close(unit_signals(90.0) @ unit_signals(90.0).T, torch.eye(2).double())
    assert u.norm() == pytest.approx(2) and v.norm() == pytest.approx(2)
    assert u @ v == pytest.approx(4 * math.cos(math.pi / 3))
    assert sample.cluster.tolist() == [0, 1, 2, 3] * 2
    torch.testing.assert_close(sample.x[:4, 0], torch.stack([u, v, -u, -v]))
    assert sample.y.tolist() == [1, -1, 1, -1] * 2 and int((sample.y != sample.observed).sum()) == 2
    torch.testing.assert_close(sample.x[:, 1], sample.xi)
    assert (sample.xi @ u).abs().max() == 0 and (sample.xi @ v).abs().max() == 0


def test_moments():
    data = XorSignalNoise(n=400, d=50, mu_norm=3.0, sigma_xi=2.0, flip_prob=0.1)
    sample = data.draw((0, 1))
    assert sample.xi[..., 2:].std() == pytest.approx(2, rel=0.03) and abs(sample.xi.mean()) < 0.05
    assert ((sample.y != sample.observed).sum(-1) == 40).all()
    wrong = sample.y != sample.observed
    assert all(int((wrong[0] & (sample.cluster[0] == k)).sum()) == 10 for k in range(4))
    test = data.draw_test(4000, seed=(0, 1))
    assert test.x.shape == (2, 4000, 2, 50)
    shares = torch.stack([(test.cluster == k).double().mean(-1) for k in range(4)])
    assert (shares - 0.25).abs().max() < 0.03
    assert ((test.y != test.observed).double().mean(-1) - 0.1).abs().max() < 0.03
    signal = torch.cat([data.signals, -data.signals])[test.cluster]
    torch.testing.assert_close(test.x[..., 0, :], signal)


def test_opposite_clusters_share_a_label_so_nothing_linear_is_left():
    sample = XorSignalNoise(n=40, d=20, flip_prob=0.0).draw(0)
    torch.testing.assert_close(sample.y @ sample.x[:, 0], torch.zeros(20).double())
