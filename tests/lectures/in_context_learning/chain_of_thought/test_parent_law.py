"""The law of samples: moments against samples, limits, and the chance of one node by simulation."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.chain_of_thought import parent_law


def test_the_exact_moments_are_those_of_random_signs():
    x = torch.randint(2, (400_000, 12), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    z = x.mean(1)
    pulled = (1 + x[:, 0] * x[:, 1] - 2 * z**2) * z
    g = torch.stack([pulled * (x[:, j] - z) for j in (0, 1, 2, 3)])
    c, found = torch.cov(g), parent_law.exact(12, 1.0)
    assert found.lead == pytest.approx(float(g[0].mean() - g[2].mean()), abs=0.004)
    assert found.own**2 == pytest.approx(float(c[2, 2] - c[2, 3]), rel=0.03)
    assert found.apart**2 == pytest.approx(float((g[0] - g[1]).var() / 4), rel=0.03)


def test_many_tokens_have_the_leading_moments():
    exact, leading = parent_law.exact(4000, 1.0), parent_law.leading(4000, 1.0)
    assert exact.lead == pytest.approx(leading.lead, rel=0.01)
    assert exact.own == pytest.approx(leading.own, rel=0.01)
    assert exact.shared == pytest.approx(leading.shared, rel=0.01) and exact.apart < 0.05 * leading.own


def test_the_chance_of_a_node_is_that_of_normal_numbers():
    draws = torch.randn(20_000, 40, generator=torch.Generator().manual_seed(0)).numpy()
    m, n = 41, 500
    ahead = np.sqrt(n / (2 * m)) + draws[:, 0] > draws[:, 1:].max(1)
    found = parent_law.chance(np.array([n]), m, parent_law.leading(m, 1.0))[0]
    assert found == pytest.approx(ahead.mean(), abs=0.012)
    lone = parent_law.chance(np.array([n]), m, parent_law.independent(m, 1.0))[0]
    assert lone < found


def test_more_is_needed_for_more_bits_more_factors_and_more_noise():
    base = parent_law.needed(32, 8)
    assert parent_law.needed(64, 8) > 2 * base and parent_law.needed(32, 16) > base
    assert 1.23 * base < parent_law.needed(32, 8, 0.05) < 0.9**-6 * base
    assert parent_law.needed(32, 8, 0.0, parent_law.independent) > parent_law.needed(32, 8, 0.0, parent_law.leading)
