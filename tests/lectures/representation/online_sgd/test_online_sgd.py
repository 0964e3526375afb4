"""One-pass SGD at tiny sizes, its equation, and the stored result."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.representation import online_sgd as experiment
from flbook.lectures.representation.online_sgd import Setting
from flbook.runs import results

TINY = Setting(link=(1, 2), d=(10, 20), seed=(0, 1, 2, 3), time=(0.0, 1.0, 10.0))


def test_tiny_preset():
    found = experiment.measure(TINY)
    assert dict(found.sizes) == {"link": 2, "d": 2, "seed": 4, "time": 3}
    np.testing.assert_allclose(found.overlap.sel(time=0.0, d=20), 20**-0.5)
    assert float(np.abs(found.overlap.sel(time=10.0)).mean()) > 0.5


def test_a_cell_does_not_depend_on_the_grid_around_it():
    whole = experiment.measure(TINY)
    part = experiment.measure(replace(TINY, link=(2,), d=(20,), seed=(2,), time=(10.0, 1.0)))
    chosen = whole.sel(link=[2], d=[20], seed=[2])
    np.testing.assert_allclose(chosen.overlap.sel(time=[10.0, 1.0]), part.overlap)
    np.testing.assert_allclose(chosen.escape, part.escape)


def test_the_equation_starts_where_the_runs_start_and_stops_where_it_should():
    found = experiment.equation(replace(TINY, link=(2,), time=(0.0, 100.0)))
    np.testing.assert_allclose(found.sel(time=0.0).squeeze(), [10**-0.5, 20**-0.5])
    np.testing.assert_allclose(found.sel(time=100.0), (1.5 / 4) ** 0.5, rtol=1e-3)


def test_runs_follow_the_equation():
    setting = Setting(d=(800,), start=0.4, lr=0.2, seed=tuple(range(12)), time=(1.0, 3.0))
    gap = experiment.measure(setting).overlap.mean("seed") - experiment.equation(setting)
    assert float(np.abs(gap).max()) < 0.04


def test_only_a_second_look_sees_the_third_polynomial():
    few = {"d": (400,), "seed": tuple(range(8)), "time": (8.0,)}
    once, twice = (experiment.measure(replace(Setting.reuse(rule), **few)).overlap for rule in ("erf", "twice"))
    assert float(twice.mean()) > 0.2 and abs(float(once.mean())) < 0.1


def test_steps_shrink_for_flat_links():
    assert experiment.neuron(Setting(), 2, 64).lr == 0.5
    assert experiment.neuron(Setting(), 3, 64).lr == 0.5 / 8
    assert experiment.power(Setting(), 3) == 2 and experiment.power(Setting.reuse("twice"), 3) == 1


@pytest.mark.parametrize(("d", "seed"), [(32, 0), (32, 199), (64, 7)])
def test_stored_cells_come_out_again(d, seed):
    stored = results.open("online_sgd").sel(d=d, seed=seed).squeeze("link")
    again = experiment.measure(replace(Setting.paper(), d=(d,), seed=(seed,))).squeeze()
    np.testing.assert_allclose(stored.overlap, again.overlap, atol=1e-5)
    np.testing.assert_allclose(stored.escape, again.escape)


@pytest.mark.parametrize(("change", "sentence"), [
    ({"rule": "adam"}, "rule must be own, erf or twice, not 'adam'"),
    ({"lr": 0.0}, "lr > 0"),
    ({"start": 1.5}, "start must be an overlap between -1 and 1.*not 1.5"),
])  # fmt: skip
def test_bad_settings_get_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(TINY, **change)
