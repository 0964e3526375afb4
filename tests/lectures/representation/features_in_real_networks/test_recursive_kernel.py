"""The recursive kernel machine: its gradients against autograd, its metric on a target of one direction."""

import torch

from flbook.lectures.representation.features_in_real_networks.recursive_kernel import kernel_rounds, squared_distances


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_distances_by_hand():
    metric = torch.diag(torch.tensor([4.0, 1.0], dtype=torch.float64))
    x, other = torch.tensor([[0.0, 0.0], [1.0, 2.0]]).double(), torch.tensor([[1.0, 0.0]]).double()
    assert squared_distances(x, other, metric).tolist() == [[4.0], [4.0]]


def test_the_metric_is_the_outer_product_of_the_fits_own_gradients():
    x, y = normal(2, 12, 3), normal(2, 12, seed=1)
    first = kernel_rounds(x, y, x, rounds=1)[0]
    points = x.clone().requires_grad_()
    scale = squared_distances(x, x, first.metric).flatten(-2).median(-1).values[..., None, None]
    kernel = torch.exp(-squared_distances(x, x, first.metric) / (2 * scale))
    a = torch.linalg.solve(kernel + 1e-3 * torch.eye(12), y[..., None])
    f = torch.exp(-squared_distances(points, x, first.metric) / (2 * scale)) @ a
    torch.testing.assert_close(f[..., 0], first.outputs)
    (slopes,) = torch.autograd.grad(f.sum(), points)
    expected = slopes.mT @ slopes
    torch.testing.assert_close(first.product, 3 * expected / expected.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None])


def test_it_finds_the_one_direction_that_counts():
    x = normal(100, 5)
    rounds = kernel_rounds(x, x[:, 0] ** 2, x)
    shares = [float(one.product[0, 0]) / 5 for one in rounds]
    assert shares[0] < shares[1] and shares[-1] > 0.95
    torch.testing.assert_close(rounds[1].metric, rounds[0].product)
