"""Experts, router and recipe, each against a plain calculation."""

import math
from dataclasses import replace

import pytest
import torch

from flbook.lectures.training_strategies.mixture_of_experts import Cell, Setting
from flbook.lectures.training_strategies.mixture_of_experts.clustered import ExpertClusters
from flbook.lectures.training_strategies.mixture_of_experts.experts import DoubleSoftmax, Experts
from flbook.lectures.training_strategies.mixture_of_experts.recipe import ExpertRecipe, ExpertTraining
from flbook.models import with_start
from flbook.models.activations import cube, identity

DATA = ExpertClusters(n=12, d=9)
DOUBLE = torch.float64


def network(activation=cube, seed=(0, 1), **options) -> Experts:
    net = Experts(DATA.d, 5, 3, activation, shrink=0.3, seed=seed, dtype=DOUBLE, **options)
    shape = net.theta.shape
    net.theta.data = torch.randn(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
    return net


@pytest.mark.parametrize("activation", [cube, identity])
@pytest.mark.parametrize("gate", ["logit", "softmax"])
def test_the_output_is_the_formula(activation, gate):
    net, x = network(activation, gate=gate), DATA.draw((0, 1)).x
    noise = torch.rand(2, DATA.n, 5, dtype=DOUBLE)
    found = net(x, noise)
    for e in range(2):
        for i in range(DATA.n):
            h = net.theta[e] @ x[e, i].sum(0) + noise[e, i]
            m = h.argmax()
            z = activation(torch.einsum("pd,sjd->psj", x[e, i], net.w[e, m]) + net.b[e, m]).sum((0, 2))
            g = torch.softmax(h, 0)[m] if gate == "softmax" else h[m]
            torch.testing.assert_close(found[e, i], g * (z[0] - z[1]))
    route = torch.arange(DATA.n) % 5
    torch.testing.assert_close(net(x, route=route), net.answers(x, route.expand(2, -1)))
    torch.testing.assert_close(network(activation, seed=0)(x[0]).shape, torch.Size([DATA.n]))


def test_the_double_softmax_is_that_of_torch():
    f, y = torch.linspace(-4, 4, 9, dtype=DOUBLE, requires_grad=True), torch.tensor([1.0, -1, 1] * 3, dtype=DOUBLE)
    logits = torch.stack([torch.zeros_like(f), f], -1)
    library = torch.nn.functional.cross_entropy(torch.softmax(logits, -1), (y > 0).long(), reduction="none")
    loss = DoubleSoftmax()
    torch.testing.assert_close(loss(f, y), library)
    slope = torch.autograd.grad(library.sum(), f)[0]
    torch.testing.assert_close(loss.slope(f, y), slope)
    assert loss.slope(torch.zeros(1), torch.ones(1)).item() == -0.25
    assert loss(torch.tensor(60.0), torch.tensor(1.0)).item() == pytest.approx(math.log(1 + 1 / math.e))


def test_a_step_of_the_recipe_by_hand():
    sample = DATA.draw((0, 1))
    problem = ExpertTraining(network(), sample.x, sample.observed, seed=(0, 1)).at(4)
    params, rule = problem.start(), ExpertRecipe(lr=0.02, router_lr=0.3)
    grad = problem.gradient(params)
    moved, state = rule.step(problem, params, rule.start(params))
    torch.testing.assert_close(moved["theta"], params["theta"] - 0.3 * grad["theta"])
    reached = 0
    for e in range(2):
        for m in range(5):
            length = grad["w"][e, m].norm() + grad["b"][e, m].norm()
            for name in ("w", "b"):
                step = grad[name][e, m] * 0.02 / length if length > 0 else torch.zeros_like(grad[name][e, m])
                torch.testing.assert_close(moved[name][e, m], params[name][e, m] - step)
            reached += bool(length > 0)
    assert reached >= 4 and state.on.all()


def test_a_member_stops_at_the_floor_or_when_its_loss_rises_and_the_other_goes_on():
    sample = DATA.draw((0, 1))
    problem = ExpertTraining(network(), sample.x, sample.observed, seed=(0, 1))
    params, rule = problem.start(), ExpertRecipe()
    loss = problem.train_loss(params)
    state = rule.start(params)._replace(lowest=loss - torch.tensor([0.03, 0.01], dtype=DOUBLE))
    moved, state = rule.step(problem, params, state)
    assert state.on.tolist() == [False, True]
    assert all(torch.equal(moved[name][0], params[name][0]) and not torch.equal(moved[name][1], params[name][1])
               for name in params)
    low = replace(rule, stop=2.0, rise=9.0)
    assert low.step(problem, params, low.start(params))[1].on.all()  # a new minimum trains on, however low
    assert not low.step(problem, params, state._replace(lowest=loss - 1e-3))[1].on.any()


def test_routing_noise_is_a_function_of_seed_and_step_and_absent_on_other_inputs():
    sample = DATA.draw((0, 1))
    problem = ExpertTraining(network(), sample.x, sample.observed, seed=(0, 1))
    params = problem.start()
    one, same, next_ = problem.at(3), problem.at(3), problem.at(4)
    assert torch.equal(one.noise, same.noise) and not torch.equal(one.noise, next_.noise)
    assert one.noise.min() >= 0 and one.noise.max() < 1 and one.noise.shape == (2, DATA.n, 5)
    alone = ExpertTraining(network(seed=1), sample.x[1], sample.observed[1], seed=1).at(3)
    assert torch.equal(alone.noise, one.noise[1])
    torch.testing.assert_close(one.predict(params, sample.x), problem.predict(params))
    assert torch.equal(problem.dispatch(params, sample.x), problem.model.logits(problem.x).argmax(-1))


@pytest.mark.parametrize("expert, power, moment", [("cubic", 3, 2.65625), ("linear", 1, 1.25)])
def test_the_routers_first_step_and_the_race_are_those_of_the_proposition(expert, power, moment):
    cell = Cell(replace(Setting(), n=40_000, seed=(0, 1), points=10, filters=2, experts=4), expert)
    first = cell.problem.at(0)
    params = first.start()
    params["b"] = torch.zeros_like(params["b"])
    grad = first.gradient(params)
    skill = cell.skill(params)
    predicted = 10 ** (power + 1) * 1.5 * moment * skill / 4 / 16
    towards = -grad["theta"][..., 4:8]
    gain = (towards * predicted).sum() / predicted.square().sum()
    assert gain.item() == pytest.approx(1, abs=0.08)
    kappa = 10**power * moment * 0.8 / 4 / 16  # the gate is the largest of four uniform numbers, 4/5 on average
    sign = torch.tensor([1.0, -1.0])[:, None, None]
    race = sign * kappa * power * params["w"][..., :4] ** (power - 1)
    slope = (-grad["w"][..., :4] * race).sum() / race.square().sum()
    assert slope.item() == pytest.approx(1, abs=0.05)


def test_a_given_start_and_given_noise_replace_what_is_drawn():
    sample, drawn = DATA.draw((0, 1)), network()
    given = with_start(network(seed=(5, 6)), w=drawn.w.detach(), b=drawn.b.detach())
    assert torch.equal(given.w, drawn.w) and torch.equal(given.b, drawn.b)
    own = ExpertTraining(drawn, sample.x, sample.observed, seed=(0, 1))
    noise = torch.stack([own.at(step).noise for step in range(3)])
    told = ExpertTraining(given, sample.x, sample.observed, given=noise)
    assert torch.equal(told.at(2).train_loss(told.start()), own.at(2).train_loss(own.start()))
    assert not torch.equal(told.at(1).noise, told.at(2).noise)
    with pytest.raises(ValueError, match="^given .*3"):
        told.at(3)
    with pytest.raises(ValueError, match="^given must have the shape"):
        ExpertTraining(given, sample.x, sample.observed, given=noise[..., 1:])
