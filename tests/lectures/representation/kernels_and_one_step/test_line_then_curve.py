"""The risk of a cubic along the direction of linear regression: a limit, and a simulation."""

import numpy as np
import pytest

from flbook import hermite
from flbook.lectures.representation.kernels_and_one_step.line_then_curve import predicted_risk


def test_many_samples_leave_what_no_cubic_has():
    c = hermite.coefficients(np.tanh, 3)
    rest = hermite.mean(lambda z: np.tanh(z) ** 2) - c[1] ** 2 - c[3] ** 2
    assert predicted_risk(10**9, 20, np.tanh, 0.1) == pytest.approx(rest, rel=1e-5)


def test_it_is_the_risk_of_a_simulation():
    n, d, rng, found = 1000, 40, np.random.default_rng(0), []
    for _ in range(100):
        x = rng.standard_normal((3 * n, d))
        y = np.tanh(x[:, 0]) + 0.1 * rng.standard_normal(3 * n)
        w = np.linalg.lstsq(x[:n], y[:n], rcond=None)[0]
        along = x @ (w / np.linalg.norm(w))
        powers = np.stack([along, along**3], -1)
        curve = np.linalg.lstsq(powers[n : 2 * n], y[n : 2 * n], rcond=None)[0]
        found.append(np.mean((powers[2 * n :] @ curve - np.tanh(x[2 * n :, 0])) ** 2))
    assert np.mean(found) == pytest.approx(predicted_risk(n, d, np.tanh, 0.1), rel=0.15)
