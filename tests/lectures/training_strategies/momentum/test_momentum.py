"""The experiment at a tiny preset: what its cells, its race and its coasts have in common."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.training_strategies import momentum
from flbook.lectures.training_strategies.momentum import Setting, experiment
from flbook.lectures.training_strategies.momentum.coasting import coast
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

TINY = replace(experiment.setting("tiny"), small=(0.1,))


def test_a_memory_of_one_step_is_gradient_descent():
    training = momentum.problem(TINY, 0.1)
    plain, averaged = (fit(training, one, 50).params["c"] for one in (GradientDescent(2.0), momentum.rule(2.0, 2.0)))
    assert (plain == averaged).all()


def test_the_race_ends_where_the_sweep_does():
    setting = replace(TINY, lr=(2.0,))
    racing, cells = momentum.race(setting), experiment.measure(setting).squeeze(("small", "lr"))
    assert racing.flow[-1] == setting.time
    np.testing.assert_allclose(racing.test_error.isel(flow=-1), cells.test_error)
    np.testing.assert_allclose(racing.test_loss.isel(flow=-1), cells.test_loss)
    for name in racing:
        assert racing[name].attrs["long_name"] and "units" in racing[name].attrs, name


def test_features_coast_as_the_smallest_model_says():
    setting = replace(TINY, lr=(0.5,), memory=(25.0, 100.0), time=1000.0)
    found = momentum.coasts(setting)
    np.testing.assert_allclose(found.coast.mean("seed"), coast(found.memory.values, 0.8), rtol=0.03)


def test_where_the_large_margins_are_never_fitted_there_is_no_coast():
    assert momentum.coasts(replace(TINY, lr=(0.5,), time=5.0)).coast.isnull().all()


def test_a_memory_below_the_step_is_refused():
    with pytest.raises(ValueError, match="memory must be at least the step size"):
        Setting(lr=(10.0,), memory=(5.0,))
