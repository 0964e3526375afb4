"""Closed forms of linear attention: exact quadrature, limits, Monte Carlo of Wishart's law, and bad input."""

import itertools

import numpy as np
import pytest

from flbook.lectures.in_context_learning.shared import attention_risk as theory

LAM = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.3]])
PSI = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]])
ROOT = np.linalg.cholesky(LAM)


def exact(gamma, n, noise, psi):
    """The risk from Gauss-Hermite quadrature of the fourth moments: exact, and another way than the closed form's."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    middle, fourth = gamma @ LAM @ gamma.T, np.zeros((3, 3))
    for index in itertools.product(range(3), repeat=3):
        x = ROOT @ nodes[list(index)]
        fourth += weights[list(index)].prod() * np.outer(x, x) * (x @ middle @ x)
    square = fourth / n + (1 - 1 / n) * LAM @ middle @ LAM
    return np.trace(psi @ (LAM - 2 * LAM @ gamma @ LAM + square)) + noise**2 / n * np.trace(LAM @ middle)


@pytest.mark.parametrize("noise, psi", [(0.0, np.eye(3)), (0.7, PSI)])
def test_risk_and_optimum(noise, psi):
    gamma = np.random.default_rng(0).standard_normal((3, 3))
    assert theory.attention_risk(gamma, 5, LAM, noise, psi) == pytest.approx(exact(gamma, 5, noise, psi), rel=1e-12)
    best = theory.attention_optimum(5, LAM, noise, psi)
    least = exact(best, 5, noise, psi)
    assert least == pytest.approx(np.trace(psi @ (LAM - LAM @ best @ LAM)), rel=1e-12)
    for i, j in itertools.product(range(3), repeat=2):
        step = np.zeros((3, 3))
        step[i, j] = 1e-4
        slope = exact(best + step, 5, noise, psi) - exact(best - step, 5, noise, psi)
        assert abs(slope) < 1e-12


def test_isotropic_values_and_limits():
    best = theory.attention_optimum(20, np.eye(5))
    assert theory.attention_risk(best, 20, np.eye(5)) == pytest.approx(theory.isotropic_risk(20, 5), rel=1e-12)
    assert theory.isotropic_risk(20, 5) == pytest.approx(1.1538, abs=5e-5)
    endless = 5 * (6 / 26) ** 2  # d ((d + 1)/(n + d + 1))²
    assert theory.attention_risk(best, np.inf, np.eye(5)) == pytest.approx(endless, rel=1e-12)
    assert theory.attention_risk(best, 1e9, LAM := np.eye(5), 0.0) == pytest.approx(endless, rel=1e-6)
    np.testing.assert_allclose(theory.attention_optimum(np.inf, 2 * LAM), LAM / 2)
    matched = theory.attention_optimum(20, LAM := np.diag([1.0, 0.25]), 0.0, np.linalg.inv(LAM))
    np.testing.assert_allclose(matched, 20 / 23 * np.linalg.inv(LAM))


def test_uniform_inputs_and_gaussian_ones():
    step, risk = theory.best_step(10, 10, 1 / 12, 1 / 80)
    assert step == pytest.approx(6.0606, abs=5e-5) and risk / 2 == pytest.approx(0.20623, abs=5e-6)
    assert theory.best_step(20, 5)[1] == pytest.approx(theory.isotropic_risk(20, 5), rel=1e-12)


def test_wishart_moments():
    d, n = 5, 20
    s = theory.second_moments(n, np.eye(d), 40_000)
    traces = [np.trace(np.linalg.matrix_power(s, k), axis1=1, axis2=2).mean() for k in (1, 2, 3)]
    known = [d, d * (n + d + 1) / n, d * (n**2 + 3 * n * (d + 1) + d**2 + 3 * d + 4) / n**2]
    np.testing.assert_allclose(traces, known, rtol=0.01)
    assert np.linalg.matrix_rank(theory.second_moments(2, LAM, 3)[0]) == 2
    np.testing.assert_allclose(theory.second_moments(9, LAM, 40_000).mean(0), LAM, atol=0.02)


def test_best_polynomials_and_layers():
    s = theory.second_moments(20, np.eye(5), 4000)
    values = np.linalg.eigvalsh(s)
    risks = [theory.descent_risk(steps, s, np.eye(5)) for steps in (1, 2, 3)]
    assert risks[0] == pytest.approx(theory.isotropic_risk(20, 5), rel=0.02)
    for layers, risk in enumerate(risks, 1):
        steps, bends = theory.layered_optimum(layers, values)
        assert theory.layered_risk(steps, bends, values) <= risk * 1.0001
    roots = np.roots([1.2494 * 0.51515, -(1.2494 + 0.51515), 1])  # two steps of sizes .515 and 1.249
    assert theory.layered_risk(1 / roots, [0.0], values) == pytest.approx(risks[1], rel=0.01)


def test_matched_tasks_make_the_problem_isotropic_for_layers_not_for_plain_steps():
    s = theory.second_moments(20, LAM, 4000)
    plain = theory.descent_risk(2, s, LAM, np.linalg.inv(LAM))
    white = theory.descent_risk(2, s @ np.linalg.inv(LAM), LAM, np.linalg.inv(LAM))
    isotropic = theory.descent_risk(2, theory.second_moments(20, np.eye(3), 4000), np.eye(3))
    assert white == pytest.approx(isotropic, rel=0.05) and plain > 1.3 * isotropic


def test_ridge_and_its_ratio():
    lam = 1 / np.arange(1, 9)
    ratios = {}
    for noise in (0.5, lam.sum() ** 0.5, (4 * lam.sum()) ** 0.5):
        best = theory.attention_risk(theory.attention_optimum(160, lam, noise), 160, lam, noise)
        ratios[noise] = best / theory.ridge_risk(160, lam, noise, 2000).mean()
    np.testing.assert_allclose(list(ratios.values()), [11.6, 1.89, 1.17], rtol=0.02)
    far = theory.attention_risk(theory.attention_optimum(1e5, lam, 1.0), 1e5, lam, 1.0) * 1e5 / 8
    assert far == pytest.approx(theory.low_signal_ratio(8, lam.sum()), rel=1e-3)


@pytest.mark.parametrize("call, message", [
    (lambda: theory.attention_optimum(0, np.eye(2)), "n must be at least 1"),
    (lambda: theory.attention_optimum(5, [[1.0, 2.0], [2.0, 1.0]]), "covariance must be symmetric and positive semi-d"),
    (lambda: theory.attention_risk(np.eye(3), 5, np.eye(2)), "gamma must have the shape of the covariance"),
    (lambda: theory.ridge_risk(5, np.eye(2), 0.0), "noise must be a number above 0; got 0.0"),
])
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
