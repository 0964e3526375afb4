"""Test-time training at a tiny preset: floors and who gets below them, what each stage leaves, rivals."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning import test_time_training as lecture
from flbook.lectures.in_context_learning.test_time_training.link_shift import fixed_risk, linear_floor, shifted_link

TINY = lecture.experiment.setting("tiny")


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
