"""The density's flow on a grid: mass, energy, the exact Gaussian case, and the linearised rates."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning.mean_field_langevin.fokker_planck import GridFlow, kullback

X, Y = np.linspace(-2, 2, 6), np.array([-0.5, 0.2, -0.1, 0.4, 0.1, 0.6])


def flow(features, y=Y, lam=(0.1, 0.3), decay=0.2, cells=401):
    theta = np.linspace(-8, 8, cells)
    return GridFlow(theta, features(np.outer(theta, X)), y, np.array(lam), decay)


@pytest.fixture(scope="module")
def tanh():
    return flow(np.tanh)


def test_mass_is_kept_and_the_objective_falls(tanh):
    mu = tanh.normal(-2.0, 0.3)
    path = tanh.flow(mu, np.arange(1, 40) * 0.1, 0.02)
    np.testing.assert_allclose(path.sum(-1), 1, rtol=1e-12)
    assert (path >= 0).all()
    energy = np.stack([tanh.free_energy(p) for p in path])
    assert (np.diff(energy, axis=0) < 0).all() and (energy[-1] > tanh.free_energy(tanh.equilibrium())).all()


def test_the_minimiser_is_its_own_gibbs_distribution_and_does_not_move(tanh):
    end = tanh.equilibrium()
    np.testing.assert_allclose(tanh.gibbs(end), end, atol=1e-12)
    np.testing.assert_allclose(tanh.step(end, 1.0), end, atol=1e-12)


def test_the_potential_is_the_first_variation(tanh):
    mu, other = tanh.normal(-1.0, 0.5), tanh.normal(1.0, 0.2)
    entropy_free = [tanh.risk(m) + tanh.decay / 2 * m @ tanh.theta**2 for m in (mu + 1e-6 * (other - mu), mu)]
    slope = (entropy_free[0] - entropy_free[1]) / 1e-6
    np.testing.assert_allclose(slope, ((other - mu) * tanh.potential(mu)).sum(-1), rtol=1e-5)


def test_the_sandwich_holds_with_its_exact_slack(tanh):
    end, mu = tanh.equilibrium(), tanh.normal(-1.5, 0.4)
    gap = tanh.free_energy(mu) - tanh.free_energy(end)
    distance = ((tanh.outputs(mu) - tanh.outputs(end)) ** 2).mean(-1) / 2
    np.testing.assert_allclose(gap, tanh.lam * kullback(mu, end) + distance, rtol=1e-10)
    gibbs = tanh.gibbs(mu)
    above = gap + distance + tanh.lam * kullback(end, gibbs)
    np.testing.assert_allclose(tanh.lam * kullback(mu, gibbs), above, rtol=1e-10)


def test_moved_neurons_pass_through_gaussians_between_gaussians(tanh):
    mu, other = tanh.normal(-1.5, 0.4)[0], tanh.normal(1.0, 0.2)[0]
    half = tanh.normal(-0.25, ((0.4**0.5 + 0.2**0.5) / 2) ** 2)[0]
    moved = [tanh.moved_risk(mu, other, share) for share in (0.0, 0.5, 1.0)]
    np.testing.assert_allclose(moved, tanh.risk(np.stack([mu, half, other])), rtol=0.02)


def test_linear_neurons_stay_gaussian():
    linear = flow(lambda z: z, y=0.7 * X, lam=(0.3,), decay=0.5, cells=801)
    s, time, dt = float((X**2).mean()), 1.0, 0.0025
    mu = linear.flow(linear.normal(-1.0, 0.25), np.array([time]), dt)[0, 0]
    mean = mu @ linear.theta
    rest = 0.7 * s / (s + 0.5)
    assert mean == pytest.approx(rest + (-1.0 - rest) * np.exp(-(s + 0.5) * time), abs=5e-3)
    variance = mu @ (linear.theta - mean) ** 2
    assert variance == pytest.approx(0.6 + (0.25 - 0.6) * np.exp(-2 * 0.5 * time), rel=0.01)


def test_slowest_rates_of_linear_neurons():
    weak, strong = 0.1, 2.0
    for scale, expected in ((weak, 2 * (weak + 0.5)), (strong, 4 * 0.5)):
        theta = np.linspace(-8, 8, 401)
        one = GridFlow(theta, scale**0.5 * theta[:, None], np.array([0.3]), np.array([0.4]), 0.5)
        rate, mode = one.slowest(one.equilibrium())
        assert rate[0] == pytest.approx(expected, rel=2e-3), "2 (s + decay) of the mean, or 4 decay of the variance"
        assert one.slowest(one.equilibrium(), frozen=True)[0][0] == pytest.approx(2 * 0.5, rel=2e-3)
        assert abs(mode.sum()) < 1e-12 * np.abs(mode).sum() + 1e-12, "a perturbation keeps the mass"


def test_a_small_perturbation_falls_at_the_linearised_rate(tanh):
    end = tanh.equilibrium()
    rate, mode = tanh.slowest(end)
    path = tanh.flow(end + 0.02 * mode, np.array([1.0, 2.0]), 0.01)
    gap = np.stack([tanh.free_energy(p) for p in path]) - tanh.free_energy(end)
    np.testing.assert_allclose(np.log(gap[0] / gap[1]), rate, rtol=0.01)
    assert (rate > 1.2 * tanh.slowest(end, frozen=True)[0]).all(), "the loss is convex in the distribution: it helps"


def test_an_ensemble_is_its_members(tanh):
    one = flow(np.tanh, lam=(0.3,))
    np.testing.assert_allclose(tanh.step(tanh.normal(-1, 0.3), 0.1)[1:], one.step(one.normal(-1, 0.3), 0.1), rtol=1e-12)


def test_bad_input_is_one_sentence(tanh):
    with pytest.raises(ValueError, match="lam and decay must be positive"):
        flow(np.tanh, lam=(0.0,))
    with pytest.raises(RuntimeError, match="no fixed point within 3 iterations"):
        tanh.equilibrium(limit=3)
