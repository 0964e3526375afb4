"""The single-index data model: what it draws and its even test points."""

import pytest
import torch

from flbook.data import SingleIndex


def test_a_sample_looks_in_one_direction():
    data = SingleIndex(n=5, d=3, noise=0.0)
    sample = data.draw(0)
    assert sample.x.shape == (5, 3) and sample.x.dtype == torch.float64
    torch.testing.assert_close(sample.index, sample.x @ data.direction)
    torch.testing.assert_close(sample.y, torch.tanh(sample.index))
    noisy = SingleIndex(n=5, d=3, noise=0.5).draw(0)
    assert torch.equal(noisy.x, sample.x) and torch.equal(noisy.target, sample.target)
    assert not torch.isclose(noisy.y, sample.y).any()


def test_roles_are_independent():
    data = SingleIndex(n=4, d=3)
    assert not torch.isclose(data.draw(0).x, data.draw(0, "fresh").x).any()


def test_moments():
    sample = SingleIndex(n=20000, d=2, noise=0.3).draw(0)
    torch.testing.assert_close(sample.x.T @ sample.x / 20000, torch.eye(2).double(), atol=0.03, rtol=0)
    assert (sample.y - sample.target).std().item() == pytest.approx(0.3, rel=0.02)


def test_test_points_fill_the_index_evenly():
    test = SingleIndex(n=1, d=2).draw_test(1000, (0, 1))
    share = torch.special.ndtr(test.index)
    assert ((share * 1000).long() == torch.arange(1000)).all(), "one point in each interval of equal probability"
    assert torch.equal(test.y, test.target)
    assert test.index.square().mean(-1).tolist() == pytest.approx([1, 1], abs=0.01)
    assert test.x[..., 1].square().mean().item() == pytest.approx(1, abs=0.1)
