"""Random features moved by one step, and kernels: by hand, against autograd, ensembles, bad input."""

import math
from dataclasses import replace

import pytest
import torch

from flbook.data import SingleIndex
from flbook.models import RandomFeatures, erf, kernels, relu, tanh

X = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)


def test_features_and_output_by_hand():
    net = RandomFeatures(torch.tensor([[1.0, 1.0], [-1.0, 0.5]]).double(), torch.tensor([2.0, -1.0]).double(), relu)
    expected = torch.tensor([[1.0, 0.0], [2.0, 1.0]]).double() / math.sqrt(2)
    torch.testing.assert_close(net.features(X), expected)
    torch.testing.assert_close(net(X), torch.tensor([2.0, 3.0]).double() / math.sqrt(2))


def test_gradient_is_that_of_the_squared_loss():
    sample = SingleIndex(n=7, d=3).draw(0)
    net = RandomFeatures.draw(3, 5, tanh, seed=1)
    w = net.w.clone().requires_grad_()
    loss = (replace(net, w=w)(sample.x) - sample.y).square().mean() / 2
    (expected,) = torch.autograd.grad(loss, w)
    torch.testing.assert_close(net.gradient(sample.x, sample.y), expected, rtol=1e-12, atol=1e-15)
    moved = net.step(sample.x, sample.y, 0.3)
    torch.testing.assert_close(moved.w, net.w - 0.3 * math.sqrt(5) * expected)


def test_an_ensemble_is_a_loop_also_in_the_step_size():
    sample = SingleIndex(n=6, d=3).draw((0, 1))
    nets = RandomFeatures.draw(3, 4, tanh, (0, 1)).step(sample.x, sample.y, torch.tensor([0.5, 2.0]))
    for k, lr in enumerate((0.5, 2.0)):
        one = RandomFeatures.draw(3, 4, tanh, k).step(sample.x[k], sample.y[k], lr)
        torch.testing.assert_close(nets.w[k], one.w)
        torch.testing.assert_close(nets.features(sample.x)[k], one.features(sample.x[k]))


def test_the_scale_of_the_start():
    net = RandomFeatures.draw(400, 300, seed=0)
    assert net.w.var().item() * 400 == pytest.approx(1, abs=0.02)
    assert net.a.var().item() * 300 == pytest.approx(1, abs=0.2)


def test_spectrum_is_the_singular_value_decomposition():
    net, direction = RandomFeatures.draw(4, 6), torch.tensor([0.6, 0.0, 0.8, 0.0]).double()
    squares, overlaps = net.spectrum(direction)
    _, values, vectors = torch.linalg.svd(net.w)
    torch.testing.assert_close(squares, values.square().flip(0))
    torch.testing.assert_close(overlaps, (vectors @ direction).square().flip(0))
    assert overlaps.sum().item() == pytest.approx(1)


def test_kernels_by_hand():
    assert kernels.inner_product(torch.exp)(X, X).tolist() == [[math.exp(0.5), 1.0], [1.0, math.exp(2.0)]]
    torch.testing.assert_close(kernels.distance(lambda t: t)(X, X), torch.tensor([[0.0, 2.5], [2.5, 0.0]]).double())


def test_tangent_kernel_is_that_of_the_gradient():
    net = RandomFeatures.draw(3, 5, tanh)
    x, other = SingleIndex(n=4, d=3).draw(0).x, SingleIndex(n=2, d=3).draw(1).x

    def slopes(points):
        ones = replace(net, a=torch.ones(5, dtype=torch.float64))
        return torch.autograd.functional.jacobian(lambda w: replace(ones, w=w)(points), net.w).flatten(1)

    torch.testing.assert_close(kernels.neural_tangent(net)(x, other), slopes(x) @ slopes(other).T / 3)


def test_arcsine_and_the_exact_risk_against_a_sample():
    data = SingleIndex(n=2, d=3, link=torch.erf, noise=0.0)
    net = RandomFeatures.draw(3, 4, erf, (0, 1))
    test = data.draw_test(2**17, 0)
    features = net.features(test.x)
    moments = torch.einsum("spk,spl->skl", features, features) / len(test.x)
    torch.testing.assert_close(kernels.arcsine(net.w, net.w) / 4, moments, atol=2e-3, rtol=0)
    weights = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0]]).double().expand(2, 2, 4)
    risk = kernels.erf_risk(net, weights, data.direction)
    sampled = (torch.einsum("spk,slk->slp", features, weights) - test.target).square().mean(-1)
    torch.testing.assert_close(risk, sampled, atol=5e-3, rtol=5e-3)


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match=r"samples of shape \(2, 2\) do not fit neurons of shape \(4, 3\)"):
        RandomFeatures.draw(3, 4).features(X)
