"""Both layers trained, at a tiny preset: the two regimes, and the balance."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.benign_overfitting.graphs_and_output_layers import output_layer
from flbook.lectures.benign_overfitting.graphs_and_output_layers.output_layer import experiment

TINY = experiment.setting("tiny")


def test_the_two_regimes():
    cells = experiment.run(TINY)
    assert (cells.train_error == 0).all()
    assert (cells.test_error.sel(r=50.0) < 0.05).all() and (cells.test_error.sel(r=0.1) > 0.2).all()
    assert (cells.output.sel(v_0=0.01) > 0.2).all(), "small output weights grow"
    assert (abs(cells.output.sel(v_0=3.0) / 3 - 1) < 0.03).all(), "large ones stay"


def test_growth_keeps_the_balance():
    setting = replace(TINY, r=(50.0,), sigma_0=0.01, lr=0.05, steps=500)
    growth = output_layer.growth(setting).squeeze("r")
    assert growth.drift[0].max() == 0 and growth.drift.max() < 0.01
    halved = output_layer.growth(replace(setting, lr=0.025, steps=1000)).squeeze("r")
    ratio = growth.drift.isel(step=-1) / halved.drift.isel(step=-1)
    np.testing.assert_allclose(ratio, 2.0, rtol=0.25)
    small = growth.isel(step=-1).sel(v_0=0.01)
    np.testing.assert_allclose(small["filter"] ** 2 - small.output**2, 0.04, atol=0.03)
    assert growth.time[-1] == pytest.approx(25.0)
