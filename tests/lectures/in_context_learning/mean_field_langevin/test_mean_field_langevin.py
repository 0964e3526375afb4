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


def test_rates_are_ordered_and_measured_ones_are_linearised():
    found = lecture.rates(lecture.grid(TINY))
    assert (found.a_priori < found.at_rest).all() and (found.at_rest < found.frozen_rate).all()
    assert (found.frozen_rate < found.rate).all()
    assert (found.curved < found.frozen_rate).all() and float(found.curved[0]) > 10 * float(found.at_rest[0])
    np.testing.assert_allclose(found.measured, found.rate, rtol=0.02)


def test_data_that_see_no_side_leave_a_barrier_and_those_that_do_a_factor():
    setting = replace(TINY, lam=(0.05, 0.1), cells=401)
    plain, tilted = (lecture.mirrored(setting, tilt) for tilt in (0.0, 0.3))
    np.testing.assert_allclose(lecture.seen(plain), 0, atol=1e-20)
    unseen, seen = lecture.rates(plain), lecture.rates(tilted)
    np.testing.assert_allclose(unseen.rate, unseen.frozen_rate, rtol=1e-6)
    np.testing.assert_allclose(unseen.rate / unseen.kramers, [0.93, 0.89], atol=0.02)
    np.testing.assert_allclose(seen.rate / unseen.rate, 1 + lecture.seen(tilted) / plain.lam, rtol=0.01)
    np.testing.assert_allclose(seen.rate / unseen.rate, [1.77, 1.355], rtol=0.01)
