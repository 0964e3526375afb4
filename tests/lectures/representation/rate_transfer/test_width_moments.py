"""The closed recursion of a linear network of two layers: against its weights, and its closed forms."""

import numpy as np
import pytest

from flbook.lectures.representation.rate_transfer import width_moments

TARGET = np.array([1.2, -0.5, 0.0, 0.3])


@pytest.mark.parametrize("name", width_moments.NAMES)
def test_it_is_training_in_weights(name):
    width = 24
    U, v = width_moments.weights(width, 4, seed=1)
    scale, state = width_moments.scale(name, width), width_moments.moments(U, v)
    g, g_v = scale.rates(0.01 if name == "standard" else 0.2)
    for _ in range(20):
        e = width_moments.error(state, TARGET, scale.gamma)
        direct = TARGET - U.T @ v / (scale.gamma * width)
        np.testing.assert_allclose(e, direct, atol=1e-12)
        state = width_moments.step(state, e, g, g_v)
        U, v = U + g * np.outer(v, direct), v + g_v * U @ direct
    for found, expected in zip(state, width_moments.moments(U, v), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(e) < 0.3 * np.linalg.norm(TARGET)  # it has trained


def test_the_standard_parametrisation_is_one_rate_for_all_weights():
    width, eta = 20, 0.01
    U, v = width_moments.weights(width, 4, seed=2)
    scale, state, out = width_moments.scale("standard", width), width_moments.moments(U, v), v / width**0.5
    g, g_v = scale.rates(eta)
    for _ in range(5):
        state = width_moments.step(state, width_moments.error(state, TARGET, scale.gamma), g, g_v)
        e = TARGET - U.T @ out  # f = out . U x
        U, out = U + eta * np.outer(out, e), out + eta * U @ e
    np.testing.assert_allclose(state.q / scale.gamma, U.T @ out, rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0])
def test_the_kernel_grows_as_the_closed_form_says(gamma):
    state = width_moments.start(12, 4, (0,), "orthogonal")
    state = width_moments.WidthMoments(*(part[0] for part in state))
    for _ in range(8000):
        e = width_moments.error(state, TARGET, gamma)
        state = width_moments.step(state, e, 0.001 * gamma, 0.001 * gamma)
    expected = 2 * np.sqrt(1 + gamma**2 * TARGET @ TARGET)
    assert width_moments.along(state, TARGET) == pytest.approx(expected, rel=1e-3)


def test_the_best_single_step_is_best():
    state = width_moments.start(40, 4, (5,))
    for ratio in (1.0, 40.0):
        best = width_moments.best_single_step(state, TARGET, ratio)
        risks = []
        for factor in (0.98, 1.0, 1.02):
            g = factor * best * 0.3  # gamma = 0.3
            after = width_moments.step(state, width_moments.error(state, TARGET, 0.3), g, g * ratio)
            risks.append(np.linalg.norm(width_moments.error(after, TARGET, 0.3)))
        assert risks[1] < min(risks[0], risks[2])


def test_a_start_has_the_law_of_weights():
    state, seeds = width_moments.start(64, 3, tuple(range(2000))), 2000
    assert (state.q == 0).all()
    # 32 independent neurons: var s = 2/32, var M_11 = 2/32, var M_12 = 1/32
    for values, mean, variance in ((state.s, 1, 2 / 32), (state.M[:, 0, 0], 1, 2 / 32), (state.M[:, 1, 0], 0, 1 / 32)):
        assert abs(values.mean() - mean) < 4.5 * (variance / seeds) ** 0.5
        assert abs(values.var() / variance - 1) < 0.2
    orthogonal = width_moments.start(64, 3, (0, 1), "orthogonal")
    np.testing.assert_array_equal(orthogonal.M, np.repeat(np.eye(3)[None], 2, 0))


def test_what_it_refuses():
    with pytest.raises(ValueError, match="width must be even and at least 2 \\(d \\+ 1\\) = 12; got 10"):
        width_moments.start(10, 5, (0,))
    with pytest.raises(ValueError, match="parametrisation must be among standard, tangent, maximal; got 'mup'"):
        width_moments.scale("mup", 8)
