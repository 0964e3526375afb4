"""Mean-field particles: the closed gradient against autograd, invariances, what is conserved, what each rule does."""

import pytest
import torch

from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population
from flbook.lectures.in_context_learning.shared.modified_flow import Modified, birth_death, descend, gaussian_process


def problem(m=12, k=3, q=3, d=4, n=40, seeds=(0, 1)):
    x = torch.randn(len(seeds), n, d, dtype=torch.float64)
    teacher = mean_field.draw(8, q, d, seeds, "teacher", 2.0).whitened(x)
    return mean_field.draw(m, k, d, seeds), Population(x, teacher.features(x))


def first_variation(particles, population, at):
    """Of L at mu, at any neurons: -a^T G^T E zeta sigma(<w, x>); its mean over mu itself is 0."""
    fit = mean_field.regress(particles.features(population.x), population.f)
    field = torch.einsum("...qk,...nq->...nk", fit.gain, fit.residual)
    return -torch.einsum("...pk,...kp->...p", at.a, mean_field.second_moment(field, at.neurons(population.x)))


def attention_loss(particles, gamma, population):
    """L(mu, Gamma) = E|f - E[f h^T] Gamma h|^2 / 2."""
    h = particles.features(population.x)
    output = torch.einsum("...qk,...kl,...nl->...nq", mean_field.second_moment(population.f, h), gamma, h)
    return (population.f - output).square().sum(-1).mean(-1) / 2


def test_teacher_is_white_and_a_covariance_can_be_asked_for():
    _, (x, f) = problem()
    torch.testing.assert_close(mean_field.second_moment(f, f), torch.eye(3).double().expand(2, 3, 3) / 3)
    wanted = torch.diag(torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64))
    h = mean_field.draw(8, 3, 4, (0, 1)).whitened(x, wanted).features(x)
    torch.testing.assert_close(mean_field.second_moment(h, h), wanted.expand(2, 3, 3))


@pytest.mark.parametrize("q", [3, 5])
def test_velocity_is_minus_m_times_the_gradient(q):
    particles, population = problem(q=q)
    leaves = Particles(*(part.clone().requires_grad_() for part in particles))
    value = mean_field.loss(leaves, population)
    grads = torch.autograd.grad(value.sum(), leaves)
    move, same = mean_field.velocity(particles, population)
    torch.testing.assert_close(same, value.detach())
    for velocity, grad in zip(move, grads, strict=True):
        torch.testing.assert_close(velocity, -12 * grad, rtol=1e-9, atol=1e-12)
    at = Particles(*(part.clone().requires_grad_() for part in particles))
    slopes = torch.autograd.grad(first_variation(particles, population, at).sum(), at)
    for velocity, slope in zip(move, slopes, strict=True):
        torch.testing.assert_close(velocity, -slope, rtol=1e-9, atol=1e-12)


def test_first_variation_is_the_derivative_towards_a_measure_and_has_mean_zero():
    particles, population = problem()
    other = mean_field.draw(12, 3, 4, (5, 6))
    assert first_variation(particles, population, particles).mean(-1).abs().max() < 1e-14

    def mixture(s):  # (1-s) mu + s nu, by weights on the second layer
        return Particles(torch.cat([2 * (1 - s) * particles.a, 2 * s * other.a], -2),
                         torch.cat([particles.w, other.w], -2))

    slope = (mean_field.loss(mixture(1e-5), population) - mean_field.loss(mixture(-1e-5), population)) / 2e-5
    expected = first_variation(particles, population, other).mean(-1)
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=0)


def attention_velocity(particles, gamma, population):
    """Minus the gradients of L(mu, Gamma) in the particles (times m) and in Gamma, and the loss."""
    neurons, h = particles.neurons(population.x), particles.features(population.x)
    field, turn, value = mean_field._attention_fields(h, population.f, gamma)
    return mean_field.pushed(particles, population.x, neurons, field), turn, value


def test_attention_velocity_is_the_gradient_and_best_attention_gives_the_static_one():
    particles, population = problem()
    gamma = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    leaves = Particles(*(part.clone().requires_grad_() for part in particles))
    value = attention_loss(leaves, gamma, population)
    *grads, turn_grad = torch.autograd.grad(value.sum(), [*leaves, gamma])
    move, turn, same = attention_velocity(particles, gamma.detach(), population)
    torch.testing.assert_close(same, value.detach())
    torch.testing.assert_close(turn, -turn_grad)
    for velocity, grad in zip(move, grads, strict=True):
        torch.testing.assert_close(velocity, -12 * grad, rtol=1e-9, atol=1e-12)
    best = mean_field.best_attention(particles, population)
    static, value = mean_field.velocity(particles, population)
    move, turn, joint = attention_velocity(particles, best, population)
    torch.testing.assert_close(joint, value)
    assert turn.abs().max() < 1e-12
    torch.testing.assert_close(move.w, static.w, rtol=1e-7, atol=1e-12)


def test_invariance_under_linear_maps_and_the_conserved_matrix():
    particles, population = problem()
    mixed = particles.mixed(torch.randn(3, 3, dtype=torch.float64))
    torch.testing.assert_close(mean_field.loss(mixed, population), mean_field.loss(particles, population))
    move, _ = mean_field.velocity(particles, population)
    assert torch.einsum("emk,eml->ekl", move.a, particles.a).abs().max() < 1e-12 * move.a.abs().max() * 12


def test_dead_features_stay_dead():
    particles, population = problem()
    particles = particles._replace(a=particles.a * torch.tensor([1.0, 1.0, 0.0]))
    after, losses = descend(particles, population, 0.05, 50)
    assert after.a[..., 2].abs().max() < 1e-12
    assert (losses >= 1 / 6 - 1e-12).all() and (losses[:, -1] < losses[:, 0]).all()


def test_an_ensemble_is_a_loop():
    particles, population = problem()
    _, together = descend(particles, population, 0.1, 5)
    for e in range(2):
        one = Particles(*(part[e] for part in particles)), Population(*(part[e] for part in population))
        torch.testing.assert_close(descend(*one, 0.1, 5)[1], together[e])


def test_birth_death_replaces_a_share_where_asked():
    particles, _ = problem()
    fresh = mean_field.draw(3, 3, 4, 7)
    born = birth_death(particles, fresh, 0, torch.tensor([True, False]))
    changed = (born.w != particles.w).any(-1)
    assert changed.sum(-1).tolist() == [3, 0]
    assert {tuple(row) for row in born.w[0, changed[0]].tolist()} == {tuple(row) for row in fresh.w.tolist()}
    with pytest.raises(ValueError, match="fresh must hold between 1 and m = 12"):
        birth_death(particles, mean_field.draw(13, 3, 4, 7), 0)


def test_gaussian_process_has_its_covariance():
    particles = mean_field.draw(6, 2, 3, 0)
    many = torch.stack([torch.cat(gaussian_process(particles, 1.5, s), -1) for s in range(3000)])
    theta = torch.cat(particles, -1)
    kernel = torch.exp(-torch.cdist(theta, theta).square() / (2 * 1.5**2))
    found = torch.einsum("smc,spc->mp", many, many) / (3000 * 5)
    assert (found - kernel).abs().max() < 0.05
    assert (torch.einsum("smc,sme->ce", many, many) / (3000 * 6) - torch.eye(5)).abs().max() < 0.06


def test_modified_acts_only_where_the_loss_has_stalled():
    particles, _ = problem()
    rule = Modified(share=0.25)
    now, before = torch.tensor([0.3, 0.1]), torch.tensor([0.3, 0.3])
    after = rule(particles, before, now, 1)
    assert (after.w[0] != particles.w[0]).all() and (after.w[1] == particles.w[1]).all()


def test_joint_dynamics_with_many_turns_is_the_static_one():
    particles, population = problem(m=40, n=80, seeds=(0,))
    particles = particles.whitened(population.x)
    gamma = mean_field.best_attention(particles, population)
    h = particles.features(population.x)
    cross, own = mean_field.second_moment(population.f, h), mean_field.second_moment(h, h)
    fastest = float(torch.linalg.matrix_norm(cross, 2).square() * torch.linalg.matrix_norm(own, 2))
    ratios = (turns / fastest / 1e-4 for turns in (0.0, 10.0, 3000.0))
    losses = [descend(particles, population, 1e-4, 4, gamma=gamma, ratio=ratio)[1] for ratio in ratios]
    static = descend(particles, population, 1e-4, 4)[1]
    stale, few, many = ((loss - static).abs().max() for loss in losses)
    assert many < 0.01 * stale and few < stale


def test_attention_flow_is_many_small_gradient_steps():
    particles, population = problem()
    h = particles.features(population.x)
    cross, own = mean_field.second_moment(population.f, h), mean_field.second_moment(h, h)
    gamma = torch.randn(2, 3, 3, dtype=torch.float64)
    fastest = (torch.linalg.matrix_norm(cross, 2).square() * torch.linalg.matrix_norm(own, 2))[:, None, None]
    stepped = gamma
    for _ in range(1000):
        stepped = stepped + 4e-3 / fastest * attention_velocity(particles, stepped, population)[1]
    flowed = mean_field.attention_flow(gamma, cross, own, 4.0 / fastest[:, 0, 0])
    torch.testing.assert_close(flowed, stepped, rtol=5e-3, atol=5e-3)


def test_a_joint_step_is_one_of_gradient_descent_at_two_rates():
    particles, population = problem()
    gamma = torch.randn(2, 3, 3, dtype=torch.float64)
    leaves = [part.clone().requires_grad_() for part in (*particles, gamma)]
    value = attention_loss(Particles(*leaves[:2]), leaves[2], population)
    by_a, by_w, by_gamma = torch.autograd.grad(value.sum(), leaves)
    lr, ratio = torch.tensor([0.1, 0.2]).double(), torch.tensor([3.0, 5.0]).double()
    stepped, turned, same = mean_field.joint_step(particles, gamma, population, lr, ratio)
    torch.testing.assert_close(same, value.detach())
    torch.testing.assert_close(stepped.a, particles.a - 12 * lr[:, None, None] * by_a)
    torch.testing.assert_close(stepped.w, particles.w - 12 * lr[:, None, None] * by_w)
    torch.testing.assert_close(turned, gamma - (ratio * lr)[:, None, None] * by_gamma)
