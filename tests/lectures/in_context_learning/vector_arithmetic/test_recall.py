"""Pretraining on factual recall: lengths grow by Pythagoras, reflected facts do not matter, frozen parts stay."""

import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall, RecallPrompts
from flbook.lectures.in_context_learning.vector_arithmetic.recall import RecallPretraining, recall_parameters
from flbook.lectures.in_context_learning.vector_arithmetic.task_attention import TaskVectorAttention

DATA = FactualRecall(concepts=3, common=3, d=9, noise=0.1)


def layer(**change) -> TaskVectorAttention:
    return TaskVectorAttention(9, **({"dtype": torch.float64, "spread": 0.3} | change))


def test_values_are_orthogonal_to_their_gradient():
    task = RecallPretraining(layer(), DATA, decay=0.0, examples=2)
    values, gradient = task.start()["v"], task.gradient(task.start())["v"]
    assert float((values * gradient).sum().abs()) < 1e-12 * float(values.norm() * gradient.norm())
    decaying = RecallPretraining(layer(), DATA, decay=0.1, examples=2).gradient(task.start())["v"]
    assert float((values * decaying).sum()) > 1e-4


def test_given_prompts_stay_the_same_at_every_step():
    prompts = DATA.questions(6)
    task = RecallPretraining(layer(), DATA, given=prompts)
    assert torch.equal(task.at(3).sample().tokens, prompts.tokens)
    assert not torch.equal(RecallPretraining(layer(), DATA, batch=6).at(3).sample().tokens, prompts.tokens)


def test_a_layer_with_reflected_keys_and_values_reads_reflected_tokens():
    task, prompts = RecallPretraining(layer(), DATA), DATA.in_context(6, 3)
    flip = torch.ones(9).double()
    flip[3:6] = -1
    params = task.start()
    turned = {"q": params["q"], "k": params["k"] * flip, "v": params["v"] * flip}
    mirrored = RecallPrompts(prompts.tokens * flip, *prompts[1:])
    torch.testing.assert_close(task.predict(turned, prompts), task.predict(params, mirrored))


def test_values_that_ignore_facts_do_not_learn_them_from_a_prompt_and_its_reflection():
    task = RecallPretraining(layer(start=0.0), DATA)
    flip = torch.ones(9).double()
    flip[3:6] = -1
    params = {name: (p * (flip > 0)).requires_grad_() for name, p in task.start().items()}
    prompts = DATA.in_context(50, 3)
    both = [prompts, RecallPrompts(prompts.tokens * flip, *prompts[1:])]
    loss = sum(task.loss(params, one) for one in both)
    on_k, on_v = torch.autograd.grad(loss, [params["k"], params["v"]])
    assert float(on_v[:, 3:6].abs().max()) < 1e-12 < 1e-4 < float(on_v[:, :3].abs().max())
    assert float(on_k[:, 3:6].abs().max()) < 1e-12


def test_decay_frozen_parts_and_fresh_batches():
    task = RecallPretraining(layer(seed=(0, 1)), DATA, (0, 1), decay=0.1, trained=("v",))
    start = task.start()
    first, second, same = (task.at(step).gradient(start) for step in (0, 1, 0))
    assert float(first["q"].abs().max()) == 0 and not torch.equal(first["v"], second["v"])
    assert torch.equal(first["v"], same["v"]), "a batch is a function of its step"
    again = RecallPretraining(layer(seed=(0, 1)), DATA, (0, 1), decay=0.0, trained=("v",))
    torch.testing.assert_close(first["v"] - again.at(0).gradient(start)["v"], 0.1 * start["v"])
    assert task.norm(first).shape == (2,)


def test_order_parameters_of_known_matrices():
    eye = torch.eye(9).double()
    params = {"q": 2 * eye, "k": 3 * eye, "v": torch.diag(torch.arange(9.0)).double()}
    found = recall_parameters(params, DATA)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {"value_task": 1.0, "value_fact": 4.0, "score_task": 6.0, "score_fact": 6.0})


def test_questions_teach_the_task():
    task = RecallPretraining(layer(spread=0.01), FactualRecall(concepts=3, common=3, d=9, noise=0.0), batch=32)
    params = fit(task, GradientDescent(1.0), 60).params
    found = recall_parameters(params, DATA)
    assert float(found["value_task"]) > 10 * abs(float(found["value_fact"]))
