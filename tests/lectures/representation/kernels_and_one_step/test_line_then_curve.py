"""The risk of a curve along the direction of linear regression: a limit, and a simulation."""

import numpy as np
import pytest
from scipy.special import erf

from flbook.lectures.representation.kernels_and_one_step.line_then_curve import predicted_risk


def test_many_samples_leave_nothing():
    assert predicted_risk(10**9, 20, 0.1) == pytest.approx(0, abs=1e-7)


def test_it_is_the_risk_of_a_simulation():
    n, d, rng, found = 1000, 40, np.random.default_rng(0), []
    for _ in range(100):
        x = rng.standard_normal((3 * n, d))
        y = erf(x[:, 0]) + 0.1 * rng.standard_normal(3 * n)
        w = np.linalg.lstsq(x[:n], y[:n], rcond=None)[0]
        curves = erf(np.multiply.outer(x @ (w / np.linalg.norm(w)), [0.5, 1.0, 2.0]))
        b = np.linalg.lstsq(curves[n : 2 * n], y[n : 2 * n], rcond=None)[0]
        found.append(np.mean((curves[2 * n :] @ b - erf(x[2 * n :, 0])) ** 2))
    assert np.mean(found) == pytest.approx(predicted_risk(n, d, 0.1), rel=0.15)
