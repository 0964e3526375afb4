"""Vector arithmetic at a tiny preset: labelled, the baselines exact, and the stored result recomputed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import vector_arithmetic
from flbook.lectures.in_context_learning.vector_arithmetic import Setting, measure
from flbook.runs import results, settings

TINY = Setting(noise=(0.0, 0.1), examples=(1, 3), seed=(0, 1), concepts=3, common=3, d=9, shown=2, steps=4, batch=8,
               points=40, every=2)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert dataset.error.dims == ("noise", "training", "seed", "signs", "examples")
    assert dataset.value_task.dims == ("noise", "training", "seed", "step")
    assert dataset.step.values.tolist() == [0, 2, 4]


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
    cell = measure(TINY).sel(noise=0.0, training="questions")
    np.testing.assert_allclose(race.value_task.transpose("seed", "step"), cell.value_task, rtol=1e-5, atol=1e-7)


def test_unknown_names_are_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="training must be among"):
        vector_arithmetic.run(replace(TINY, training=("poems",)), cache=tmp_path)
    with pytest.raises(ValueError, match="names must be among"):
        vector_arithmetic.rivals(TINY, names=("oracle",))
    assert not list(tmp_path.iterdir())


def test_the_stored_result_is_recomputed():
    paper = results.open("vector_arithmetic")
    cells = replace(Setting.paper(), noise=(0.05,), seed=(0, 1, 2), steps=100)
    again = measure(cells).squeeze("noise").sel(step=100)
    stored = paper.sel(noise=0.05, seed=[0, 1, 2], step=100)
    for name in ("value_task", "score_fact"):
        np.testing.assert_allclose(again[name], stored[name], rtol=0.05, atol=0.01)
