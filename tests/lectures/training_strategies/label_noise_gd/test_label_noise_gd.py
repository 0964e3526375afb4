"""The three rules at a tiny preset: the sweep, the race and the late loss tell one story."""

import math
from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.training_strategies import label_noise_gd
from flbook.lectures.training_strategies.label_noise_gd import RULES

TINY = label_noise_gd.experiment.setting("tiny")


def test_the_race_ends_where_the_sweep_does():
    race, cells = label_noise_gd.race(TINY), label_noise_gd.experiment.measure(TINY).isel(lr=0)
    assert set(race.dims) == {"step", "rule", "seed"} and race.step[-1] == TINY.steps
    for name in ("test_error", "train_loss"):
        np.testing.assert_allclose(race[name].isel(step=-1), cells[name].transpose("rule", "seed"), rtol=1e-5)
    assert (race.gamma[0] == 0).all() and (race.rho[0] == 0).all() and (race.lead[0] == 0).all()
    for name in race:
        assert race[name].attrs["long_name"] and "units" in race[name].attrs, name


def test_smoothing_rests_at_the_margin_and_the_loss_of_the_page():
    setting = replace(TINY, rule=RULES[1:2], lr=(0.6,), steps=600, flip_prob=0.2)
    end = label_noise_gd.experiment.measure(setting)
    np.testing.assert_allclose(end.margin, math.log(0.8 / 0.2), rtol=1e-4)
    np.testing.assert_allclose(end.train_loss, -math.log(0.8), rtol=1e-4)


def test_flips_belong_to_a_seed_and_not_to_the_grid_around_it():
    noise = replace(TINY, rule=RULES[2:], lr=(0.6,))
    whole, alone = (label_noise_gd.experiment.measure(one) for one in (noise, replace(noise, seed=(2,))))
    np.testing.assert_allclose(whole.train_loss.sel(seed=2), alone.train_loss.sel(seed=2), rtol=1e-4)
    assert len(set(whole.train_loss.values.ravel().round(4).tolist())) == 3


def test_label_noise_gains_on_the_noise_and_its_late_loss_is_near_the_fixed_point():
    setting = label_noise_gd.experiment.setting("rates", lr=(0.25, 0.5), seed=(0, 1, 2))
    gain = label_noise_gd.growth(setting).rate.mean("seed")
    assert gain[0] == pytest.approx(setting.drift(0.25), rel=0.35) and 3 < gain[1] / gain[0] < 6
    late = label_noise_gd.late(replace(setting, lr=(0.5,), steps=600, seed=(0, 1)))
    np.testing.assert_allclose(late.train_loss, -math.log(0.8), rtol=0.08)
