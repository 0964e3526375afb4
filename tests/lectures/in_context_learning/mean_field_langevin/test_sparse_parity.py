"""Sparse parity at a tiny preset: labels, rivals that must fail, and a network that finds two inputs of six."""

import pytest
import torch

from flbook.lectures.in_context_learning.mean_field_langevin.parity import SparseParity
from flbook.models.kernels import relu_tangent


def test_labels_are_products_of_signs():
    sample = SparseParity(50, 7, 3).draw((0, 1))
    assert sample.x.shape == (2, 50, 7) and (sample.x.abs() == 1).all()
    assert (sample.y == sample.x[..., 0] * sample.x[..., 1] * sample.x[..., 2]).all()
    longer, fresh = SparseParity(80, 7, 3).draw(1), SparseParity(50, 7, 3).draw_test(50, 1)
    assert (longer.x[:50] == sample.x[1]).all() and not (fresh.x == sample.x[1]).all()
    with pytest.raises(ValueError, match="k must be at most d = 7; got 8"):
        SparseParity(d=7, k=8)


def test_the_tangent_kernel_of_relu():
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    w = torch.randn(200000, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pre = x @ w.T / 5**0.5
    slope = (pre > 0).double()
    empirical = 2 * (x @ x.T / 5 * (slope @ slope.T) + pre.relu() @ pre.relu().T) / len(w)
    torch.testing.assert_close(relu_tangent(bias=False)(x, x), empirical, rtol=0.02, atol=0.02)


def test_without_a_bias_the_kernel_is_blind_to_odd_degrees():
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 5)
    parity = corners[:, :3].prod(-1)
    assert (relu_tangent(bias=False)(corners, corners) @ parity).abs().max() < 1e-10
    assert (relu_tangent()(corners, corners) @ parity).abs().max() > 1e-3
