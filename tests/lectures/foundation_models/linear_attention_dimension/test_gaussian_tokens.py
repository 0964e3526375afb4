"""Features in the kernel's eigenfunctions, against integrals in closed form and against sums over indices."""

import math

import numpy as np
import pytest

from flbook import rng
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import GaussianTokens
from flbook.lectures.foundation_models.shared.degrees_of_freedom import degrees_of_freedom

LAWS = ("plain", "orthogonal", "wide", "optimal")


def normal(*shape, seed=0):
    return rng.numpy_generator(seed, "features of a test").standard_normal(shape)


@pytest.mark.parametrize(("d", "theta"), [(1, 0.4), (3, 0.1)])
def test_inner_products_of_features_are_sums_over_eigenfunctions(d, theta):
    tokens = GaussianTokens(d, theta * math.sqrt(d), 40 if d == 1 else 12)
    z, y = normal(2, 5, d)
    exact = np.exp(theta / (2 + 4 * theta) * ((z[:, None] + y) ** 2).sum(-1)) / (1 + 2 * theta) ** (d / 2)
    found = tokens.coordinates(z) * tokens.eigenvalues @ tokens.coordinates(y).T
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_eigenfunctions_of_features_are_orthonormal():
    tokens = GaussianTokens(1, 0.3, 6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    values = tokens.coordinates(nodes[:, None])
    gram = values.T * weights @ values / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(gram, np.eye(6), atol=1e-10)


def test_a_level_sums_its_indices():
    tokens = GaussianTokens(3, 0.4, 5)
    z = normal(7, 3)
    squares, degree = tokens.coordinates(z) ** 2, tokens.indices.sum(1)
    summed = np.stack([squares[:, degree == k].sum(1) for k in range(5)], 1)
    np.testing.assert_allclose(tokens.by_level(z), summed, rtol=1e-10)
    assert tokens.degrees(0.1) == pytest.approx(degrees_of_freedom(tokens.spectrum.values, 0.1, tokens.spectrum.counts))


@pytest.mark.parametrize("law", LAWS)
def test_features_have_the_density_that_weights_them(law):
    tokens = GaussianTokens(2, 0.3, 12)
    z = tokens.draw_features(40_000, law, 0.02, seed=1)
    density = tokens.density(z, law, 0.02)
    inside = (z**2).sum(1) < 2
    assert (inside / density).mean() == pytest.approx(1 - math.exp(-1), abs=0.02)  # what a normal law has there
    assert ((z[:, 0] > 0) / density)[inside].mean() == pytest.approx((1 / density)[inside].mean() / 2, rel=0.05)


def test_only_optimal_features_have_one_whitened_length():
    tokens = GaussianTokens(2, 0.3, 8)
    for law in LAWS:
        square = (tokens.whitened(tokens.draw_features(30, law, 0.1), law, 0.1) ** 2).sum(1)
        assert np.allclose(square, tokens.degrees(0.1), rtol=1e-10) == (law == "optimal")


def test_orthogonal_features_are_orthogonal_in_blocks_and_as_long_as_plain_ones():
    tokens = GaussianTokens(3, 0.3, 4)
    z, plain = tokens.draw_features(6, "orthogonal", 0.1, seed=2), tokens.draw_features(6, "plain", 0.1, seed=2)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), np.linalg.norm(plain, axis=1))
    for block in (z[:3], z[3:]):
        assert np.abs(block @ block.T - np.diag((block**2).sum(1))).max() < 1e-12


def test_tokens_of_infinite_trace_are_refused():
    with pytest.raises(ValueError, match=r"variance must be below sqrt\(d\)/2 = 1, .*; got 1.5"):
        GaussianTokens(4, 1.5)
