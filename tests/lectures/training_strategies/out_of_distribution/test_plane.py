"""The plane of two features: its closed forms, and a network of mirrored filters that stays in it."""

import math

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.training_strategies.out_of_distribution.environment_training import features, training
from flbook.lectures.training_strategies.out_of_distribution.penalties import InvariantRisk, RiskVariance
from flbook.lectures.training_strategies.out_of_distribution.plane import Plane
from flbook.lectures.training_strategies.shared.environments import Environments


def objective(plane: Plane, w: np.ndarray) -> float:
    """Mean risk and penalty."""
    risks = plane.risks(w)
    excess = np.mean(plane.scale_slopes(w) ** 2) if plane.penalty == "IRMv1" else np.var(risks)
    return float(np.mean(risks) + plane.weight * excess)


@pytest.mark.parametrize("penalty", ["IRMv1", "VREx"])
def test_the_gradient_is_that_of_the_objective(penalty):
    plane, w = Plane(0.2, (0.1, 0.3), penalty, 40.0), np.array([0.4, 0.9])
    steps = 1e-6 * np.eye(2)
    numeric = [(objective(plane, w + e) - objective(plane, w - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(plane.gradient(w), numeric, rtol=1e-6)


@pytest.mark.parametrize("loss, penalty", [(InvariantRisk(20.0), "IRMv1"), (RiskVariance(20.0), "VREx")])
def test_a_mirrored_network_takes_the_steps_of_the_plane(loss, penalty):
    data, m, lr = Environments(n=160, d=3, sigma_xi=0.0), 3, 0.2
    problem = training(data, (0,), loss, m=m).to(torch.float64)
    w = torch.randn(1, 2, m, 3, generator=torch.Generator().manual_seed(1)).double()
    w[:, 1] = -w[:, 0]
    plane = Plane(data.alpha, data.betas, penalty, 20.0)
    params, place = {"w": w}, features(problem, {"w": w})[0].numpy()
    for _ in range(20):
        params, _ = GradientDescent(lr).step(problem, params, None)
        place = place - lr / (2 * m) * plane.gradient(place)
        np.testing.assert_allclose(features(problem, params)[0], place, rtol=1e-9)
    torch.testing.assert_close(params["w"][:, 1], -params["w"][:, 0])


def test_the_first_step_has_the_ratio_of_the_correlations_wherever_a_filter_starts():
    data = Environments(n=160, d=2, sigma_xi=0.0)
    problem = training(data, (0, 1, 2), m=8, sigma_0=1e-6).to(torch.float64)
    pull = problem.gradient(problem.start())["w"]
    torch.testing.assert_close(pull[..., 0] / pull[..., 1], torch.full((3, 2, 8), 5 / 7).double(), rtol=1e-4, atol=0)
    assert (pull[:, 0] < 0).all() and (pull[:, 1] > 0).all()


def test_the_standstill_is_that_of_the_page():
    far, near = (Plane(weight=weight).end(np.zeros(2), 8000 / weight) * weight * 0.5 for weight in (1e3, 1e4))
    assert near == pytest.approx([1, 0], abs=0.02) and far == pytest.approx([1, 0], abs=0.12)
    early = Plane(weight=1e5).flow(np.zeros(2), np.array([1.5e-4]))[0] * 1e5 * 0.5
    assert early == pytest.approx([0.25 / 0.75, 0.35 / 0.75], abs=0.03)
    free = Plane(penalty="VREx", weight=1e4).end(np.zeros(2), 100.0)
    assert free == pytest.approx([math.log(3), 0], abs=0.02)


def test_ends_and_borders():
    assert np.abs(Plane().gradient(Plane().erm())).max() < 1e-12
    only = np.array([0.0, math.log(0.85 / 0.15)])
    plane = Plane(weight=1000.0)
    assert plane.end(only)[0] > 1 and plane.end(0.2 * only)[0] < 0.01
    time, place = plane.least_head_start()
    assert time == pytest.approx(2.41, abs=0.02) and place[0] == pytest.approx(0.403, abs=0.004)
    a, step = Plane().ridge(), 1e-5
    one = Plane(betas=(0.5, 0.5))  # the spurious feature is noise
    c = [one.scale_slopes(np.array([a + k * step, 0.0]))[0] for k in (-1, 0, 1)]
    assert a == pytest.approx(0.5229, abs=1e-3) and c[1] < min(c[0], c[2]) < 0


def test_a_network_under_the_penalty_stops_where_the_plane_does():
    data, m = Environments(n=80, d=4, sigma_xi=0.01), 2
    problem = training(data, (0, 1), InvariantRisk(100.0), m=m, sigma_0=1e-5)
    params = fit(problem, GradientDescent(2 * m * 0.05), 300).params
    expected = Plane(weight=100.0).flow(np.zeros(2), np.array([15.0]))[0]
    np.testing.assert_allclose(features(problem, params), [expected] * 2, atol=0.003)
