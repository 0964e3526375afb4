"""Gates: their limits, sums by hand, and simulated averages."""

import numpy as np
import pytest

from flbook import hermite
from flbook.lectures.in_context_learning.mamba_features import gates

LINK = hermite.he(3)


def test_the_written_share_is_a_sigmoid_or_a_softplus():
    z = np.linspace(-30, 30, 7)
    np.testing.assert_allclose(gates.written(z), 1 / (1 + np.exp(-z)), rtol=1e-10)
    np.testing.assert_allclose(gates.written(z, 1e-9), np.logaddexp(0, z), rtol=1e-6)
    np.testing.assert_allclose(gates.kept(z) + gates.written(z), 1, rtol=1e-12)


def test_a_gate_without_bias_is_blind_for_odd_links():
    z, y, weight = gates.law_of(LINK)
    assert abs(weight @ (y * gates.written(4 * y) * z)) < 1e-12
    assert hermite.strength(lambda y: y * gates.written(4 * y - 6), LINK, 1) > 0.05


def test_memory_of_a_gate_that_hardly_writes_is_everything():
    assert gates.memory(0.0, -30.0, 1.0, 50, LINK) == pytest.approx(50, rel=1e-6)
    one = gates.kept(-1.0)
    assert gates.memory(0.0, -1.0, 1.0, 400, LINK) == pytest.approx((1 + one) / (1 - one), rel=1e-6)


def test_averages_have_their_overlap():
    rng, n, d = np.random.default_rng(0), 200, 20
    x = rng.standard_normal((400, n, d))
    s = np.einsum("bn,bnd->bd", np.sign(LINK(x[..., 0])), x)
    found = (s[:, 0] ** 2).mean() / (s**2).sum(-1).mean()
    assert found == pytest.approx(gates.overlap(n, d, np.sign, LINK), rel=0.05)
    assert gates.overlap(n, d, np.sign, LINK) == pytest.approx(1 / (1 + d / n / 0.195), rel=0.05)


def test_quadratic_readings_have_theirs():
    rng, n, d, link = np.random.default_rng(1), 400, 8, hermite.he(4)
    x = rng.standard_normal((300, n, d))
    t = np.exp(-link(x[..., 0]))
    matrix = np.einsum("bn,bnc,bnd->bcd", t, x, x)
    matrix -= np.trace(matrix, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    found = 1 / (1 - 1 / d) * (matrix[:, 0, 0] ** 2).mean() / (matrix**2).sum((1, 2)).mean()
    assert found == pytest.approx(gates.quadratic_overlap(n, d, lambda y: np.exp(-y), link), rel=0.05)


def test_a_mixture_is_stronger_than_its_parts_and_weaker_than_the_best():
    parts = [lambda y, t=t: gates.silu(4 * (y - t)) for t in (-3, -1, 1, 3)]
    _, strength = gates.best_mixture(parts, LINK)
    alone = [hermite.strength(part, LINK, 1) for part in parts]
    assert max(alone) < strength < hermite.best_strengths(LINK, 1)[1]


def test_the_risk_of_a_cubic_readout():
    assert gates.cubic_risk(np.ones(3)) == 0
    assert gates.cubic_risk(np.array([0.25, 0.25])) == pytest.approx(1 - 0.125**2)
