"""Langevin particles beside their density at a tiny preset: bounds that always hold, and the size of the deviation."""

from dataclasses import replace

import numpy as np

from flbook.lectures.in_context_learning import mean_field_langevin as lecture

TINY = lecture.experiment.setting("tiny")


def test_the_deviation_is_of_order_one_over_n():
    setting = replace(TINY, lam=(0.3,), width=(8,), neurons=256, time=16.0)
    late = lecture.experiment.measure(setting).deviation.sel(time=slice(10, None))
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
