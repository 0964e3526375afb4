"""The data of the clients, and the steps of the page's proof, each against a network's own."""

from dataclasses import replace

import pytest
import torch

from flbook import fit, rng
from flbook.lectures.training_strategies.federated_learning import experiment
from flbook.lectures.training_strategies.federated_learning.clients import FederatedAveraging
from flbook.lectures.training_strategies.federated_learning.federation import (
    agreeing,
    apart,
    own_errors,
    pooled,
    strengths,
)
from flbook.models.cnn import initial_weights
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny")
K, N, RHO = 4, 4, 0.3


class HalfSlope:
    """Every loss derivative is 1/2: the logistic loss at outputs 0."""

    def __call__(self, f, y):
        return -y * f / 2

    def slope(self, f, y):
        return -y / 2


def network(rho: float = RHO, n: int = N):
    return pooled(TINY, strengths(K, rho), n, (0, 1)).to(torch.float64)


def test_signals_have_one_length_and_agree_as_said():
    gram = strengths(K, RHO) @ strengths(K, RHO).T
    torch.testing.assert_close(gram, RHO + (1 - RHO) * torch.eye(K, dtype=torch.float64))
    mean = strengths(K, RHO).mean(0)
    assert (mean @ mean).item() == pytest.approx(agreeing(K, RHO)) == pytest.approx((1 + 3 * 0.3) / 4)


def test_averages_after_every_step_are_training_on_the_pool():
    step, problem = GradientDescent(0.5), network()
    whole = fit(problem, step, 40).params["c"]
    parts = fit(apart(problem, K), FederatedAveraging(step, 1), 40).params["c"]
    torch.testing.assert_close(parts, whole[:, None].expand_as(parts), rtol=1e-9, atol=1e-14)
    rarely = fit(apart(problem, K), FederatedAveraging(step, 4), 40).params["c"][:, 0]
    assert (rarely - whole).abs().max() > 1e-6 * whole.abs().max()


def test_a_client_apart_has_its_own_samples():
    problem = network()
    own = apart(problem, K)
    f, whole = own.predict(own.start()), problem.predict(problem.start())
    torch.testing.assert_close(f.flatten(-2), whole)
    assert own.ensemble == (2, K) and (own.observed.sum(-1) == 0).all()


@pytest.mark.parametrize("rho", [0.0, RHO, 1.0])
def test_the_mean_response_and_the_noise_grow_as_the_proof_says(rho):
    problem = replace(network(rho), loss=HalfSlope())
    eye = TINY.noise_norm**2 * torch.eye(K * N, dtype=torch.float64)
    basis = problem.basis.b_b.clone()
    basis[..., problem.features :, problem.features :] = eye  # noise patches orthogonal to each other
    problem = replace(problem, basis=problem.basis._replace(b_b=basis))
    lr, signals, sign = 0.7, strengths(K, rho), problem.a.sign()[:, None]
    before, after = problem.start(), fit(problem, GradientDescent(lr), 1).params
    a, a_1 = ((problem.overlaps(p) @ signals.T) * sign for p in (before, after))
    factor = 3 * lr / (4 * TINY.m) * TINY.mu**2 * agreeing(K, rho)
    grown = (a_1 - a).mean(-1)
    torch.testing.assert_close(grown, factor * a.square().mean(-1), rtol=1e-6, atol=0)  # from float32
    assert (grown >= factor * a.mean(-1).square() * (1 - 1e-6)).all()
    u, u_1 = (problem.preactivations(p)[..., problem.features :] for p in (before, after))
    own = (sign * problem.observed[None] > 0) & (u > 0)
    expected = 3 * lr / (2 * K * N * TINY.m) * TINY.noise_norm**2 * u.square()
    torch.testing.assert_close((u_1 - u)[own], expected[own], rtol=1e-6, atol=0)


def test_errors_are_those_of_fresh_samples_and_weights():
    signals, seed, weak = strengths(K, 0.5), (0, 1), replace(TINY, mu=2.5)
    problem = pooled(weak, signals, N, seed).to(torch.float64)
    params = fit(problem, GradientDescent(0.5), 40).params
    errors = own_errors(problem, params, signals, 4096)
    features, d = signals.shape[1], TINY.d
    xi = TINY.sigma_xi * rng.normal((K * N, d), seed, "noise")
    xi[..., :features] = 0
    mu = weak.mu * torch.eye(features, d, dtype=torch.float64)
    vectors = torch.cat([mu.expand(2, -1, -1), xi], 1)
    w = initial_weights(d, 2 * TINY.m, TINY.sigma_0, seed) + params["c"] @ vectors
    fresh = TINY.sigma_xi * rng.normal((4000, d), 7, "fresh")
    fresh[:, :features] = 0

    def outputs(x):
        return torch.einsum("k,ek...->e...", problem.a, problem.activation(w @ x.T))

    noise = outputs(fresh)[:, None, :]
    plus, minus = (outputs(sign * signals @ mu)[..., None] + noise for sign in (1, -1))
    direct = ((plus <= 0).double().mean(-1) + (minus >= 0).double().mean(-1)) / 2
    assert (0.05 < direct).all() and (direct < 0.4).all()
    torch.testing.assert_close(errors, direct, rtol=0, atol=0.03)
