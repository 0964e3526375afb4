"""Gaussian mean-field Langevin dynamics: moments against an ODE, bounds, and constants."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.mean_field_langevin.convergence import (
    LinearNeurons,
    bakry_emery,
    chaos_constant,
    holley_stroock,
    kramers,
)

MODEL, START = LinearNeurons(), (1.0, -1.0, 1.0, -1.0, 1.5)
EXCESS = MODEL.lam / 2 * (np.array(MODEL.s) / MODEL.rates).sum()  # N times the mean excess of the risk at rest


def test_moments_solve_their_equations():
    m, c = MODEL.moments(np.array([1.0, 1.0 + 1e-6]), START, 1.0)
    force = -MODEL.rates * (m[0] - MODEL.mean_star)
    np.testing.assert_allclose((m[1] - m[0]) / 1e-6, force, rtol=1e-4)
    np.testing.assert_allclose((c[1] - c[0]) / 1e-6, 2 * MODEL.lam - 2 * MODEL.decay * c[0], rtol=1e-4)


def test_the_objective_falls_as_fast_as_its_dissipation_says():
    t = np.array([0.7, 0.7 + 1e-6])
    slope = -np.diff(MODEL.gap(t, START, 1.0))[0] / 1e-6
    m, c = MODEL.moments(0.7, START, 1.0)
    fisher = (MODEL.rates**2 * (m - MODEL.mean_star) ** 2 + c * (MODEL.lam / c - MODEL.decay) ** 2).sum()
    assert slope == pytest.approx(fisher, rel=1e-4)
    assert slope >= 2 * MODEL.lam * MODEL.log_sobolev * MODEL.gap(0.7, START, 1.0)


def test_sandwich_and_rates():
    t = np.linspace(0, 12, 241)
    gap, above = MODEL.gap(t, START, 1.0), MODEL.certificate(t, START, 1.0)
    assert (above >= gap).all() and (gap <= gap[0] * np.exp(-2 * MODEL.decay * t) * (1 + 1e-12)).all()
    assert np.log(gap[200] / gap[240]) / 2 == pytest.approx(1.0, abs=2e-3), "2 decay: the null direction carries mean"
    other = MODEL.gap(t, (*START[:4], 0.0), 1.0)
    assert np.log(other[200] / other[240]) / 2 == pytest.approx(2.0, abs=2e-3)
    assert gap[20] == pytest.approx(0.447, abs=1e-3) and above[20] == pytest.approx(0.717, abs=1e-3)


def test_constants():
    assert holley_stroock(0.0, 0.2, 0.5) == pytest.approx(MODEL.log_sobolev)
    assert holley_stroock(0.2, 0.2, 0.5) == pytest.approx(2.5 / np.e)
    s, n = np.array(MODEL.s), len(MODEL.s)
    covariance = np.diag(s) * n * MODEL.lam / MODEL.decay  # outputs of linear neurons on x_i = sqrt(n s_i) e_i
    interacting, independent = chaos_constant(covariance, MODEL.lam)
    assert interacting == pytest.approx(EXCESS, rel=1e-12)
    assert independent == pytest.approx(MODEL.lam / 2 * (s / MODEL.decay).sum(), rel=1e-12)


def test_curvature_bounds_a_convex_potential_and_says_nothing_of_two_wells():
    theta = np.linspace(-3, 3, 601)
    potential = np.stack([0.5 * theta**2 / 2 + np.cosh(theta) - 1, (theta**2 - 1) ** 2 / 4])  # V'' at 0: 3/2 and -1
    found = bakry_emery(potential, theta[1] - theta[0], [0.2, 0.1])
    np.testing.assert_allclose(found, [7.5, 0.0], rtol=1e-4)
    gaussian = MODEL.decay * theta[None] ** 2 / 2
    assert bakry_emery(gaussian, theta[1] - theta[0], MODEL.lam)[0] == pytest.approx(MODEL.log_sobolev)


def test_kramers_of_a_quartic():
    theta = np.linspace(-3, 3, 2401)
    potential = np.stack([(theta**2 - 1) ** 2 / 4] * 2)  # V'' is 2 in the wells and -1 at the barrier, of height 1/4
    expected = 2 / np.pi * 2**0.5 * np.exp(-0.25 / np.array([0.1, 0.05]))
    np.testing.assert_allclose(kramers(potential, theta[1] - theta[0], [0.1, 0.05]), expected, rtol=1e-4)
