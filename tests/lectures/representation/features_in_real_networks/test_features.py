"""Features: gradient outer products against autograd and `flbook.observe`, the untrained correlation in closed form."""

import math

import pytest
import torch

from flbook import observe
from flbook.lectures.representation.features_in_real_networks import features
from flbook.models import ConvNet, identity


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_feature_matrix_by_hand():
    assert features.feature_matrix(torch.tensor([[1.0, 2.0], [0.0, -1.0]])).tolist() == [[1, 2], [2, 5]]


def test_gradient_outer_product_of_two_layers_is_autograds():
    x, w, b, a = normal(9, 4), normal(6, 4, seed=1), normal(6, seed=2), normal(3, 6, seed=3)

    def f(x):
        return a @ torch.relu(w @ x + b)

    slopes = torch.stack([torch.autograd.functional.jacobian(f, one) for one in x])
    expected = torch.einsum("nci,ncj->ij", slopes, slopes) / 9
    torch.testing.assert_close(features.gradient_outer_product(x, w, b, a), expected)
    observed = observe.agop(lambda p, x: torch.relu(x @ p["w"].T + p["b"]) @ p["a"].T, {"w": w, "b": b, "a": a}, x)
    torch.testing.assert_close(observed, expected)


def test_correlation_is_the_same_in_every_basis_and_takes_the_identity_off():
    a, b = (x @ x.mT for x in (normal(2, 4, 4), normal(2, 4, 4, seed=1)))
    turn = torch.linalg.qr(normal(4, 4, seed=2)).Q
    found = features.correlation(a, b)
    torch.testing.assert_close(features.correlation(turn @ a @ turn.T, turn @ b @ turn.T), found)
    torch.testing.assert_close(features.correlation(a + 7 * torch.eye(4), 3 * b), found)
    torch.testing.assert_close(features.correlation(a, a), torch.ones(2, dtype=torch.float64))


def test_pearson_is_that_of_all_entries():
    a, b = normal(2, 4, 4), normal(2, 4, 4, seed=1)
    expected = [torch.corrcoef(torch.stack([x.flatten(), y.flatten()]))[0, 1] for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(features.pearson(a, b), torch.stack(expected))


def test_the_untrained_correlation_is_that_of_random_networks():
    x, w, a = normal(20000, 60), normal(30, 16, 60, seed=1), normal(30, 5, 16, seed=2)
    pairs = [(features.feature_matrix(v), features.gradient_outer_product(x, v, torch.zeros(16), u))
             for v, u in zip(w, a, strict=True)]
    found = torch.stack([features.correlation(*pair) for pair in pairs]).mean()
    assert features.untrained_correlation(5, 16) == pytest.approx(math.sqrt(20 / 43))
    assert found == pytest.approx(math.sqrt(20 / 43), abs=0.04)


def test_layer_matrices_of_a_linear_network_with_one_place():
    net = ConvNet((1, 5, 5), (3,), 5, 2, identity, "none", padding=0, dtype=torch.float64)
    params = {name: p.detach() for name, p in net.named_parameters()}
    ((matrix, g),) = features.layer_matrices(net, params, normal(7, 1, 5, 5))
    w, a = params["w0"].flatten(1), params["a"]
    torch.testing.assert_close(matrix, w.T @ w)
    torch.testing.assert_close(g, w.T @ a.T @ a @ w)  # the gradient is W'a for every picture


def test_layer_matrices_of_a_deeper_layer_are_those_of_the_rest_of_the_network():
    """The second layer of a network is the first of the network that begins there."""
    net = ConvNet((2, 8, 8), (3, 4), 3, 1, seed=(0, 1), dtype=torch.float64)
    params, x = {name: p.detach() for name, p in net.named_parameters()}, normal(6, 2, 8, 8)
    behind = ConvNet((3, 4, 4), (4,), 3, 1, seed=(0, 1), dtype=torch.float64)
    rest = {"w0": params["w1"], "b0": params["b1"], "a": params["a"], "b": params["b"]}
    h = net.layers(x)[0].detach().unflatten(-1, (3, 4, 4))
    for found, expected in zip(features.layer_matrices(net, params, x)[1],
                               features.layer_matrices(behind, rest, h)[0], strict=True):
        assert found.shape == (2, 27, 27)
        torch.testing.assert_close(found, expected)
