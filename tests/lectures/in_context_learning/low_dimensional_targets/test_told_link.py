"""The solver that knows the link: it finds the direction where the labels determine it, and says how sure it is."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.low_dimensional_targets import told_link as lecture
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.shapes import Context

LINK = (0.0, 0.5**0.5, 0.5**0.5)


def drawn(n: int, d: int):
    return SingleIndexPrompts(n=n, d=d, r=d, link=LINK, queries=7).draw(5, seed=0)


def test_enough_examples_determine_the_direction():
    prompts = drawn(24, 6)
    beta, miss = lecture.directions(prompts.context, LINK, starts=8, steps=60, seed=0)
    torch.testing.assert_close(beta.norm(dim=-1), torch.ones(5, 8).double())
    best = beta[torch.arange(5), miss.argmin(-1)]
    torch.testing.assert_close(best, prompts.task, atol=1e-5, rtol=0)
    for answer in lecture.told(prompts.context, prompts.query, LINK):
        torch.testing.assert_close(answer, prompts.target, atol=1e-4, rtol=0)


def test_with_one_example_the_answer_is_the_mean_over_what_explains_it():
    prompts = drawn(1, 4)
    beta, miss = lecture.directions(prompts.context, LINK, starts=200, steps=60, seed=0)
    possible = (miss < lecture.EXACT).sum(-1)
    assert (possible > 100).all(), "one label leaves a sphere of directions"
    z = torch.einsum("tkd,td->tk", beta, prompts.context.x[:, 0])
    label = (z + (z**2 - 1) / 2**0.5) / 2**0.5
    torch.testing.assert_close(label[miss < 1e-9], prompts.context.y.expand(5, 200)[miss < 1e-9], atol=1e-4, rtol=0)


def test_where_nothing_explains_a_prompt_a_share_of_the_best_answer_is_given():
    prompts = drawn(12, 3)
    noisy = Context(prompts.context.x, prompts.context.y + torch.linspace(-1, 1, 12).double())
    none, *_, whole = lecture.told(noisy, prompts.query, LINK, starts=4, steps=20)
    assert (none == 0).all() and (whole != 0).all()


def test_kernel_ridge_knows_every_quadratic_from_enough_examples():
    prompts = drawn(40, 4)  # 15 coefficients
    torch.testing.assert_close(lecture.kernel(prompts.context, prompts.query)[0], prompts.target, atol=1e-3, rtol=0)


def test_the_risk_is_that_of_the_rules():
    found = lecture.experiment.run("tiny").risk
    assert found.dims == ("unknowns", "seed", "context", "rule", "choice") and np.isfinite(found).all()
    assert found.sel(rule="told the link").mean() != pytest.approx(float(found.sel(rule="kernel ridge").mean()))
