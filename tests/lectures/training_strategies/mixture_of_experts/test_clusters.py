"""The clusters: what stands in the four patches, in which sizes, and which order."""

import pytest
import torch

from flbook.lectures.training_strategies.mixture_of_experts.clusters import ExpertClusters

DATA = ExpertClusters(n=20_000, d=10, sigma=0.0, gamma=(2.5, 3.0))


def test_every_sample_has_its_four_patches():
    sample = DATA.draw(0)
    total = sample.x.sum(-2) / DATA.size
    along_v, along_c = total @ DATA.signals.T, total @ DATA.centres.T
    own = along_v.gather(-1, sample.cluster[:, None])[:, 0] * sample.observed
    centre = along_c.gather(-1, sample.cluster[:, None])[:, 0]
    misleading = along_v.gather(-1, sample.other[:, None])[:, 0] * sample.sign
    for size, (low, high) in ((own, DATA.alpha), (centre, DATA.beta), (misleading, DATA.gamma)):
        assert low - 1e-9 <= size.min() and size.max() <= high + 1e-9
        assert size.mean() == pytest.approx((low + high) / 2, abs=0.02)
    assert (total.abs() > 0).sum(-1).eq(3).all() and (sample.cluster != sample.other).all()


def test_labels_signs_clusters_and_order_are_fair():
    sample = DATA.draw(1)
    y, eps = sample.observed, sample.sign
    assert max(abs(y.mean()), abs(eps.mean()), abs((y * eps).mean())) < 0.03
    pairs = torch.bincount(4 * sample.cluster + sample.other, minlength=16).reshape(4, 4) / DATA.n
    assert torch.allclose(pairs, (1 - torch.eye(4)) / 12, atol=0.01)
    empty = (sample.x == 0).all(-1).double().mean(0)  # sigma = 0: the place of the noise patch
    assert torch.allclose(empty, torch.full((4,), 0.25, dtype=empty.dtype), atol=0.015)


def test_an_ensemble_is_the_loop_and_fresh_samples_are_others():
    data = ExpertClusters(n=6, d=9)
    both = data.draw((3, 5))
    for k, seed in enumerate((3, 5)):
        for whole, one in zip(both, data.draw(seed), strict=True):
            assert torch.equal(whole[k], one)
    assert not torch.equal(data.draw_test(6, 3).x, data.draw(3).x)
    noise = ExpertClusters(n=4000, d=50, size=1.0).draw(0).x.sum(-2)[:, 8:]
    assert noise.square().sum(-1).mean() == pytest.approx(42 / 50, rel=0.02)


def test_bad_input():
    with pytest.raises(ValueError, match="^d must be at least 2 K = 12"):
        ExpertClusters(d=11, clusters=6)
    with pytest.raises(ValueError, match="^gamma must name the lower end first"):
        ExpertClusters(gamma=(3.0, 1.0))
    with pytest.raises(ValueError, match="^clusters "):
        ExpertClusters(clusters=1)
