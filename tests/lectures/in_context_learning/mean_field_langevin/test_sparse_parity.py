"""Sparse parity at a tiny preset: labels, rivals that must fail, and a network that finds two inputs of six."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.mean_field_langevin import sparse_parity as lecture
from flbook.lectures.in_context_learning.mean_field_langevin.parity import SparseParity
from flbook.lectures.in_context_learning.mean_field_langevin.sparse_parity import Setting
from flbook.models.kernels import relu_tangent

TINY = Setting(n=(120,), lam=(0.0, 1e-3), seed=(0, 1), d=6, k=2, width=40, steps=250, features=60, points=200)


def test_labels_are_products_of_signs():
    sample = SparseParity(50, 7, 3).draw((0, 1))
    assert sample.x.shape == (2, 50, 7) and (sample.x.abs() == 1).all()
    assert (sample.y == sample.x[..., 0] * sample.x[..., 1] * sample.x[..., 2]).all()
    alone, longer = SparseParity(50, 7, 3).draw(1), SparseParity(80, 7, 3).draw(1)
    assert (alone.x == sample.x[1]).all() and (longer.x[:50] == alone.x).all()
    fresh = SparseParity(50, 7, 3).draw_test(50, 1)
    assert not (fresh.x == alone.x).all()
    for wrong in (dict(n=0), dict(k=0), dict(k=8, d=7)):
        with pytest.raises(ValueError, match="n must be at least 1 and k lie between 1 and d"):
            SparseParity(**wrong)


def test_the_network_learns_and_the_line_does_not():
    whole = lecture.measure(TINY)
    assert dict(whole.sizes) == {"n": 1, "lam": 2, "seed": 2, "model": 4}
    assert whole.test_error.max() < 0.1 and whole.train_error.max() == 0 and whole.energy.min() > 2
    assert whole.rival_error.sel(model="linear regression").min() > 0.3
    one = lecture.measure(replace(TINY, lam=(1e-3,), seed=(1,)))
    np.testing.assert_allclose(one.energy.squeeze(), whole.energy.sel(lam=1e-3, seed=1).squeeze(), rtol=1e-2)


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


@pytest.mark.parametrize("preset", [Setting.book, Setting.paper])
def test_presets(preset):
    lecture.check(preset())


def test_bad_settings_are_one_sentence():
    for change, sentence in [(dict(n=(0,)), "n must be at least 1"), (dict(lam=(-1.0,)), "lam and decay not negative")]:
        with pytest.raises(ValueError, match=sentence):
            lecture.run(replace(TINY, **change))
