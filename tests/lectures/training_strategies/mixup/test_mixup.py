"""The rules at a tiny preset: the sweep, the course and the growth tell one story."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.training_strategies import mixup
from flbook.lectures.training_strategies.mixup import RULES, experiment

TINY = experiment.setting("tiny")


def test_the_course_ends_where_the_sweep_does():
    setting = replace(TINY, rule=RULES, early=20)
    course, cells = mixup.course(setting), experiment.measure(setting).isel(share=0, noise_square=0)
    assert set(course.dims) == {"step", "rule", "seed"} and course.step[-1] == TINY.steps
    for name in cells:
        np.testing.assert_allclose(course[name].isel(step=-1), cells[name].transpose("rule", "seed"), rtol=1e-4,
                                   atol=1e-5)
        assert course[name].attrs["long_name"] and "units" in course[name].attrs
    early, whole = (course.rare_output.sel(rule=rule) for rule in ("early", "mixup"))
    np.testing.assert_allclose(early.sel(step=20), whole.sel(step=20), rtol=1e-5)
    after = course.step[course.step > 20][0]
    assert after <= 22 and not np.allclose(early.sel(step=after), whole.sel(step=after), rtol=1e-4)


@pytest.mark.parametrize("rule", ["standard", "mixup", "inputs"])
def test_growth_is_the_matrix_of_the_page(rule):
    setting = experiment.setting("growing", n=40, d=200, share=(0.1,), rule=(rule,), seed=(0, 1), noise_square=(1.0,))
    found, (rate, ratio) = mixup.growth(setting), setting.growth(rule, 0.1)
    np.testing.assert_allclose(found.common, rate, rtol=2e-3)
    if rule == "standard":
        np.testing.assert_allclose(found.rare, np.log1p(setting.lr / (2 * setting.m) * 0.1), rtol=2e-3)
    else:
        np.testing.assert_allclose(found.rare, rate, rtol=5e-3)
        np.testing.assert_allclose(found.ratio, ratio, rtol=5e-3)


def test_a_setting_of_data_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="must be even"):
        replace(TINY, share=(0.2, 0.15))
