"""The signal's lead where noise patches are orthogonal: the steps of the page's proof, each against a network's own."""

from dataclasses import replace

import pytest
import torch

from flbook import fit
from flbook.lectures.training_strategies import label_noise_gd
from flbook.lectures.training_strategies.label_noise_gd import RULES, Setting
from flbook.lectures.training_strategies.label_noise_gd.balance import mean_force
from flbook.lectures.training_strategies.label_noise_gd.lead import Followed
from flbook.training.optimizers import GradientDescent, LabelNoise, LabelSmoothing

TINY = label_noise_gd.experiment.setting("tiny", seed=(0, 1))


def orthogonal(setting: Setting):
    """The problem of a setting with noise patches that are exactly orthogonal and of one length, in float64."""
    problem = label_noise_gd.problem(setting).to(torch.float64)
    square = setting.noise_square * torch.eye(setting.n, dtype=torch.float64)
    return replace(problem, gram=problem.gram._replace(xi_xi=square.expand_as(problem.gram.xi_xi)))


def forces(problem, params, name: str, p: float, flips) -> torch.Tensor:
    rest = {"gradient descent": 1.0, "label smoothing": 1 - p, "label noise": (flips > 0).double()}[name]
    return rest - torch.sigmoid(problem.predict(params) * problem.y)


@pytest.mark.parametrize("name", RULES)
def test_a_step_multiplies_every_response_by_what_the_proof_says(name):
    problem, lr, p = orthogonal(TINY), 0.5, TINY.flip_prob
    rule = label_noise_gd.rule(TINY, name, lr)
    params = fit(problem, rule, 20).params
    flips = torch.ones_like(problem.predict(params))
    if name == "label noise":
        n, _ = problem.sample_indices()
        flips = 1 - 2 * (rule._unit(problem.ensemble, n, 20) < p).double()
    x = forces(problem, params, name, p, flips)
    after, _ = rule.step(problem, params, (20, None))
    followed, c = Followed.of(problem), TINY.kick(lr)
    (a, u), (a_1, u_1) = followed.logs(params), followed.logs(after)
    torch.testing.assert_close(u_1 - u, torch.log1p(c * x), rtol=1e-9, atol=1e-12)
    by_sign = (x[:, None] * followed.own).sum(-1)
    torch.testing.assert_close(a_1 - a, torch.log1p(c * TINY.snr**2 * by_sign), rtol=1e-9, atol=1e-12)
    increment = followed.lead(after) - followed.lead(params)
    expected = torch.log1p(c * TINY.snr**2 * by_sign) - TINY.snr**2 * (
        torch.log1p(c * x)[:, None] * followed.own).sum(-1)
    torch.testing.assert_close(increment, expected, rtol=1e-7, atol=1e-12)


def test_at_rest_label_noise_adds_the_drift_on_average_and_smoothing_nothing():
    lr, setting = 0.05, TINY
    problem, p = orthogonal(setting), setting.flip_prob
    rest = fit(problem, LabelSmoothing(0.6, p), 800).params
    followed = Followed.of(problem)
    before = followed.lead(rest)
    still, _ = LabelSmoothing(lr, p).step(problem, rest, None)
    assert (followed.lead(still) - before).abs().max() < 1e-12
    noise = LabelNoise(lr, p, seed=setting.seed)
    gains = torch.stack([followed.lead(noise.step(problem, rest, (t, None))[0]) - before for t in range(1000)])
    assert gains.mean().item() == pytest.approx(setting.drift(lr), rel=0.05)
    c, snr2, n = setting.kick(lr), setting.snr**2, setting.n
    assert gains.max() <= c**2 * snr2 * n / 4 + n * snr2 * c**3


def test_under_gradient_descent_the_lead_keeps_the_proofs_bound():
    setting = replace(TINY, n=20, mu=1.5)
    assert setting.n * setting.snr**2 <= 2
    problem = orthogonal(setting)
    followed = Followed.of(problem)
    for lr in (0.2, 0.5):
        c = setting.kick(lr)
        assert c <= 0.5
        params = fit(problem, GradientDescent(lr), 400).params
        lead = followed.lead(params)
        grown = followed.logs(params)[0] - followed.logs(problem.start())[0]
        tied = grown - lead
        assert (tied > 0.5).all() and (lead <= c * (1 + c) / 2 * tied).all()
        assert (lead.abs() < 0.1 * grown).all()


def test_the_drift_is_the_formula_of_the_page():
    s, rates, lr = label_noise_gd.experiment.setting(), label_noise_gd.experiment.setting("rates"), 0.7
    p, square = s.flip_prob, s.sigma_xi**2 * s.d
    g = lr**2 * s.mu**2 * square * p * (1 - p) / (s.n * s.m**2) * (1 - s.mu**2 / square)
    assert s.drift(lr) == pytest.approx(g) and s.drift(2 * lr) == pytest.approx(4 * g)
    assert rates.kick(0.25) == pytest.approx(0.25)
    assert rates.n * rates.snr**2 == pytest.approx(s.n * s.snr**2) == pytest.approx(1.6)


def test_the_chain_has_the_mean_force_of_a_network_that_has_only_noise():
    setting = replace(TINY, n=40, mu=1e-3, seed=(0, 1, 2))
    problem, p = orthogonal(setting), 0.1
    lr = 0.6 / setting.kick(1.0)
    rule = LabelNoise(lr, p, seed=setting.seed)
    params, total, steps = fit(problem, rule, 150).params, 0.0, 1000
    state = (150, None)
    for _ in range(steps):
        total += (1 - p - torch.sigmoid(problem.predict(params) * problem.y)).mean().item()
        params, state = rule.step(problem, params, state)
    chain = mean_force(0.6, p)
    assert total / steps == pytest.approx(chain, rel=0.035)
    assert chain > 1.25 * 0.6 * p * (1 - p) / 2  # second order alone does not pass


def test_the_chain_is_of_second_order_at_small_steps():
    assert mean_force(0.03, 0.3) == pytest.approx(0.03 * 0.3 * 0.7 / 2, rel=0.06)
    with pytest.raises(ValueError, match="^c "):
        mean_force(0.0, 0.1)
