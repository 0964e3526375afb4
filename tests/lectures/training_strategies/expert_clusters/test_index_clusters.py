"""The data of the two clusters: moments, and the exact points of their law."""

import pytest
import torch

from flbook import hermite
from flbook.lectures.training_strategies.expert_clusters.index_clusters import (
    CENTRE,
    FIRST,
    SECOND,
    SHARED,
    IndexClusters,
)

DATA = IndexClusters(d=6, rho=1.5, local=0.7)


def test_moments_of_a_draw():
    sample = DATA.draw(40_000, seed=0)
    assert sample.cluster.mean().abs() < 0.02
    centred = sample.x[:, CENTRE] - 1.5 * sample.cluster
    assert centred.mean().abs() < 0.02 and centred.var() == pytest.approx(1, abs=0.03)
    covariance = sample.x.T @ sample.x / 40_000
    expected = torch.eye(6, dtype=torch.float64)
    expected[0, 0] += 1.5**2
    torch.testing.assert_close(covariance, expected, rtol=0, atol=0.06)


def test_a_label_is_its_parts_and_noise_comes_on_top():
    sample, loud = DATA.draw(50, seed=(0, 1)), IndexClusters(6, 1.5, 0.7, noise=0.3).draw(50, seed=(0, 1))
    place = torch.where(sample.cluster > 0, FIRST, SECOND)
    own = hermite.polynomial(3, sample.x.gather(-1, place[..., None]).squeeze(-1))
    shared = sample.cluster * hermite.polynomial(3, sample.x[..., SHARED])
    torch.testing.assert_close(sample.y, 0.7 * own + shared)
    assert 0.1 < (loud.y - sample.y).std() / 0.3 < 1.5 and torch.equal(loud.x, sample.x)


def test_an_ensemble_is_the_loop_over_seeds():
    both = DATA.draw(5, seed=(3, 4))
    for k, seed in enumerate((3, 4)):
        for one, many in zip(DATA.draw(5, seed=seed), both, strict=True):
            torch.testing.assert_close(one, many[k], rtol=0, atol=0)


def test_exact_points_have_the_exact_moments():
    sample, weight = DATA.exactly(6)
    assert weight.sum().item() == pytest.approx(1)
    assert (weight * sample.y).sum().abs() < 1e-12
    assert (weight * sample.y**2).sum().item() == pytest.approx(1 + 0.7**2)
    assert (weight * sample.x[:, CENTRE] ** 2).sum().item() == pytest.approx(1 + 1.5**2)
    degree_four = sample.x[:, CENTRE] * hermite.polynomial(3, sample.x[:, SHARED])
    assert (weight * sample.shared * degree_four).sum().item() == pytest.approx(1.5)
