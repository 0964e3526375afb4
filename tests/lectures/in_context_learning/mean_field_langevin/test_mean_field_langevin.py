"""Langevin particles beside their density at a tiny preset: bounds that always hold, and the size of the deviation."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.in_context_learning import mean_field_langevin as lecture
from flbook.lectures.in_context_learning.mean_field_langevin import Setting

TINY = Setting(lam=(0.1, 0.3), width=(4, 16), seed=(0, 1), neurons=32, time=3.0, cells=201, dt=0.05)


def test_a_labelled_dataset_and_its_cells_do_not_see_each_other():
    whole = lecture.measure(TINY)
    assert dict(whole.sizes) == {"lam": 2, "width": 2, "seed": 2, "time": 4}
    for name, variable in {**whole.data_vars, **whole.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    one = lecture.measure(replace(TINY, lam=(0.3,), width=(16,), seed=(1,)))
    np.testing.assert_allclose(one.deviation.squeeze(), whole.deviation.sel(lam=0.3, width=16, seed=1), rtol=1e-3)


def test_the_deviation_is_of_order_one_over_n():
    setting = replace(TINY, lam=(0.3,), width=(8,), neurons=256, time=16.0)
    late = lecture.measure(setting).deviation.sel(time=slice(10, None))
    predicted = lecture.constants(setting).interacting.item()
    assert 0.4 < late.mean() / predicted < 2.5


def test_bounds_hold_and_the_sandwich_closes():
    flow = lecture.descent(replace(TINY, time=4.0, every=0.5))
    assert (flow.gap <= flow.bound * (1 + 1e-9)).all() and (flow.certificate >= flow.gap).all()
    np.testing.assert_allclose(flow.gap, flow.divergence + flow.distance, rtol=1e-8)
    np.testing.assert_allclose(flow.certificate, flow.gap + flow.distance + flow.back, rtol=1e-8)
    assert (flow.a_priori < flow.at_rest).all() and (flow.at_rest < flow.frozen_rate).all()
    assert (flow.frozen_rate < flow.rate).all()
    np.testing.assert_allclose(lecture.relaxation(TINY), flow.rate, rtol=0.02)


@pytest.mark.parametrize("preset", [Setting.book, Setting.densities, Setting.paper])
def test_presets(preset):
    lecture.check(preset())


def test_bad_settings_are_one_sentence():
    for change, sentence in [
        (dict(width=(64,)), "width must lie between 1 and neurons = 32"),
        (dict(lam=(0.0,)), "lam and decay must be positive"),
        (dict(lr=0.0), "lr must be positive"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            lecture.run(replace(TINY, **change))


def test_what_is_stored():
    kept = lecture.stored(lecture.measure(TINY))
    assert kept.deviation.dtype == "float32" and kept.time.values.tolist() == [0.0]
