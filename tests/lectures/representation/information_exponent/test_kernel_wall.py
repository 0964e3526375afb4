"""The kernel by its features, and every exact risk against fresh data."""

import itertools

import numpy as np
import pytest
import torch

from flbook import devices, hermite
from flbook.lectures.representation.information_exponent import kernel_wall


def features(x: torch.Tensor) -> torch.Tensor:
    """All products of Hermite polynomials of total degree three."""
    columns = []
    for axes in itertools.combinations_with_replacement(range(x.shape[1]), 3):
        product = torch.ones(len(x), dtype=x.dtype)
        for axis in set(axes):
            product = product * hermite.polynomial(axes.count(axis), x[:, axis])
        columns.append(product)
    return torch.stack(columns, -1)


def test_the_kernel_is_the_sum_over_its_features():
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    phi = features(x)
    assert phi.shape[1] == kernel_wall.size(4) == 20
    torch.testing.assert_close(kernel_wall.kernel(x), phi @ phi.mT)


@pytest.mark.parametrize("device", devices.present())
def test_linear_regression_is_blind_and_the_kernel_needs_its_features(device):
    mean = kernel_wall.run("tiny", device).risk.mean("seed").sel(n=300)
    assert float(mean.sel(model="linear")) == pytest.approx(1, abs=1e-6)
    assert float(mean.sel(model="kernel")) < 0.3  # more samples than features: the wall is behind us
    assert float(mean.sel(model="E[z|y]")) < 0.4


def test_exact_risks_agree_with_fresh_data():
    d, n = 6, 60
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fresh = torch.randn(200_000, d, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y, target = (hermite.he(3)(part[:, 0]) for part in (x, fresh))
    K, phi = kernel_wall.kernel(x), features(x)
    a = torch.linalg.solve(K + 0.03 * kernel_wall.size(d) * torch.eye(n, dtype=x.dtype), y)
    simulated = float((target - features(fresh) @ (phi.mT @ a)).square().mean())
    exact = float(1 - 2 * a @ y + a @ K @ a)
    assert exact == pytest.approx(simulated, rel=0.03)
    assert float(kernel_wall.kernel_risk(x, y)) <= exact + 1e-12

    along = x.mT @ y.sign() / torch.linalg.norm(x.mT @ y.sign())
    cubic = np.linalg.lstsq(np.vander((x @ along).numpy(), 4), y.numpy(), rcond=None)[0]
    squares = (target.numpy() - np.polyval(cubic, (fresh @ along).numpy())) ** 2
    assert abs(float(kernel_wall.gated_risk(x, y, y.sign())) - squares.mean()) < 5 * squares.std() / len(squares) ** 0.5
