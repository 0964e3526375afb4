"""Closed forms of pretraining on single-index prompts against quadrature, autograd and drawn prompts."""

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as theory
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts


def test_alignment_of_the_exact_step():
    assert theory.alignment_after_step(16, 2) == pytest.approx(0.9270833, abs=1e-7)
    assert theory.alignment_after_step(32, 2) == pytest.approx(0.953125)
    assert theory.alignment_after_step(5, 5) == pytest.approx(1), "no subspace to find"
    w = ReLULayer.draw(40000, 6, 0).w.numpy()
    step = theory.quadratic_step(w, 3)
    measured = (step[:, :3] ** 2).sum() / (step**2).sum()
    assert measured == pytest.approx(theory.alignment_after_step(6, 3), abs=0.005)


def test_the_exact_step_is_the_gradient_of_the_mean_squared_correlation():
    w = ReLULayer.draw(3, 5, 1).w.requires_grad_()
    angle = torch.arange(12).double() * np.pi / 6  # exact for polynomials of degree below 12
    beta = torch.stack([angle.cos(), angle.sin()], -1)
    length = w.norm(dim=-1, keepdim=True)
    correlation = theory.relu_coefficient(2) * length * (w[:, :2] @ beta.T / length) ** 2
    (gradient,) = torch.autograd.grad(correlation.square().mean(-1).sum(), w)
    np.testing.assert_allclose(theory.quadratic_step(w.detach().numpy(), 2), gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bias", [0.0, 0.7, -2.0])
def test_coefficients_of_relu(bias):
    exact = hermite.coefficients(lambda z: np.maximum(1.3 * z + bias, 0), 6, (-bias / 1.3,))
    assert [theory.relu_coefficient(k, 1.3, bias) for k in range(7)] == pytest.approx(exact.tolist(), abs=1e-12)


def test_moments_against_drawn_inputs():
    layer = ReLULayer.draw(6, 4, 0, spread=1.0)
    w, b = layer.w.numpy() * np.linspace(0.01, 2, 6)[:, None], layer.b.numpy()
    x = np.random.default_rng(0).standard_normal((200_000, 4))
    phi = np.maximum(x @ w.T + b, 0)
    np.testing.assert_allclose(theory.feature_moment(w, b), phi.T @ phi / len(x), atol=0.02)
    beta = np.pad(np.random.default_rng(1).standard_normal((1000, 3)), ((0, 0), (0, 1)))
    beta /= np.linalg.norm(beta, axis=-1, keepdims=True)
    y = hermite.polynomial(2, x[:20_000] @ beta.T)
    shared = phi[:20_000].T @ y / 20_000
    np.testing.assert_allclose(theory.task_moment(w, b, 3), shared @ shared.T / 1000, atol=0.02)
    np.testing.assert_allclose(theory.label_square(x[:50], 3), (y[:50] ** 2).mean(-1), rtol=0.3, atol=0.1)


def test_the_second_moment_of_a_context_runs_from_one_example_to_endless_ones():
    shared, single = np.array([[1.0, 0.2], [0.2, 2.0]]), np.array([[5.0, 1.0], [1.0, 9.0]])
    np.testing.assert_array_equal(theory.context_moment(1, shared, single), single)
    np.testing.assert_allclose(theory.context_moment(2, shared, single), (shared + single) / 2)
    np.testing.assert_allclose(theory.context_moment(1e12, shared, single), shared)


def test_risk_is_that_of_drawn_prompts_and_the_best_gamma_is_best():
    layer, n = ReLULayer.draw(12, 4, 0, spread=1.0), 10
    w, b = layer.w.numpy(), layer.b.numpy()
    x = np.random.default_rng(0).standard_normal((100_000, 4))
    moments = (theory.task_moment(w, b, 2), theory.label_moment(w, b, 2, x, 0.5), theory.feature_moment(w, b))
    best = theory.best_gamma(n, *moments)
    drawn = SingleIndexPrompts(n=n, d=4, r=2, noise=0.5, queries=4).draw(20_000, 0)
    attention = LinearAttention(torch.from_numpy(best), features=layer).requires_grad_(False)
    error = (attention(drawn.context, drawn.query) - drawn.target).square().mean()
    lowest = theory.risk(best, n, *moments)
    assert error.item() == pytest.approx(lowest, rel=0.06), "standard error 1.4 %"
    for seed in range(5):
        other = best + 0.1 * np.abs(best).mean() * np.random.default_rng(seed).standard_normal(best.shape)
        assert theory.risk(other, n, *moments) > lowest
    assert theory.risk(0 * best, n, *moments) == 1


def test_the_least_risk_in_three_ways():
    """The closed form by quadrature, the layer's formula against its matrix, and wide layers near the floor."""
    layer, x = ReLULayer.draw(40, 6, 0, spread=1.0), np.random.default_rng(0).standard_normal((4000, 6))
    w, b = layer.w.numpy(), layer.b.numpy()
    moments = (theory.task_moment(w, b, 2), theory.label_moment(w, b, 2, x), theory.feature_moment(w, b))
    direct = [theory.risk(theory.best_gamma(n, *moments), n, *moments) for n in (4, 64)]
    np.testing.assert_allclose(theory.best_risk((4, 64), w, b, 2, x), direct, rtol=1e-3)
    floor = theory.floor(np.array([4, 64]), 2)
    assert (floor < direct).all()
    x, near = np.random.default_rng(1).standard_normal((20_000, 2)), []  # all of it lies in the subspace
    for m in (50, 400):
        wide = ReLULayer.draw(m, 2, 0, spread=1.0)
        near.append(theory.best_risk((64,), wide.w.numpy(), wide.b.numpy(), 2, x)[0])
    assert floor[1] < near[1] < 1.6 * floor[1] and near[1] < near[0], "more neurons come closer"
    assert theory.floor(1e4, 64) == pytest.approx(1 / (1 + 2e4 / 64**2), rel=0.1), "n* = r²/2 (1/R - 1)"


def test_the_least_risk_of_a_link_with_a_line():
    n = np.array([1, 4, 64])
    np.testing.assert_allclose(theory.floor(n, 3, line=1.0), 2 / (2 + n), rtol=1e-6)  # linear regression by averages
    line, angle = 0.6, np.arange(64) * np.pi / 32
    beta = np.stack([np.cos(angle), np.sin(angle)])  # all tasks of r = 2, exact for this degree
    x = np.random.default_rng(0).standard_normal((20_000, 2))

    def functions(x):
        return np.stack([x[:, 0], x[:, 1], *((x.T**2 - 1) / 2**0.5), x[:, 0] * x[:, 1]])  # orthonormal

    z = x @ beta
    square = ((line * z + 0.8 * (z**2 - 1) / 2**0.5) ** 2).mean(1)  # E y² at every x
    h = functions(x)
    gram = (h / square) @ h.T / len(z)
    tasks = np.stack([line * beta[0], line * beta[1], *(0.8 * beta**2), 0.8 * 2**0.5 * beta[0] * beta[1]])
    strength = tasks @ tasks.T / len(angle)
    for one, floor in zip(n, theory.floor(n, 2, line), strict=True):
        inverse = one * gram @ np.linalg.inv(np.eye(5) + (one - 1) * strength @ gram)  # of h' A^-1 h
        assert floor == pytest.approx(1 - np.trace(strength @ inverse @ strength), rel=0.02)
