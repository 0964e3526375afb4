"""What a prompt says about its task: means, the bound on the weight, and its agreement with the Bayes rule itself."""

import math

import pytest
import torch

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.estimators import DiscreteMMSE, Ridge
from flbook.lectures.in_context_learning.task_diversity import pool_information as information
from flbook.shapes import Context


def test_the_density_has_the_mean_of_the_formula_and_one_number_by_hand():
    drawn = LinearPrompts(n=6, d=3, noise=0.5).draw(20_000, seed=1)
    density = information.information_density(drawn.context, drawn.task, 0.5)
    mean = information.mean_information(drawn.context.x, 0.5)
    assert abs(float((density - mean).mean())) < 5 * float((density - mean).std()) / 20_000**0.5
    one = Context(torch.tensor([[2.0]]), torch.tensor([3.0]))  # y ~ N(0, 1 + 4) against N(2, 1)
    expected = (math.log(5) + 9 / 5 - 1) / 2
    assert float(information.information_density(one, torch.tensor([1.0]), 1.0)) == pytest.approx(expected)
    assert float(information.mean_information(one.x, 1.0)) == pytest.approx(math.log(5) / 2)


def test_the_density_is_the_log_of_a_likelihood_over_its_mean():
    drawn = LinearPrompts(n=2, d=1, noise=1.0).draw(5, seed=3)
    tasks = TaskPool(400_000, seed=1).tasks(1)
    x, y = drawn.context

    def likelihood(beta):
        return torch.exp(-(y[:, None] - torch.einsum("md,bnd->bmn", beta, x)).square().sum(-1) / 2)

    own = torch.stack([likelihood(task[None])[k, 0] for k, task in enumerate(drawn.task)])
    found = information.information_density(drawn.context, drawn.task, 1.0)
    torch.testing.assert_close(found, (own / likelihood(tasks).mean(1)).log(), atol=0.02, rtol=0)


def test_the_own_weight_is_that_of_bayes_rule_and_above_its_bound():
    sizes = (2, 5, 60)
    found = information.own_weight(2, 4, 0.5, sizes, seed=0, prompts=30)
    drawn, others = LinearPrompts(n=4, d=2, noise=0.5).draw(30, 0), TaskPool(60, 0).tasks(2)
    (x, y), density = drawn.context, information.information_density(drawn.context, drawn.task, 0.5)
    for size, weight in zip(sizes, found, strict=True):
        rows = [torch.cat([task[None], others[: size - 1]]) for task in drawn.task]
        misfit = torch.stack([(y[k] - row @ x[k].T).square().sum(-1) for k, row in enumerate(rows)])
        torch.testing.assert_close(weight, torch.softmax(-misfit / 0.5, -1)[:, 0])
        assert float(weight.mean()) > float(information.recalled(density, size).mean()) - 0.1
    assert (found[0] >= found[1]).all() and (found[1] >= found[2]).all()


def test_pools_that_grow_are_answered_by_bayes_rule():
    found = information.growing_pools(2, 4, 0.5, (1, 3, 50), prompts=6)
    drawn, pools = LinearPrompts(n=4, d=2, noise=0.5).draw(6, 0), TaskPool(300, 0).tasks(2).reshape(6, 50, 2)
    for size in (1, 3, 50):
        errors = {"own": 0.0, "fresh": 0.0}
        for k, task in enumerate(drawn.task):
            context = Context(*(part[k] for part in drawn.context))
            for name, pool in (("own", torch.cat([task[None], pools[k, : size - 1]])), ("fresh", pools[k, :size])):
                guess = DiscreteMMSE(pool, 0.5).weights(context)
                errors[name] += float((guess - task).square().mean()) / 6
        for name, error in errors.items():
            assert float(found[name].sel(size=size)) == pytest.approx(error, rel=1e-9, abs=1e-15)
    weight = information.own_weight(2, 4, 0.5, (3,), seed=0, prompts=6)
    assert float(found.weight.sel(size=1)) == 1
    assert float(found.weight.sel(size=3)) == pytest.approx(float(weight.mean()), abs=0.3)
    gap = Ridge(0.25)(drawn.context, torch.eye(2).double().expand(6, 2, 2)) - drawn.task
    assert float(found.ridge) == pytest.approx(float(gap.square().mean()))


def test_half_of_the_weight_is_lost_near_the_exponential_of_the_information():
    found = information.half_weight(laws=((2, 2, 0.5), (2, 16, 0.5)), seed=(0, 1, 2))
    ahead = found.log_size.mean("seed") - found.information
    assert (ahead > 0).all() and (ahead < 1).all()
    assert float(found.information[1] - found.information[0]) > 2


@pytest.mark.parametrize("call, message", [
    (lambda x: information.mean_information(x, 0.0), "noise must be"),
    (lambda x: information.information_density(Context(x, x[:, 0]), x[0], -1.0), "noise must be"),
    (lambda x: information.recalled(x, 0), "size must be at least 1"),
])
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.ones(2, 2))
