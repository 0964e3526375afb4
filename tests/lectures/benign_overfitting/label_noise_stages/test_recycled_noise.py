"""Test noise that repeats training noise: by hand, its extremes, and its direct draws."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.lectures.benign_overfitting.label_noise_stages.recycled_noise import RecycledNoise


def test_preactivations_by_hand():
    on_xi, fresh = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[10.0, 0.0], [0.0, 10.0], [1.0, 1.0]])
    torch.testing.assert_close(RecycledNoise(2.0).preactivations(on_xi, fresh), 2 * on_xi)
    mixed = RecycledNoise(0.5, 0.1).preactivations(on_xi, fresh)
    assert mixed.shape == (6, 2), "every training patch beside every fresh one"
    torch.testing.assert_close(mixed[:3], torch.tensor([[1.5, 1.0], [0.5, 2.0], [0.6, 1.1]]))
    torch.testing.assert_close(mixed[4], torch.tensor([1.5, 3.0]))


def test_overlap_keeps_the_length():
    for cosine in (0.0, 0.3, 1.0):
        law = RecycledNoise.overlap(cosine)
        assert law.keep**2 + law.extra**2 == pytest.approx(1) and law.keep == cosine


def test_draws():
    sample = SignalNoise(n=5, d=4000, mu_norm=2.0).draw((0, 1))
    test = RecycledNoise().draw_test(sample, 400, seed=(0, 1))
    assert test.x.shape == (2, 400, 2, 4000)
    near = torch.cdist(test.xi, sample.xi)
    assert (near.amin(-1) < 1e-5).all(), "nothing but training noise"
    places = near.argmin(-1)
    assert all(len(set(row.tolist())) == 5 for row in places), "all of it"
    agree = (test.y * sample.y.gather(-1, places)).mean(-1)
    assert (agree.abs() < 0.2).all(), "labels do not depend on the patch"
    torch.testing.assert_close(test.x[..., 0, :], test.y[..., None] * sample.mu.expand(2, 400, -1))
    one = RecycledNoise.overlap(0.6).draw_test(SignalNoise(n=5, d=4000, mu_norm=2.0).draw(1), 50, seed=1)
    cosine = torch.einsum("pd,nd->pn", one.xi, sample.xi[1]).amax(-1) / 4000
    assert (cosine - 0.6).abs().max() < 0.1
    torch.testing.assert_close(one.xi.square().sum(-1) / 4000, torch.ones(50).double(), rtol=0, atol=0.15)


def test_no_cosine_is_above_one():
    with pytest.raises(ValueError, match=r"cosine must lie in \[0, 1\].*got 1.5"):
        RecycledNoise.overlap(1.5)
