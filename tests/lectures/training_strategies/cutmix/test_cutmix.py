"""The ways of training at a tiny preset: the sweep, the race, the resting output, and what either half does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import GradientDescent, Momentum, fit
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.cutmix import RECIPES, Setting, recipe_of, smoothing_for
from flbook.lectures.training_strategies.cutmix.by_feature import feature_parts
from flbook.lectures.training_strategies.cutmix.pasting import CutMix, Cutout
from flbook.lectures.training_strategies.cutmix.resting import resting_output
from flbook.models.activations import identity

TINY = cutmix.experiment.setting("tiny")
SMALL = Setting(seed=(0, 1), n=40, d=400)


def test_the_race_ends_where_the_sweep_does():
    race, cells = cutmix.race(TINY), cutmix.experiment.measure(TINY)
    assert set(race.dims) == {"step", "recipe", "seed", "frequency"} and race.step[-1] == TINY.steps
    for name in ("z", "test_error"):
        np.testing.assert_allclose(race[name].isel(step=-1), cells[name], rtol=1e-5)
        assert race[name].attrs["long_name"] and "units" in race[name].attrs
    np.testing.assert_allclose(race.frequency, [0.8, 0.15, 0.05])


def test_smoothing_has_its_minimum_where_cutmix_has():
    rest = resting_output()
    whole, single = recipe_of(TINY, "label smoothing"), recipe_of(TINY, "one patch, smoothed")
    assert np.log(1 / whole.flip_prob - 1) == pytest.approx(3 * rest) and whole.size == 0
    assert np.log(1 / single.flip_prob - 1) == pytest.approx(rest) and single.size == 2
    assert smoothing_for(np.log(9)) == pytest.approx(0.1)
    assert [type(recipe_of(TINY, name)) for name in RECIPES].count(CutMix) == 3


@pytest.mark.parametrize("rival", ["network", "linear", "lazy"])
def test_every_model_comes_to_rest_at_the_root(rival):
    training = cutmix.problem(replace(SMALL, sigma_0=0.1), CutMix(partners=None), dtype=torch.float64)
    lr = 1.0
    if rival == "linear":
        training, lr = replace(training, activation=identity), 0.5
    elif rival == "lazy":
        training, lr = training.lazy(), 10.0
    params, _ = fit(training, Momentum(lr, 0.9), 1500)
    z, said = feature_parts(training, params), training.said(params) * training.observed[:, None]
    assert (z[:, :2] - resting_output()).abs().max() < 0.03
    assert said.mean().item() == pytest.approx(resting_output(), abs=0.02)


def test_single_patches_grow_apart_by_the_log_of_frequency_and_smoothing_closes_the_gap():
    training = cutmix.problem(SMALL, Cutout(2))
    params, _ = fit(training, GradientDescent(2.0), 1500)
    gap = feature_parts(training, params)[:, [0]] - feature_parts(training, params)
    torch.testing.assert_close(gap, torch.tensor([0.8 / 0.8, 16 / 3, 16.0]).log().expand(2, 3), atol=0.35, rtol=0)
    smoothed = cutmix.problem(SMALL, recipe_of(SMALL, "one patch, smoothed"))
    params, _ = fit(smoothed, GradientDescent(2.0), 1500)
    torch.testing.assert_close(feature_parts(smoothed, params), torch.full((2, 3), resting_output()).float(), atol=0.1,
                               rtol=0)  # fmt: skip


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="^recipe "):
        Setting(recipe=("mixup",))
    with pytest.raises(ValueError, match="^n must"):
        Setting(n=12)
