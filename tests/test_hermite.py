"""Hermite expansions: polynomials by hand, exact moments, conditional means against simulation, every sentence."""

import math

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.hermite import Series, he


def test_polynomials_by_hand():
    z = np.array([-1.5, 0.0, 2.0])
    np.testing.assert_allclose(hermite.polynomial(0, z), 1)
    np.testing.assert_allclose(hermite.polynomial(3, z), (z**3 - 3 * z) / math.sqrt(6))
    np.testing.assert_allclose(hermite.polynomial(4, z), (z**4 - 6 * z**2 + 3) / math.sqrt(24))
    assert hermite.polynomial(2, 2.0) == pytest.approx(3 / math.sqrt(2))


def test_tensors_stay_tensors():
    z = torch.tensor([0.5, -2.0], dtype=torch.float64)
    for found in (hermite.polynomial(3, z), he(3)(z), hermite.polynomial(0, z)):
        assert isinstance(found, torch.Tensor) and found.shape == z.shape


def test_polynomials_are_orthonormal():
    z, weight = hermite.nodes()
    values = np.stack([hermite.polynomial(k, z) for k in range(9)])
    np.testing.assert_allclose((values * weight) @ values.T, np.eye(9), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_moments_of_section_6b(k):
    assert hermite.coefficients(he(k).power(2), 2)[2] == pytest.approx(k * math.sqrt(2), rel=1e-12)
    assert he(k).power(2).coefficients[0] == pytest.approx(1, rel=1e-12)


def test_third_power_of_the_third():
    cube = he(3).power(3)
    assert hermite.coefficients(cube, 1)[1] == pytest.approx(9 * math.sqrt(6), rel=1e-12)
    by_rule = hermite.coefficients(lambda z: he(3)(z) ** 3, 9)
    np.testing.assert_allclose(by_rule, cube.coefficients, atol=1e-8)
    assert cube.mean_square == pytest.approx(hermite.mean(lambda z: he(3)(z) ** 6), rel=1e-10)


def test_products_and_derivatives_of_series():
    f, g, z = Series((0.5, -1.0, 0.0, 2.0)), Series((0.0, 1.0, 3.0)), np.linspace(-2, 2, 7)
    np.testing.assert_allclose((f * g)(z), f(z) * g(z), rtol=1e-12)
    np.testing.assert_allclose(f.derivative()(z), (f(z + 1e-6) - f(z - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-6)
    assert he(0).derivative()(z).tolist() == [0.0] * 7


def test_coefficients_of_a_bent_link():
    t = 0.7
    found = hermite.coefficients(lambda z: np.maximum(z - t, 0), 5, (t,))
    density = math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    expected = [density * hermite.polynomial(k - 2, t) / math.sqrt(k * (k - 1)) for k in range(2, 6)]
    np.testing.assert_allclose(found[2:], expected, rtol=1e-12)


def test_exponents():
    assert [hermite.information_exponent(he(k)) for k in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert [hermite.generative_exponent(he(k)) for k in (1, 2, 3, 4)] == [1, 2, 1, 2]
    assert hermite.information_exponent(Series((0, 0, 0, 1, 1))) == 3
    assert hermite.information_exponent(np.cos) == 2
    assert hermite.generative_exponent(lambda z: z**2 * np.exp(-(z**2))) == 4


def test_preimages_and_breaks():
    assert hermite.turning_points(he(3)) == pytest.approx([-1, 1])
    z = hermite.preimages(he(3), np.array([0.0, 5.0]))
    np.testing.assert_allclose(z[:, 0], [-math.sqrt(3), 0, math.sqrt(3)], atol=1e-12)
    assert np.isnan(z[:2, 1]).all() and he(3)(z[2, 1]) == pytest.approx(5)
    assert sorted(np.unique(hermite.breakpoints(he(3)).round(6))) == pytest.approx([-2, -1, 1, 2])


def test_the_best_gate_is_the_conditional_mean():
    z = np.random.default_rng(3).standard_normal(2_000_000)
    y = he(3)(z)
    for label in (-1.5, 0.3, 0.7, 2.0):
        near = np.abs(y - label) < 0.01
        spread = z[near].std() / math.sqrt(near.sum())
        assert abs(z[near].mean() - hermite.best_gate(he(3), 1)(np.array(label))) < 5 * spread + 0.01


def test_no_gate_is_stronger_than_the_best():
    best = hermite.best_strengths(he(3), 2)
    assert hermite.strength(hermite.best_gate(he(3), 1), he(3), 1) == pytest.approx(best[1], rel=1e-9)
    assert best[0] == pytest.approx(1, rel=1e-9)
    for gate, jumps in ((lambda y: y**3, ()), (np.sign, (0.0,)), (np.tanh, ())):
        assert hermite.strength(gate, he(3), 1, jumps) < best[1]


def test_strengths_of_the_review():
    turn = 2 / math.sqrt(6)
    small = hermite.strength(lambda y: y * (np.abs(y) < turn), he(3), 1, (-turn, turn))
    cube, sign = hermite.strength(lambda y: y**3, he(3), 1), hermite.strength(np.sign, he(3), 1, (0.0,))
    assert [cube, sign, small] == pytest.approx([0.009, 0.195, 0.406], abs=5e-4)


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: he(-1), "k must be a whole number of at least 0; got -1"),
    (lambda: hermite.polynomial(-2, 0.0), "k must be a whole number of at least 0; got -2"),
    (lambda: hermite.information_exponent(he(5), degree=4), "information exponent is above degree = 4"),
    (lambda: hermite.generative_exponent(lambda z: z**2 * np.exp(-(z**2)), degree=3), "generative exponent is above"),
])  # fmt: skip
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
