"""Vector arithmetic at a tiny preset: the baselines are exact, the task vector adds up."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.lectures.in_context_learning import vector_arithmetic
from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall
from flbook.lectures.in_context_learning.vector_arithmetic.task_attention import TaskVectorAttention

TINY = vector_arithmetic.experiment.setting("tiny")


def test_a_tie_counts_by_its_share():
    prompts = TINY.data(0.0).questions(6)
    logits = torch.zeros(6, 6)
    assert float(vector_arithmetic.error(logits, prompts)) == pytest.approx(5 / 6)
    logits.scatter_(1, prompts.answer[:, None], 1.0)
    assert float(vector_arithmetic.error(logits, prompts)) == 0


def test_the_residual_alone_ties_between_two_concepts():
    found = vector_arithmetic.rivals(TINY, names=("residual only", "word arithmetic")).error.sel(noise=0.0)
    np.testing.assert_allclose(found.sel(model="residual only"), 0.5)
    assert found.dims == ("model", "seed", "signs", "examples")


def test_the_task_vector_has_length_one_and_adds_up():
    task = vector_arithmetic.problem(TINY, 0.0, 0)
    params = vector_arithmetic.trained(task, TINY)
    prompts = TINY.data(0.0).in_context(5, 2, (0, 1))
    vector = vector_arithmetic.task_vector(task, params, prompts)
    np.testing.assert_allclose(vector.norm(dim=-1), 1, rtol=1e-5)
    logits = 4 * (vector + prompts.query) @ task.data.answers.T
    np.testing.assert_allclose(task.predict(params, prompts), logits, rtol=1e-4, atol=1e-5)


def test_unknown_names_are_refused_before_any_work():
    with pytest.raises(ValueError, match="names must be among"):
        vector_arithmetic.rivals(TINY, names=("oracle",))
    with pytest.raises(ValueError, match="scores must be among identity, frozen, random, zero; got 'poems'"):
        vector_arithmetic.problem(TINY, 0.0, 2, scores="poems")


def test_a_move_takes_its_directions_and_keeps_the_others():
    data = FactualRecall(concepts=2, common=2, d=8)
    to = vector_arithmetic.moves(data)
    torch.testing.assert_close(to["as trained"], torch.eye(8))
    torch.testing.assert_close(data.facts @ to["unseen facts"], torch.eye(8)[-2:])
    torch.testing.assert_close(data.tasks[0] @ to["differences"], (data.tasks[0] - data.tasks[1]) / 2**0.5)
    torch.testing.assert_close(data.facts @ to["new directions"], data.facts)
    turned = data.tasks @ to[vector_arithmetic.SUM]
    torch.testing.assert_close(turned[0], data.tasks.sum(0) / 2**0.5)
    torch.testing.assert_close(turned @ turned.T, torch.eye(2))
    with pytest.raises(ValueError, match="d must be at least 9"):
        vector_arithmetic.moves(FactualRecall(concepts=2, common=3, d=8))


def test_nothing_moved_is_the_error_of_the_layer():
    setting = replace(TINY, d=12)
    task = vector_arithmetic.problem(setting, 0.0, 0)
    params = vector_arithmetic.trained(task, setting)
    found = vector_arithmetic.transferred(task, params, setting, 2)
    prompts = task.data.in_context(setting.points, 2, setting.seed, 2**30 + 1)
    same = vector_arithmetic.error(task.predict(params, prompts), prompts)
    np.testing.assert_allclose(found.sel(moved="as trained"), same)


def test_scores_start_and_stay_as_named():
    start = {name: vector_arithmetic.started(TINY, name).state_dict() for name in vector_arithmetic.SCORES}
    assert torch.equal(start["frozen"]["q"][1], 0.5 * torch.eye(9)) and not start["zero"]["k"].any()
    assert 0 < float(start["random"]["q"].abs().max()) < 0.3
    assert not torch.equal(start["random"]["q"], start["random"]["k"])
    for name, stays in (("frozen", True), ("zero", True), ("random", False)):
        task = vector_arithmetic.problem(TINY, 0.0, 2, scores=name)
        assert torch.equal(vector_arithmetic.trained(task, TINY)["q"], start[name]["q"]) == stays, name


def test_stored_facts_of_known_matrices():
    data, k = TINY.data(0.0), 3
    same = torch.eye(9)
    params = {"q": same, "k": same.clone(), "v": 2 * same.clone()}
    params["v"][k, k], params["v"][k + 1, k + 1] = -1.0, 0.5
    size, sign = vector_arithmetic.stored_facts(params, data)
    assert float(size) == pytest.approx((1 + 0.5 + 2) / 3 / 2) and float(sign) == pytest.approx(2 / 3)


def test_the_common_part_of_known_values_is_found_and_taken_off():
    data = TINY.data(0.0)
    ones = data.tasks.sum(0)
    params = {"v": 3 * torch.eye(9) - 0.7 * torch.outer(ones, ones)}
    r, w = vector_arithmetic.common_part(params, data)
    assert (float(r), float(w)) == pytest.approx((3, -0.7))
    torch.testing.assert_close(vector_arithmetic.without_common_part(params, data)["v"], 3 * torch.eye(9))


def test_values_at_the_identity_read_the_tokens_themselves():
    layer = vector_arithmetic._identity(TINY)
    assert torch.equal(layer.v[1], torch.eye(9))


def test_the_pull_on_values_is_the_derivative_along_the_difference():
    data = FactualRecall(concepts=3, common=3, d=9, noise=0.0)
    prompts = data.questions(2, 0, 5)
    found = vector_arithmetic.pulls(data, prompts, spread=0.3, seed=7)
    k = int(prompts.task[0])
    other = int((prompts.query[0] @ data.facts.T).abs().topk(2).indices.sum()) - k
    layer = TaskVectorAttention(9, 0.5)
    start = 0.3 * rng.normal((2, 9, 9), 7, "values of each prompt").float()[0]
    way = torch.outer(data.tasks[k] - data.tasks[other], data.tasks[k])

    def loss(t):
        layer.v.data = start + t * way
        logits = layer(prompts.tokens[:1], prompts.query[:1], data.answers)
        return torch.nn.functional.cross_entropy(logits, prompts.answer[:1]).item()

    assert float(found[0]) == pytest.approx(-(loss(0.01) - loss(-0.01)) / 0.02, rel=1e-2)
