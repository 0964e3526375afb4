"""Test-time training at a tiny preset: labelled, a cell alone is a cell in the grid, floors and who gets below them."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.in_context_learning import test_time_training as lecture
from flbook.lectures.in_context_learning.test_time_training import Setting, measure
from flbook.lectures.in_context_learning.test_time_training.link_shift import fixed_risk, linear_floor, shifted_link
from flbook.runs import results, settings

TINY = Setting(shift=(0.0, 60.0), n=(64, 1024), seed=(0, 1), d=8, r=2, m=32, prompts=200, n_pre=128, tasks=6,
               queries=40)


def test_a_labelled_dataset_whose_cells_stand_alone():
    dataset = measure(TINY)
    assert set(settings.axes(TINY)) == set(dataset.dims)
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    one = measure(TINY.thinned(shift=(60.0,), n=(64,), model=("test-time training",), seed=(1,)))
    for name in one:
        cell = dataset[name].sel(shift=60.0, n=64, model="test-time training", seed=1)
        np.testing.assert_allclose(one[name].squeeze(), cell, rtol=1e-8)


def test_fixed_weights_keep_the_floor_and_training_at_test_time_does_not():
    risk = measure(TINY.thinned(n=(1024,))).risk.squeeze("n").mean("seed")
    fixed, adapted = risk.sel(model="fixed weights"), risk.sel(model="test-time training")
    assert fixed.sel(shift=0.0) < 0.1 and adapted.sel(shift=0.0) < 0.1
    assert fixed.sel(shift=60.0) == pytest.approx(fixed_risk(60.0), rel=0.25)
    assert adapted.sel(shift=60.0) < 0.2 * fixed.sel(shift=60.0)


def test_pretraining_finds_the_subspace_once_for_all():
    learned = lecture.pretrain(TINY)
    assert learned.basis[:2].square().sum() / 2 > 0.98
    assert lecture.pretrain(TINY.thinned(seed=(5,), n=(64,))) is learned
    other = lecture.pretrain(TINY.thinned(learner=1))
    assert not np.allclose(other.basis, learned.basis)


def test_more_examples_of_a_stage_lower_what_it_leaves():
    setting = TINY.thinned(shift=(60.0,))
    fitted, refined = lecture.fitting(setting, (64, 1024)), lecture.refining(setting, (8, 512), spent=64)
    assert fitted.dims == ("fitted", "seed") and refined.dims == ("refined", "seed") and fitted.attrs["long_name"]
    assert fitted.sel(fitted=1024).mean() < 0.3 * fitted.sel(fitted=64).mean()
    assert refined.sel(refined=512).mean() < 0.5 * refined.sel(refined=8).mean()


def test_rivals_that_see_the_prompt_alone():
    found = lecture.alone(TINY.thinned(n=(64, 256)), tasks=2)
    for name in ("kernel ridge", "network"):
        assert found[name].dims == ("n", "seed") and found[name].sel(n=256).mean() < found[name].sel(n=64).mean()


def test_closed_forms():
    assert np.sum(np.square(shifted_link(37.0))) == pytest.approx(1)
    assert fixed_risk(0.0) == 0 and fixed_risk(60.0) == pytest.approx(1) and fixed_risk(30.0, 0.5) > fixed_risk(30.0)
    assert linear_floor(90.0) == pytest.approx(1) and linear_floor(30.0) == pytest.approx(0.25)


def test_run_is_measure_in_chunks(tmp_path):
    setting = TINY.thinned(shift=(60.0,), n=(64,))
    dataset = lecture.run(setting, cache=tmp_path, memory=2e7)
    for name, values in measure(setting).items():
        np.testing.assert_allclose(dataset[name].transpose(*values.dims), values, rtol=1e-8)
    assert lecture.stored(dataset).risk.dtype == np.float32


def test_the_stored_result_has_the_claims_of_the_lecture():
    kept = results.open("test_time_training").risk.mean("seed").sel(shift=30.0)
    assert kept.sel(model="test-time training").isel(n=-1) < 0.05 < fixed_risk(30.0) - 0.03
    assert kept.sel(model="fixed weights").min() > fixed_risk(30.0) - 0.05


def test_bad_settings_are_one_sentence(tmp_path):
    for change, sentence in [
        (dict(model=("gpt",)), "model must be among fixed weights, test-time training, no pretraining"),
        (dict(n=(4,)), "n must be at least 8"),
        (dict(r=9), "at most d = 8; got 9"),
        (dict(lam=0.0), "lam must be positive"),
        (dict(tasks=0), "tasks, prompts and n_pre must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            lecture.run(replace(TINY, **change), cache=tmp_path / "cache")
    assert not list(tmp_path.iterdir())
