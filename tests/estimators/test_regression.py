"""Ridge and kernel ridge regression: the normal equations, each other, a scan equal to a loop, and bad input."""

import pytest
import torch

from flbook import rng
from flbook.estimators import kernel_ridge, ridge

LAM = (0.01, 0.3, 5.0)


@pytest.mark.parametrize("n, size", [(12, 5), (5, 12)], ids=["tall", "wide"])
def test_ridge_solves_its_normal_equations(n, size):
    features, y = rng.normal((n, size), (0, 1), "features"), rng.normal((n,), (0, 1), "labels")
    weights = ridge(features, y, LAM)
    assert weights.shape == (2, 3, size)
    residual = y[:, None] - torch.einsum("snk,slk->sln", features, weights)
    pull = torch.einsum("snk,sln->slk", features, residual) / n
    torch.testing.assert_close(pull, torch.tensor(LAM).double()[:, None] / size * weights)
    torch.testing.assert_close(ridge(features[1], y[1], LAM[2]), weights[1, 2])


def test_kernel_ridge_solves_its_system_and_is_ridge_on_features():
    features, y = rng.normal((30, 8), (0, 1), "features"), rng.normal((30,), (0, 1), "labels")
    kernel = features @ features.mT
    alpha = kernel_ridge(kernel, y, LAM, rtol=1e-12)
    for k, lam in enumerate(LAM):
        exact = torch.linalg.solve(kernel + 30 * lam * torch.eye(30).double(), y)
        torch.testing.assert_close(alpha[:, k], exact, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(torch.einsum("snk,sln->slk", features, alpha),
                               ridge(features, y, tuple(8 * lam for lam in LAM)))
    torch.testing.assert_close(kernel_ridge(kernel[0], y[0], LAM[1], rtol=1e-12), alpha[0, 1])


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="lam must be a number above 0 or a tuple"):
        ridge(torch.ones(3, 2), torch.ones(3), (0.1, 0.0))
    with pytest.raises(ValueError, match="lam must be a number above 0 or a tuple"):
        kernel_ridge(torch.eye(3), torch.ones(3), ())
    hilbert = 1 / (torch.arange(12)[:, None] + torch.arange(12) + 1.0).double()
    with pytest.raises(ValueError, match="lam must be larger"):
        kernel_ridge(hilbert, rng.normal((12,), 0, "labels"), 1e-18, rtol=1e-15)
