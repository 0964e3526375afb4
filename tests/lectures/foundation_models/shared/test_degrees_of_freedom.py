"""Closed forms of the attention kernel against moments, Gram matrices and sums; the rule on the paper's table."""

import numpy as np
import pytest

from flbook import rng
from flbook.lectures.foundation_models.shared import degrees_of_freedom as theory


def tokens(count, d, variance, seed=0):
    return variance**0.5 * rng.numpy_generator(seed, "tokens of a test").standard_normal((count, d))


@pytest.mark.parametrize(("d", "variance"), [(1, 0.3), (4, 0.2), (16, 1.5)])
def test_spectrum_of_gaussian_tokens_has_the_trace_and_the_square_of_the_kernel(d, variance):
    values, counts = theory.gaussian_spectrum(d, variance, 400)
    theta = theory.kernel_scale(d, variance)
    assert values @ counts == pytest.approx((1 - 2 * theta) ** (-d / 2), rel=1e-10)  # E exp(theta z.z)
    assert values**2 @ counts == pytest.approx((1 - 4 * theta**2) ** (-d / 2), rel=1e-10)  # E exp(2 theta z.z')


def test_degrees_of_freedom_against_a_gram_matrix_and_its_bias():
    few, many = (theory.degrees_of_freedom(*parts) for parts in closed_and_gram(4, 0.2, 2**-4))
    assert many == pytest.approx(few, rel=0.06)
    closed, gram = (theory.degrees_of_freedom(*parts) for parts in closed_and_gram(16, 0.5, 2**-8))
    assert gram < 400 < 900 < closed  # never above J = 600


def closed_and_gram(d, variance, lam):
    values, counts = theory.gaussian_spectrum(d, variance, 60)
    gram = theory.gram_spectrum(theory.attention_gram(tokens(600, d, variance)))
    return (values, lam, counts), (gram, lam)


def test_degrees_of_freedom_are_the_trace_of_the_ridge_smoother():
    gram = theory.attention_gram(tokens(30, 3, 0.4)[None])
    smoother = np.linalg.solve(gram[0] / 30 + 0.1 * np.eye(30), gram[0] / 30)
    found = theory.degrees_of_freedom(theory.gram_spectrum(gram), [0.1, 0.2])
    assert found.shape == (2, 1)
    assert found[0, 0] == pytest.approx(np.trace(smoother), rel=1e-10)
    assert found[1, 0] < found[0, 0]


def test_the_features_that_are_needed():
    assert theory.features_needed(10.0, 0.1) == pytest.approx(50 * np.log(1600), rel=1e-12)


def test_the_papers_rule_on_the_papers_table():
    table = [150, 173.8, 24.5, 39.8, 42.1, 66.6, 107.4, 33, 24.9, 29.9, 43.2, 39.8]
    assert theory.allocation(table, 64).tolist() == [149, 172, 24, 39, 42, 66, 106, 33, 25, 30, 43, 39]
    assert theory.allocation([1.0, 1000.0], 2).tolist() == [1, 4]  # never none


@pytest.mark.parametrize("budget", [8, 16.5, 64])
def test_an_allocation_spends_the_budget(budget):
    dof = 1 + 99 * rng.numpy_generator(0, "degrees of a test").random(40)
    assert abs(theory.allocation(dof, budget).sum() - 40 * budget) <= 20


def test_tokens_are_drawn_once():
    drawn = theory.drawn_tokens(np.arange(20.0).reshape(10, 2), 10, seed=3)
    assert sorted(drawn[:, 0]) == list(range(0, 20, 2))


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: theory.gaussian_spectrum(4, 1.0, 5), r"variance must be below sqrt\(d\)/2 = 1, .*; got 1.0"),
    (lambda: theory.degrees_of_freedom([1.0], 0.0), "lam must be a number above 0; got 0.0"),
    (lambda: theory.degrees_of_freedom([1.0, -0.1], 1.0), "eigenvalues must be at least 0"),
    (lambda: theory.gram_spectrum(np.ones((2, 3))), r"gram must be square, .* its shape is \(2, 3\)"),
    (lambda: theory.gram_spectrum([[1.0, 2.0], [0.0, 1.0]]), "gram must be finite and symmetric"),
    (lambda: theory.gram_spectrum([[1.0, 2.0], [2.0, 1.0]]), "gram must be positive semi-definite; .* -0.5"),
    (lambda: theory.drawn_tokens(np.ones((5, 2)), 6), "points must be at most the number of tokens, 5; got 6"),
    (lambda: theory.allocation([1.0, 2.0], 0.5), "budget must be a number of at least 1; got 0.5"),
    (lambda: theory.allocation([1.0, 0.0], 8), r"dof must be one positive number a layer; got \[1.0, 0.0\]"),
])
def test_bad_input_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
