"""A pool of tasks: weights, estimates and the information in a prompt are the library's."""

import numpy as np
import pytest
import torch

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.estimators import DiscreteMMSE, Ridge
from flbook.lectures.in_context_learning.task_diversity import pool_information as information
from flbook.shapes import Context

NOISE = 0.4
DRAWN = LinearPrompts(n=5, d=3, noise=NOISE).draw(1, 0)
CONTEXT, TASK = Context(*(part[0] for part in DRAWN.context)), DRAWN.task[0]
TASKS = TaskPool(40, 1).tasks(3)
PROMPT = [CONTEXT.x.tolist(), CONTEXT.y.tolist(), NOISE]


def test_ridge_and_information(tab):
    call = """([x, y, noise, task]) => {
        const pool = flbookLive.pool, s = pool.sums(x, y, noise);
        return [[...pool.ridge(s)], pool.meanInformation(s), pool.density(s, task)];
    }"""
    fitted, mean, density = tab.evaluate(call, [*PROMPT, TASK.tolist()])
    np.testing.assert_allclose(fitted, Ridge(NOISE**2)(CONTEXT, torch.eye(3).double()), rtol=1e-7)
    assert mean == pytest.approx(float(information.mean_information(CONTEXT.x, NOISE)), rel=1e-9)
    assert density == pytest.approx(float(information.information_density(CONTEXT, TASK, NOISE)), rel=1e-9)
    bound = tab.evaluate("iota => flbookLive.pool.recalled(iota, 9)", density)
    assert bound == pytest.approx(float(information.recalled(torch.tensor(density, dtype=torch.float64), 9)), rel=1e-9)


def test_the_weights_of_a_pool(tab):
    call = "([x, y, noise, tasks]) => flbookLive.pool.weigh(flbookLive.pool.sums(x, y, noise), tasks)"
    found = tab.evaluate(call, [*PROMPT, TASKS.tolist()])
    np.testing.assert_allclose(found["mean"], DiscreteMMSE(TASKS, NOISE).weights(CONTEXT), rtol=1e-9)
    misfit = (CONTEXT.y - TASKS @ CONTEXT.x.T).square().sum(-1)
    np.testing.assert_allclose(found["weights"], torch.softmax(-misfit / (2 * NOISE**2), 0), rtol=1e-9)


def test_pools_that_grow(tab):
    sizes, noise = [1, 2, 5, 17, 40], 2.0  # so much that every task has a weight to speak of
    call = """([x, y, noise, task, others, sizes]) => {
        const pool = flbookLive.pool;
        return pool.grow(pool.sums(x, y, noise), task, others, 33, sizes);
    }"""
    found = tab.evaluate(call, [*PROMPT[:2], noise, TASK.tolist(), TASKS.tolist(), sizes])
    read = TASKS.roll(-33, 0)  # from the prompt's own place in the list
    for i, size in enumerate(sizes):
        own = torch.cat([TASK[None], read[: size - 1]])
        for name, tasks in (("own", own), ("fresh", read[:size])):
            error = (DiscreteMMSE(tasks, noise).weights(CONTEXT) - TASK).square().mean()
            assert found[name][i] == pytest.approx(float(error), rel=1e-8, abs=1e-15), (name, size)
        misfit = (CONTEXT.y - own @ CONTEXT.x.T).square().sum(-1)
        weight = torch.softmax(-misfit / (2 * noise**2), 0)[0]
        assert found["weight"][i] == pytest.approx(float(weight), rel=1e-8)


def test_its_mean_curves_are_those_of_the_library(tab):
    """From other prompts and pools: means over 240 prompts here, 1,000 there."""
    found = tab.evaluate("flbookLive.pool.average(2, 8, 0.5)")
    sizes = tab.evaluate("flbookLive.pool.SIZES")
    expected = information.growing_pools(2, 8, 0.5, (2, 8, 32, 128, 512), prompts=1000)
    at = [sizes.index(size) for size in expected["size"].values]
    for name in ("own", "fresh", "weight", "bound"):
        shown = [found[name][i] for i in at]
        np.testing.assert_allclose(shown, expected[name], rtol=0.35, atol=0.03, err_msg=name)
    assert found["ridge"] == pytest.approx(float(expected.ridge), rel=0.2)
    assert found["information"] == pytest.approx(3.3, abs=0.1)


def test_its_verdict_goes_from_looking_up_to_ridge_regression(opened):
    tab = opened("pool")
    assert "Tasks are looked up" in tab.inner_text(".fll-say")
    tab.focus("[name=M]")
    tab.keyboard.press("End")
    tab.wait_for_function("document.querySelector('.fll-say').textContent.includes('turned into ridge')")
    tab.fill("[name=noise]", "-1")  # ten times less noise: it can tell thousands apart
    tab.wait_for_function("!document.querySelector('.fll-say').textContent.includes('turned into ridge')")
    tab.select_option("[name=task]", "fresh")
    assert tab.complaints == []
