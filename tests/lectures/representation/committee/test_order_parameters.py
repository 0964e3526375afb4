"""The committee: averages against simulation, one step against d dimensions, the equations against known plateaus."""

import numpy as np
import pytest
from scipy.special import erf

from flbook.dynamics.equations import integrate
from flbook.lectures.representation.committee import order_parameters as op
from flbook.lectures.representation.committee.order_parameters import Committee

START = {"Q": np.array([[0.25, 0.02], [0.02, 0.20]]), "R": np.diag([0.05, 0.04])}


@pytest.fixture(scope="module")
def drawn():
    """A covariance of four fields, and a million of them: g and its slope."""
    generator = np.random.default_rng(0)
    half = generator.standard_normal((4, 4)) / 2
    C = half @ half.T
    u = generator.standard_normal((1_000_000, 4)) @ np.linalg.cholesky(C).T
    return C, u, erf(u / 2**0.5), np.sqrt(2 / np.pi) * np.exp(-(u**2) / 2)


def close(found: np.ndarray, samples: np.ndarray) -> None:
    """An average over samples, up to five standard errors."""
    assert np.abs(found - samples.mean(0)).max() < 5 * samples.std(0).max() / len(samples) ** 0.5


def test_averages_of_two_fields(drawn):
    C, _, g, slope = drawn
    close(op.two_point(C), np.einsum("np,nq->npq", g, g))
    close(op.slope_pair(C), np.einsum("np,nq->npq", slope, slope))


def test_averages_of_three_and_four_fields(drawn):
    C, u, g, slope = drawn
    three, four = op.three_point(C, 2), op.four_point(C, 2)
    assert three.shape == (2, 4, 4) and four.shape == (2, 2, 4, 4)
    for i, j, k in ((0, 1, 2), (1, 3, 0), (0, 0, 3), (1, 2, 2)):
        close(three[i, j, k], slope[:, i] * u[:, j] * g[:, k])
    for i, j, k, m in ((0, 1, 2, 3), (0, 0, 1, 2), (1, 1, 1, 0), (1, 0, 3, 3)):
        close(four[i, j, k, m], slope[:, i] * slope[:, j] * g[:, k] * g[:, m])


def test_updates_are_sgd_in_d_dimensions():
    d, rule, generator = 30, Committee(lr=0.5, noise=0.3), np.random.default_rng(1)
    teacher = np.sqrt(d) * np.eye(d)[:2]
    w = generator.standard_normal((2, d)) / 2
    state = {"Q": w @ w.T / d, "R": w @ teacher.T / d}
    for _ in range(50):
        x, label = generator.standard_normal(d), generator.standard_normal()
        fields = np.concatenate([w, teacher]) @ x / d**0.5
        state = rule.update(state, fields, x @ x / d, d, label)
        g = erf(fields / 2**0.5)
        error = g[:2].sum() - g[2:].sum() - 0.3 * label
        w = w - 0.5 / d**0.5 * (np.sqrt(2 / np.pi) * np.exp(-(fields[:2] ** 2) / 2) * error)[:, None] * x
    np.testing.assert_allclose(state["Q"], w @ w.T / d, rtol=1e-10)
    np.testing.assert_allclose(state["R"], w @ teacher.T / d, rtol=1e-10)


def test_drawn_steps_have_the_mean_of_the_equations():
    rule, d, count = Committee(lr=0.8, noise=0.5), 200, 400_000
    generator = np.random.default_rng(2)
    many = {name: np.broadcast_to(value, (count, 2, 2)) for name, value in START.items()}
    after = rule.step(many, d, generator.standard_normal((count, 4)), generator.chisquare(d - 4, count),
                      generator.standard_normal(count))  # fmt: skip
    rate = rule.rate(START)
    for name in "QR":
        close(rate[name], (after[name] - START[name]) * d)


def test_an_ensemble_is_the_loop_over_it():
    rule = Committee()
    other = {"Q": np.eye(2), "R": np.full((2, 2), 0.1)}
    both = {name: np.stack([START[name], other[name]]) for name in START}
    for k, one in enumerate((START, other)):
        np.testing.assert_allclose(rule.risk(both)[k], rule.risk(one))
        for name in "QR":
            np.testing.assert_allclose(rule.rate(both)[name][k], rule.rate(one)[name])


def test_the_risk_along_a_known_run():
    rule = Committee()
    path = integrate(rule.rate, START, np.array([0.0, 20.0, 40.0, 60.0, 120.0]), 0.2)
    risk = [rule.risk({name: value[..., k] for name, value in path.items()}) for k in range(5)]
    np.testing.assert_allclose(risk, [0.42455, 0.01488, 0.01447, 0.01361, 0.00477], atol=1e-5)


def test_a_student_that_is_right_stays():
    still = Committee().rate({"Q": np.eye(2), "R": np.eye(2)})
    np.testing.assert_allclose(still["Q"], 0, atol=1e-15)
    np.testing.assert_allclose(still["R"], 0, atol=1e-15)


def test_the_saddle_of_small_steps():
    # R = 1/√(M(2M - 1)), Q = 1/(2M - 1), risk (M/π)(π/6 - M arcsin(1/2M)) at M = 2
    at = op.symmetric(1 / 3, 1 / 3, 6**-0.5)
    assert Committee(lr=1e-9).risk(at) == pytest.approx(2 / np.pi * (np.pi / 6 - 2 * np.arcsin(0.25)), rel=1e-12)
    moved = Committee(lr=1e-9).rate(at)
    assert max(np.abs(value).max() for value in moved.values()) < 1e-17
