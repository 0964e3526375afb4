"""Errors of kernels of features: in closed form against sums over eigenfunctions, and moments against simulation."""

import math

import numpy as np
import pytest

from flbook import rng
from flbook.lectures.foundation_models.linear_attention_dimension import kernel_error as errors
from flbook.lectures.foundation_models.linear_attention_dimension.gaussian_tokens import GaussianTokens


@pytest.mark.parametrize(("law", "d", "theta"), [("plain", 2, 0.1), ("wide", 1, 0.3)])
def test_error_of_the_kernel_is_that_of_its_matrix_in_eigenfunctions(law, d, theta):
    tokens = GaussianTokens(d, theta * math.sqrt(d), 40 if d == 1 else 20)
    z = tokens.draw_features(20, law, 1.0, seed=3)
    density = tokens.density(z, law, 1.0)
    rows = tokens.coordinates(z) * np.sqrt(tokens.eigenvalues) / np.sqrt(density)[:, None]
    matrix = rows.T @ rows / 20 - np.diag(tokens.eigenvalues)
    assert errors.kernel_error(tokens, z, density) == pytest.approx(np.linalg.norm(matrix), rel=1e-6)


@pytest.mark.parametrize(("law", "moment"), [("plain", errors.plain_square), ("wide", errors.wide_square)])
def test_mean_squares_are_those_of_the_closed_forms(law, moment):
    tokens = GaussianTokens(2, 0.05 * 2**0.5, 2)
    measured = errors.mean_squares(tokens, law, 16, 1000, (0, 1, 2)).mean() * 16
    assert measured == pytest.approx(moment(2, 0.05), rel=0.12)


def test_plain_features_have_no_mean_square_from_a_sixth_on():
    assert errors.plain_square(3, 0.1666) < math.inf == errors.plain_square(3, 1 / 6)
    assert errors.plain_rate(1 / 6) == pytest.approx(-0.5)
    assert errors.wide_square(3, 0.1) < errors.plain_square(3, 0.1)


def test_typical_errors_of_wide_features_halve_with_four_times_as_many():
    few, many = errors.typical_errors(0.3, 2, "wide", (32, 128), (0, 1, 2, 3)).mean(0)
    assert many / few == pytest.approx(0.5, abs=0.06)


def test_attention_of_many_features_is_softmax_attention():
    tokens = GaussianTokens(3, 0.1 * 3**0.5, 8)
    for law in ("plain", "wide", "optimal"):
        few, many = errors.mean_attention_errors(tokens, law, 0.05, (20, 2000), (0, 1))[:, :].mean(0)
        assert many < 0.003 < few
    assert errors.mean_value_error(tokens, 0) > 0.01


def test_running_sums_are_causal_attention():
    q, k, v = np.abs(rng.numpy_generator(0, "a prompt of a test").standard_normal((3, 9, 4)))
    weights = np.tril(q @ k.T)
    whole = weights @ v / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(errors.running_attention(q, k, v), whole, rtol=1e-12)


def test_squares_of_features_are_sums_over_eigenfunctions():
    tokens = GaussianTokens(1, 0.3, 40)
    z = rng.numpy_generator(0, "features of a test").standard_normal((9, 1))
    summed = tokens.coordinates(z) ** 2 @ tokens.eigenvalues
    np.testing.assert_allclose(errors.positive_squares(tokens, z), summed, rtol=1e-8)


def test_the_ratio_of_mean_squares_depends_on_the_degrees_that_are_kept():
    """0.5164 of all, 0.523 of ten degrees: by the integral, and by draws."""
    for levels, exact in ((10, 0.5234), (16, 0.5164), (20, 0.5164)):
        tokens = GaussianTokens(4, 0.3 * 4**0.5, levels)
        form = errors.wide_square(4, 0.3) / errors.optimal_square(tokens, 2**-8)
        assert form == pytest.approx(exact, abs=1e-4)
    z = tokens.draw_features(20_000, "optimal", 2**-8, seed=5)
    terms = (errors.positive_squares(tokens, z) / tokens.density(z, "optimal", 2**-8)) ** 2
    square = errors.optimal_square(tokens, 2**-8) + (1 - 4 * 0.3**2) ** -2
    assert terms.mean() == pytest.approx(square, abs=5 * terms.std() / 20_000**0.5)
