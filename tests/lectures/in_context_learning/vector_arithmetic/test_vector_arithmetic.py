"""Vector arithmetic at a tiny preset: the baselines are exact, the task vector adds up."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import vector_arithmetic

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
    task = vector_arithmetic.problem(TINY, 0.0, "questions")
    params = vector_arithmetic.trained(task, TINY)
    prompts = TINY.data(0.0).in_context(5, 2, (0, 1))
    vector = vector_arithmetic.task_vector(task, params, prompts)
    np.testing.assert_allclose(vector.norm(dim=-1), 1, rtol=1e-5)
    logits = 4 * (vector + prompts.query) @ task.data.answers.T
    np.testing.assert_allclose(task.predict(params, prompts), logits, rtol=1e-4, atol=1e-5)


def test_a_race_is_the_history_of_a_cell():
    race = vector_arithmetic.race(TINY)
    cell = vector_arithmetic.run(TINY).sel(noise=0.0, training="questions").transpose("seed", "step", ...)
    np.testing.assert_allclose(race.value_task.transpose("seed", "step"), cell.value_task, rtol=1e-5, atol=1e-7)


def test_unknown_names_are_refused_before_any_work():
    with pytest.raises(ValueError, match="names must be among"):
        vector_arithmetic.rivals(TINY, names=("oracle",))
    with pytest.raises(ValueError, match="training must be among questions, examples; got 'poems'"):
        vector_arithmetic.problem(TINY, 0.0, "poems")
