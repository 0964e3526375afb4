"""The recursion on moments is attention token by token; drawn moments have the law of prompts; gradient flow."""

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.lectures.in_context_learning.shared import attention_risk as theory
from flbook.lectures.in_context_learning.shared import moments
from flbook.lectures.in_context_learning.shared.attention import LinearTransformer, layers
from flbook.lectures.in_context_learning.shared.moments import MomentTraining, draw_moments, moments_of, readout
from flbook.training.fit import fit
from flbook.training.optimizers import Adam, GradientDescent

ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
COVARIANCE = ROTATION @ np.diag([2.0, 1.0, 0.5, 0.1]) @ ROTATION.T
COVARIANCE = (COVARIANCE + COVARIANCE.T) / 2
BENT = LinearPrompts(n=7, d=4, covariance=COVARIANCE, noise=0.3)


def answers(v, query):
    return torch.einsum("...db,...bd->...b", v, query)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_it_is_attention_token_by_token(depth, masked):
    drawn = BENT.draw(6, (0, 1))
    model = LinearTransformer(4, depth, start=0.3, masked=masked, seed=3, dtype=torch.float64)
    direct = model(drawn.context, drawn.query)[..., 0]
    attended = moments_of(drawn.context)
    if not masked:
        token = torch.nn.functional.pad(drawn.query[..., 0, :], (0, 1)).mT
        attended = attended + token[..., :, None, :] * token[..., None, :, :] / 7
    found = answers(readout(model.p, model.q, attended), drawn.query[..., 0, :])
    torch.testing.assert_close(found, direct, rtol=1e-10, atol=1e-12)


def test_also_for_layers_that_bend_and_for_an_ensemble():
    drawn = BENT.draw(6, (0, 1))
    gamma, bend = rng.normal((3, 4, 4), (5, 6), "gamma"), 0.3 * rng.normal((3, 4, 4), (5, 6), "bend")
    p, q = layers(gamma, bend)
    found = answers(readout(p, q, moments_of(drawn.context)), drawn.query[..., 0, :])
    for member in range(2):
        model = LinearTransformer.descent(gamma[member], bend[member])
        one = drawn.context._replace(x=drawn.context.x[member], y=drawn.context.y[member])
        torch.testing.assert_close(found[member], model(one, drawn.query[member])[..., 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [2, 7])
def test_drawn_moments_have_the_law_of_prompts(n):
    prompts = LinearPrompts(n=n, d=4, covariance=COVARIANCE, noise=0.5, task_covariance=(1.0, 2.0, 0.5, 0.1))
    drawn = draw_moments(prompts, 40_000, 0)
    direct = prompts.draw(40_000, 1)
    seen = moments_of(direct.context)
    for power in (1, 2):
        ours, theirs = drawn.moments**power, seen**power
        error = (ours.var(-1) / 40_000 + theirs.var(-1) / 40_000).sqrt()
        assert ((ours.mean(-1) - theirs.mean(-1)).abs() < 5 * error).all()
    both = ((drawn.moments, drawn.task), (seen, direct.task.T))
    ours, theirs = (torch.einsum("db,db->b", moment[:4, 4], task) for moment, task in both)
    assert (ours.mean() - theirs.mean()).abs() < 5 * ((ours.var() + theirs.var()) / 40_000).sqrt()
    if n < 4:
        assert torch.linalg.matrix_rank(drawn.moments[..., 0]) == n


def test_draws_depend_on_seed_and_step_alone():
    one = draw_moments(BENT, 5, 3, step=2)
    torch.testing.assert_close(draw_moments(BENT, 5, (1, 3), step=2).moments[1], one.moments)
    assert not torch.equal(draw_moments(BENT, 5, 3, step=1).moments, one.moments)


def test_tasks_come_from_the_pool_of_their_seed():
    pool = TaskPool(3, seed=(4, 5))
    drawn = draw_moments(LinearPrompts(n=7, d=4, pool=pool), 50, (0, 1))
    for tasks, own in zip(drawn.task, pool.tasks(4), strict=True):
        distance = torch.cdist(tasks.T, own)
        assert distance.amin(-1).max() < 1e-6 and len(distance.argmin(-1).unique()) == 3
    shared = draw_moments(LinearPrompts(n=7, d=4, pool=TaskPool(3, seed=4)), 50, (0, 1))
    assert torch.cdist(shared.task[1].T, pool.tasks(4)[0]).amin(-1).max() < 1e-6


def test_the_gradient_is_that_of_a_difference():
    problem = MomentTraining(BENT, 2, 50, (0, 1), start=0.2, clip=1e9, dtype=torch.float64)
    params = problem.start()
    found = problem.gradient(params)
    drawn, step = draw_moments(BENT, 50, (0, 1), 0), 1e-6
    for name, at in (("p", (1, 0, 2, 3)), ("q", (0, 1, 1, 0))):
        risks = []
        for sign in (1, -1):
            moved = {key: part.clone() for key, part in params.items()}
            moved[name][at] += sign * step
            risks.append(moments.risk(moved["p"], moved["q"], drawn, problem.covariance)[at[0]])
        assert float(found[name][at]) == pytest.approx(float(risks[0] - risks[1]) / (2 * step), rel=1e-5)


def test_a_long_gradient_is_clipped_member_by_member():
    free, short = (MomentTraining(BENT, 2, 50, (0, 1), start=0.2, clip=clip) for clip in (1e9, 0.1))
    whole, clipped = (problem.gradient(problem.start()) for problem in (free, short))
    assert (free.norm(whole) > 0.1).all() and float(free.norm(whole).std()) > 0
    torch.testing.assert_close(short.norm(clipped), torch.full((2,), 0.1))
    torch.testing.assert_close(clipped["q"][1] / clipped["q"][1].norm(), whole["q"][1] / whole["q"][1].norm())


@pytest.mark.parametrize("parts", ["all", "descent", "steps"])
def test_only_the_free_parts_move(parts):
    problem = MomentTraining(BENT, 2, 20, (0,), parts=parts)
    after = fit(problem, GradientDescent(0.01), 3).params
    moved = {name: (after[name] != problem.start()[name]).any(0).any(0) for name in "pq"}
    inner = torch.nn.functional.pad(torch.ones(4, 4), (0, 1, 0, 1)).bool()
    assert (moved["q"] | (parts == "all")).equal(inner | (parts == "all"))
    assert moved["p"].equal({"all": moved["p"], "descent": inner, "steps": inner & False}[parts])


def test_one_layer_learns_the_optimum():
    problem = MomentTraining(BENT, 1, 200, (0, 1), parts="steps")
    params = fit(problem, Adam(0.05, horizon=400), 400).params
    test = draw_moments(BENT, 20_000, 9)
    optimum = theory.attention_optimum(7, COVARIANCE, 0.3)
    best = moments.risk(*layers(torch.from_numpy(optimum)[None]), test, torch.from_numpy(COVARIANCE))
    assert float(best) == pytest.approx(theory.attention_risk(optimum, 7, COVARIANCE, 0.3), rel=0.03)
    assert (problem.test_risk(params, test) / best - 1).abs().max() < 0.03


def test_the_flow_conserves_its_balance_and_ends_at_the_optimum():
    optimum = theory.attention_optimum(7, COVARIANCE)
    hessian = (7 + 1) / 7 * COVARIANCE + np.trace(COVARIANCE) / 7 * np.eye(4)

    def gradient(gamma):
        return COVARIANCE @ (gamma @ hessian - np.eye(4)) @ COVARIANCE

    start = 0.3 * ROTATION @ ROTATION.T / 2
    u, w = moments.flow(gradient, 0.5, start, np.linspace(0, 4000, 5))
    np.testing.assert_allclose(u**2 - (w**2).sum((1, 2)), 0.5**2 - (start**2).sum(), rtol=1e-9)
    np.testing.assert_allclose(u[-1] * w[-1], optimum, rtol=1e-6, atol=1e-8)
    conserved = 0.5**2 - (start**2).sum()  # so u^2 is the root of u^2 - |optimum|^2 / u^2 = conserved
    u_end = np.sqrt((conserved + np.sqrt(conserved**2 + 4 * (optimum**2).sum())) / 2)
    np.testing.assert_allclose(u[-1], u_end, rtol=1e-8)
    np.testing.assert_allclose(w[-1], optimum / u_end, rtol=1e-6, atol=1e-8)


def test_a_pool_for_two_seeds_needs_two():
    with pytest.raises(ValueError, match="seed must be a tuple of 2 seeds"):
        draw_moments(LinearPrompts(pool=TaskPool(3, (0, 1))), 5, 0)
