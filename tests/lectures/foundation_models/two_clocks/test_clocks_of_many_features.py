"""The closed form of infinitely many features: strengths, limits, quadrature, and the d problems against the whole."""

import numpy as np
import pytest
import torch

from flbook.lectures.foundation_models import two_clocks
from flbook.lectures.foundation_models.two_clocks import clocks


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_strengths_are_moments_of_tanh(kept):
    z = torch.randn(2, 10**6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one, other = torch.tanh(z[0]), torch.tanh(kept * z[0] + (1 - kept**2) ** 0.5 * z[1])
    a, v2, r2 = clocks.strengths(kept)
    assert a == pytest.approx(float((z[0] * one).mean()), rel=0.004)
    assert a**2 * kept + v2 == pytest.approx(float((one * other).mean()), rel=0.01)
    assert a**2 + v2 + r2 == pytest.approx(float(one.square().mean()), rel=0.004)


def test_a_share_out_of_range_is_refused():
    for kept in (0, 1.0, -2):
        with pytest.raises(ValueError, match="between 0 and 1"):
            clocks.strengths(kept)
    with pytest.raises(ValueError, match="some directions have no sample"):
        clocks.marchenko_pastur(1.5)


def test_the_quadrature_has_the_moments_of_the_law():
    x, w = clocks.marchenko_pastur(0.3)
    assert w.sum() == pytest.approx(1) and w @ x == pytest.approx(1) and w @ x**2 == pytest.approx(1.3)


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.9])
def test_the_gap_is_half_of_its_end_at_the_half_gap(kept):
    s = np.array([clocks.half_gap(kept) / clocks.memory_rate(10**6, kept), 1e14])
    train, test = clocks.two_clocks(s, 10**6, 8, kept)
    gap = test - train
    assert gap[0] == pytest.approx(gap[1] / 2) and gap[1] == pytest.approx(kept / (1 - kept))


def test_the_pairs_tend_to_the_two_clocks_and_to_the_end():
    s = np.geomspace(1, 1e12, 80)
    exact, limit = (np.array(rule) for rule in (clocks.exact_losses(s, 10**7, 8, 0.7, np.array([1.0])),
                                                clocks.two_clocks(s, 10**7, 8, 0.7)))  # fmt: skip
    np.testing.assert_allclose(exact, limit, rtol=0, atol=1e-4)
    train, test = clocks.exact_losses(np.array([1e12]), 40, 8, 0.7, np.array([0.2, 0.8, 3.0]))
    assert train == pytest.approx(0, abs=1e-9) and test == pytest.approx(0.7 / 0.3)


def test_the_pairs_are_the_whole_problem_of_many_features():
    x, s = two_clocks.samples(30, 5, (0,)), two_clocks.times(1e7, each=5)
    flow = two_clocks.equivalent(x, 10**12, 0.8, (0,))
    shares = torch.linalg.svdvals(x[0]).square() / 30
    for whole, pairs in zip(flow.losses(s), clocks.exact_losses(s.numpy(), 30, 5, 0.8, shares.numpy()), strict=True):
        np.testing.assert_allclose(whole[0], pairs, rtol=0, atol=2e-4)
