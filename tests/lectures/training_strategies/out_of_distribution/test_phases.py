"""Many planes at once against one, the closed forms against the flow, and what the page says of the map."""

import numpy as np
import pytest

from flbook.lectures.training_strategies.out_of_distribution import phases
from flbook.lectures.training_strategies.out_of_distribution.plane import Plane

BETAS = np.array([[0.1, 0.2], [0.3, 0.4], [0.05, 0.35], [0.2, 0.24]])
ALONE = np.stack([np.zeros(4), phases.log_odds(BETAS.mean(1))], 1)


@pytest.mark.parametrize("penalty", ["IRMv1", "VREx"])
@pytest.mark.parametrize("weight", [10.0, 1000.0])
def test_ends_are_those_of_single_planes(penalty, weight):
    found = phases.ends(ALONE, BETAS, np.full(4, weight), 0.3, penalty, time=500.0)
    single = [Plane(0.3, tuple(b), penalty, weight).end(w, 500.0) for b, w in zip(BETAS, ALONE, strict=True)]
    np.testing.assert_allclose(found, single, atol=2e-3)


def test_gradient_and_hessian():
    rng = np.random.default_rng(0)
    w, weight = rng.normal(size=(4, 2)), np.full(4, 50.0)
    own = np.array([0.7, 0.7, 0.3, 0.3])
    shares = own * np.where(phases._SIGNS[:, 1] > 0, 1 - BETAS[..., None], BETAS[..., None])
    for penalty in ("IRMv1", "VREx"):
        planes = [Plane(0.3, tuple(b), penalty, 50.0) for b in BETAS]
        gradient, hessian = phases._bent(w, shares, weight, penalty)
        np.testing.assert_allclose(gradient, [p.gradient(x) for p, x in zip(planes, w, strict=True)], rtol=1e-10)
        numeric = [[(p.gradient(x + e) - p.gradient(x - e)) / 2e-6 for e in 1e-6 * np.eye(2)]
                   for p, x in zip(planes, w, strict=True)]
        np.testing.assert_allclose(hessian, numeric, atol=1e-6)


def test_the_environments_enter_by_their_mean_and_their_closeness():
    """J = mean risk at the mean + weight c̄² + X (c₊ - c₋)² / 4, as the page proves."""
    plane, w = Plane(0.3, (0.1, 0.4), weight=70.0), np.array([0.4, 0.9])
    mean, far = Plane(0.3, (0.25, 0.25)), Plane(0.3, (0.0, 1.0))
    plus, minus = far.scale_slopes(w)
    objective = plane.risks(w).mean() + 70 * (plane.scale_slopes(w) ** 2).mean()
    closeness = phases.closeness(np.array([[0.1, 0.4]]), np.array([70.0])).item()
    parts = mean.risks(w)[0] + 70 * mean.scale_slopes(w)[0] ** 2 + closeness * (plus - minus) ** 2 / 4
    assert objective == pytest.approx(parts)


def test_the_gradients_at_the_spurious_feature_alone():
    alpha, beta = 0.3, 0.35
    b, own, mean, spread = phases.log_odds(beta), 1 - 2 * alpha, 1 - 2 * beta, beta * (1 - beta)
    w, h = np.array([0.0, b]), 1e-6 * np.eye(2)
    at, far = Plane(alpha, (beta, beta)), Plane(alpha, (0.0, 1.0))
    slope = [(at.scale_slopes(w + e)[0] - at.scale_slopes(w - e)[0]) / 2e-6 for e in h]
    np.testing.assert_allclose(slope, [-spread * own * (2 - mean * b), spread * b], atol=1e-8)
    apart = [-np.diff(far.scale_slopes(w + e) - far.scale_slopes(w - e)).item() / 2e-6 for e in h]
    np.testing.assert_allclose(apart, [own * (mean + 2 * spread * b), -1], atol=1e-8)
    assert -np.diff(far.scale_slopes(w)).item() == pytest.approx(-b)
    np.testing.assert_allclose(at.gradient(w), [-2 * spread * own, 0], atol=1e-12)


def test_borders():
    assert phases.log_odds(0.21781) == pytest.approx(1.278, abs=1e-3)
    assert np.isinf(phases.completed_below(0.2177)) and phases.completed_below(0.2179) > 100
    assert phases.stands_above(0.15) == pytest.approx(0.99)
    means = np.array([0.225, 0.25, 0.3])
    found = phases.border(np.stack([means - 0.01, means + 0.01], 1))
    np.testing.assert_allclose(found / phases.completed_below(means), 1, atol=0.02)


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.45])
def test_what_the_page_says_of_the_map(alpha):
    kept = phases.phases((100.0, 1e4), 0.06, alpha) > 0.5
    assert kept.sel(penalty="VREx").all() and kept.sel(penalty="IRMv1", start="after risk").all()
    if alpha == 0.25:
        alone = kept.sel(penalty="IRMv1", start="after spurious", weight=1e4)
        assert 0 < alone.mean() < 1 and kept.sel(penalty="IRMv1", start="after spurious, 1/2 invariant").all()
        assert not kept.sel(penalty="IRMv1", start="from zero", weight=1e4).any()
    lost = phases.ends(ALONE, BETAS, np.full(4, 1000.0))[:, 0] < 0.5
    assert lost.tolist() == [False, True, True, False]
