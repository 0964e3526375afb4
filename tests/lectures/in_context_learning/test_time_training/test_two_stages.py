"""Test-time training stage by stage: moments, subspace, direction, refinement, output weights, exact risk."""

import pytest
import torch

from flbook import hermite
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.lectures.in_context_learning.test_time_training import two_stages as stages
from flbook.lectures.in_context_learning.test_time_training.two_stages import Readout
from flbook.shapes import Context

PROMPTS = SingleIndexPrompts(n=4000, d=6, r=2, link=(0.0, 0.0, 0.8, 0.6), noise=0.3, queries=50)


def overlap(u, task):
    return torch.einsum("td,td->t", u, task).abs()


def test_the_gated_moment_by_hand_and_its_mean():
    context = Context(torch.tensor([[1.0, 0.0], [1.0, 2.0]]).double(), torch.tensor([0.0, 1.0]).double())
    expected = (-0.25 * torch.tensor([[1.0, 0], [0, 0]]) + 0.25 * torch.tensor([[1.0, 2], [2, 4]])) / 2
    torch.testing.assert_close(stages.gated_moment(context), expected.double())
    drawn = PROMPTS.draw(200, 0)
    mean = torch.einsum("tde,td,te->t", stages.gated_moment(drawn.context), drawn.task, drawn.task).mean().item()
    gate = hermite.mean(lambda z: (lambda y: y**2 / (1 + y**2))(hermite.Series(PROMPTS.link)(z)) * (z**2 - 1))
    assert mean == pytest.approx(gate, rel=0.1), "label noise of 0.3 changes it a little"


def test_one_step_of_attention_finds_the_subspace():
    x, y = SingleIndexPrompts(n=256, d=6, r=2).draw(300, 0).context
    step = stages.attention_step(Context(x[:, :128], y[:, :128]), Context(x[:, 128:], y[:, 128:]))
    basis = stages.subspace(step, 2)
    torch.testing.assert_close(basis.T @ basis, torch.eye(2).double())
    assert basis[:2].square().sum() / 2 > 0.99
    with pytest.raises(ValueError, match="r must lie between 1 and d = 6"):
        stages.subspace(step, 7)


def test_direction_refinement_and_output_weights():
    drawn, readout = PROMPTS.draw(30, 1), Readout.draw(40, 0)
    fit = stages.adapt(readout, drawn.context, 0.3)
    assert overlap(fit.start, drawn.task).mean() > 0.9
    assert overlap(fit.u, drawn.task).mean() > overlap(fit.start, drawn.task).mean()
    assert (1 - overlap(fit.u, drawn.task)).median() < 0.002
    torch.testing.assert_close(fit.u.square().sum(-1), torch.ones(30).double())
    along = torch.einsum("td,td->t", fit.u, drawn.task)
    assert stages.exact_risk(readout, fit.a, along, PROMPTS.link).median() < 0.02


def test_the_exact_risk_is_that_of_fresh_queries():
    prompts, readout = SingleIndexPrompts(n=40, d=3, r=3, link=(0.1, 0.0, 0.8, 0.6), queries=40_000), Readout.draw(9)
    drawn = prompts.draw(3, 1)
    fit = stages.adapt(readout, drawn.context, 3.0)
    z = torch.einsum("tqd,td->tq", drawn.query, fit.u)
    sampled = (torch.einsum("tqm,tm->tq", readout(z), fit.a) - drawn.target).square().mean(-1)
    along = torch.einsum("td,td->t", fit.u, drawn.task)
    exact = stages.exact_risk(readout, fit.a, along, (0.1, 0.0, 0.8, 0.6))
    torch.testing.assert_close(sampled, exact, rtol=0.1, atol=0.0)


def test_a_step_on_softmax_attention_is_the_gradient_of_its_formula():
    x, y = PROMPTS.draw(1, 3).context
    x, y, w = x[0, :5, :2], y[0, :5], torch.tensor([0.3, -0.2], dtype=torch.float64)

    def loss(w):
        gamma, total = torch.eye(2).double() + torch.outer(w, w), 0.0
        for q in range(5):
            others = [i for i in range(5) if i != q]
            weight = torch.exp(y[others] * (x[others] @ gamma @ x[q]) / 3)
            total += (y[q] - (weight * y[others]).sum() / weight.sum()) ** 2
        return total

    h = 1e-5 * torch.eye(2).double()
    slope = torch.stack([loss(w + e) - loss(w - e) for e in h])
    found = stages.softmax_direction(Context(x, y), w, 3.0)
    torch.testing.assert_close(found, -slope / slope.norm(), rtol=1e-5, atol=0)


def test_the_law_of_the_output_layer():
    readout, link, count, lam = Readout.draw(20, 3), (0.0, 0.0, 1.0), 1000, 3.0
    z = torch.randn(300, count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = torch.rand(300, count, generator=torch.Generator().manual_seed(1), dtype=torch.float64).sub(0.5).sign()
    a = readout.fit(z, hermite.Series(link)(z) + 3 * noise, lam / count)
    risk = stages.exact_risk(readout, a, torch.ones(300).double(), link).mean().item()
    law, endless = (stages.ridge_risk(readout, link, 3.0, lam * k, count * k) for k in (1, 10**6))
    assert risk == pytest.approx(law, rel=0.1) and law > 3 * endless


def test_readout_slope_and_ridge():
    readout, z = Readout.draw(9, 2), torch.linspace(-2, 2, 7).double()[None].requires_grad_()
    a = torch.randn(1, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    f = torch.einsum("tnm,tm->tn", readout(z), a)
    (slope,) = torch.autograd.grad(f.sum(), z)
    torch.testing.assert_close(readout.slope(z, a), slope)
    y, lam = torch.sin(z.detach()), 0.1
    fitted = readout.fit(z.detach(), y, lam)
    residual = y - torch.einsum("tnm,tm->tn", readout(z.detach()), fitted)
    torch.testing.assert_close(torch.einsum("tnm,tn->tm", readout(z.detach()), residual) / 7, lam * fitted)


def test_a_prompt_alone_is_a_prompt_in_the_batch():
    drawn, readout = SingleIndexPrompts(n=40, d=4, noise=0.1).draw(3, 0), Readout.draw(10, 0)
    together = stages.adapt(readout, drawn.context, 0.3)
    alone = stages.adapt(readout, Context(*(part[1] for part in drawn.context)), 0.3)
    for many, one in zip(together, alone, strict=True):
        torch.testing.assert_close(many[1], one)


def test_bad_input_is_one_sentence():
    drawn, readout = SingleIndexPrompts(n=2, d=4).draw(3, 0), Readout.draw(10, 0)
    with pytest.raises(ValueError, match="n must leave examples to each of three stages"):
        stages.adapt(readout, drawn.context, 0.3)
    with pytest.raises(ValueError, match="lam must be positive"):
        readout.fit(drawn.context.y, drawn.context.y, 0.0)
    with pytest.raises(ValueError, match="m must be at least 1 and spread positive"):
        Readout.draw(0)
