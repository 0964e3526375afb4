"""One-pass SGD at tiny sizes, and its equation."""

from dataclasses import replace

import numpy as np

from flbook.lectures.representation import online_sgd
from flbook.lectures.representation.online_sgd import Setting, experiment

TINY = experiment.setting("tiny")


def test_times_may_come_in_any_order():
    part = experiment.measure(replace(TINY, link=(2,), d=(20,), seed=(2,), time=(10.0, 1.0)))
    chosen = experiment.run(TINY).sel(link=[2], d=[20], seed=[2])
    np.testing.assert_allclose(chosen.overlap.sel(time=[10.0, 1.0]), part.overlap)
    np.testing.assert_allclose(chosen.escape, part.escape)


def test_the_equation_starts_where_the_runs_start_and_stops_where_it_should():
    found = online_sgd.equation(replace(TINY, link=(2,), time=(0.0, 100.0)))
    np.testing.assert_allclose(found.sel(time=0.0).squeeze(), [10**-0.5, 20**-0.5])
    np.testing.assert_allclose(found.sel(time=100.0), (1.5 / 4) ** 0.5, rtol=1e-3)


def test_runs_follow_the_equation():
    setting = Setting(d=(800,), start=0.4, lr=0.2, seed=tuple(range(12)), time=(1.0, 3.0))
    gap = experiment.measure(setting).overlap.mean("seed") - online_sgd.equation(setting)
    assert float(np.abs(gap).max()) < 0.04


def test_only_a_second_look_sees_the_third_polynomial():
    few = {"d": (400,), "seed": tuple(range(8)), "time": (8.0,)}
    once, twice = (experiment.measure(replace(Setting.reuse(rule), **few)).overlap for rule in ("erf", "twice"))
    assert float(twice.mean()) > 0.2 and abs(float(once.mean())) < 0.1
