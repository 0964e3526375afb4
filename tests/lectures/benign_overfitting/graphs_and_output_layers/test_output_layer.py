"""Both layers trained, at a tiny preset: the two regimes, and the balance."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.benign_overfitting.graphs_and_output_layers import output_layer
from flbook.lectures.benign_overfitting.graphs_and_output_layers.output_layer import Setting, measure
from flbook.runs import settings

TINY = Setting(v_0=(0.01, 3.0), r=(0.1, 50.0), seed=(0, 1, 2), d=400, steps=800, points=64)


def test_a_labelled_dataset_and_the_two_regimes():
    cells = measure(TINY)
    assert set(cells) == {"test_error", "train_error", "train_loss", "output"}
    for name, variable in {**cells.data_vars, **cells.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
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


def test_a_cell_does_not_see_the_grid_around_it():
    setting = replace(TINY, steps=50)
    whole, one = measure(setting), measure(replace(setting, v_0=(3.0,), seed=(2,), r=(50.0,)))
    for name in one:
        expected = whole[name].sel(v_0=3.0, seed=2, r=50.0)
        np.testing.assert_allclose(one[name].squeeze(), expected, rtol=1e-3, atol=0.02)


@pytest.mark.parametrize("preset", [Setting.book, Setting.growing, Setting.paper])
def test_presets_can_be_run(preset):
    output_layer.check(preset())
    assert settings.to_json(preset())


@pytest.mark.parametrize("change, sentence", [
    (dict(v_0=(0.0,)), "v_0 must be positive and finite"),
    (dict(r=(0.0,)), "r must be positive, so that there is a signal; got 0.0"),
    (dict(flip_prob=0.5), r"flip_prob must lie in \[0, 1/2\)"),
])
def test_bad_settings_are_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        output_layer.run(replace(TINY, **change))
