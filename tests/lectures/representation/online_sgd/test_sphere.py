"""One neuron on the sphere: the chain against d dimensions, its drift against a step, the equation by hand."""

import numpy as np
import pytest

from flbook import hermite
from flbook.lectures.representation.online_sgd import sphere

RULES = [sphere.hermite_neuron(2, 0.3), sphere.hermite_neuron(3, 0.2), sphere.looking_ahead(hermite.he(3), 1.5, 0.4)]


@pytest.mark.parametrize("rule", RULES)
def test_the_chain_is_sgd_in_d_dimensions(rule):
    d, generator = 20, np.random.default_rng(0)
    w, beta = np.eye(d)[0] * 0.8 + np.eye(d)[1] * 0.6, np.eye(d)[1]
    m = 0.6
    for x in generator.standard_normal((100, d)):
        u, z = w @ x, beta @ x
        across = x - u * w
        p = (z - m * u) / np.sqrt(1 - m**2)
        m = rule.step(m, d, u, p, across @ across - p**2)
        w = w + rule.lr / d * rule.factor(rule.link(z), u, across @ across / d) * across
        w = w / np.linalg.norm(w)
        assert m == pytest.approx(w @ beta, abs=1e-10)


def test_drift_and_power_by_hand():
    m = np.array([0.0, 0.3, -0.6])
    two, three = sphere.hermite_neuron(2, 0.5), sphere.hermite_neuron(3, 0.5)
    np.testing.assert_allclose(two.drift(m), 2 * m * (1 - m**2), atol=1e-12)
    np.testing.assert_allclose(two.power(m), 2 + 8 * m**2, rtol=1e-12)
    np.testing.assert_allclose(three.drift(m), 3 * m**2 * (1 - m**2), atol=1e-12)
    assert sphere.hermite_neuron(1, 0.5).power(0.4) == pytest.approx(1)


def test_a_second_look_gives_a_drift_at_zero():
    drift = [sphere.looking_ahead(hermite.he(3), rho, 0.3).drift(0.0) for rho in (0.0, 1.0, 2.0, 3.0, 4.0)]
    np.testing.assert_allclose(drift, [0, 0.1246, 0.1187, 0.0888, 0.0626], atol=1e-4)


@pytest.mark.parametrize("rule", [RULES[0], RULES[2]])
def test_steps_have_the_mean_of_the_equation(rule):
    d, m, count, generator = 20_000, 0.4, 1_000_000, np.random.default_rng(1)
    after = rule.step(m, d, *generator.standard_normal((2, count)), generator.chisquare(d - 2, count))
    moves = (after - m) * d / rule.lr
    assert abs(moves.mean() - rule.rate(m)) < 5 * moves.std() / count**0.5 + 1e-3


def test_the_equation_is_logistic_for_degree_two():
    lr, times = 0.5, np.array([0.0, 1.0, 3.0])
    q = 0.04
    stop = (2 - lr) / (2 + 4 * lr)
    expected = stop / (1 + (stop / q - 1) * np.exp(-2 * (2 - lr) * times))
    found = sphere.solve(sphere.hermite_neuron(2, lr), 0.2, times)
    np.testing.assert_allclose(found**2, expected, rtol=3e-4)


def test_following_records_and_notices_escape():
    rule = sphere.hermite_neuron(1, 0.5)
    path, reached = sphere.follow(rule, 0.1, 50, (0, 1, 2), np.array([0, 100, 3000]))
    assert path.shape == (3, 3) and (path[:, 0] == 0.1).all() and (path[:, 2] > 0.5).all()
    assert (reached > 20).all() and (reached < 3000).all()
    again, _ = sphere.follow(rule, 0.1, 50, (2,), np.array([100]))
    assert again[0, 0] == path[2, 1]  # neither the other seeds nor the length of the run matter
    _, never = sphere.follow(rule, 0.1, 50, (0,), np.array([10]), level=0.99)
    assert np.isnan(never).all()
