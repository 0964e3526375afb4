"""The experiments at tiny presets: the race ends where the sweep does, the border turns features, batches are taken."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import adam_and_gradient_descent as lecture
from flbook.lectures.training_strategies.adam_and_gradient_descent import feature_border, noisy_digits, small_batches

PLAIN = lecture.experiment.setting("tiny", model=("network",), rule=("gradient descent", "Adam"), alpha=(0.3,))


def test_the_race_ends_where_the_sweep_does_and_a_rule_that_stops_keeps_its_values():
    setting = replace(PLAIN, steps=12)
    race, cells = lecture.race(setting), lecture.experiment.measure(setting).isel(model=0, alpha=0)
    assert race.step[-1] == 20 and set(race.dims) == {"step", "rule", "seed"}
    for name in ("test_error", "train_error", "train_loss"):
        np.testing.assert_allclose(race[name].isel(step=-1), cells[name], rtol=1e-4)
    descent = race.sel(rule="gradient descent")
    assert (np.diff(descent.train_loss.sel(step=slice(12, None)), axis=0) == 0).all()
    assert (np.diff(descent.feature.sel(step=slice(0, 12)), axis=0) != 0).all()
    for name in race:
        assert race[name].attrs["long_name"] and "units" in race[name].attrs, name


def test_at_the_papers_numbers_gradient_descent_learns_the_feature_and_adam_the_noise():
    race = lecture.race(lecture.Setting(seed=(0, 1), adam_steps=500, points=300)).isel(step=-1)
    descent, adam = race.sel(rule="gradient descent"), race.sel(rule="Adam")
    assert (race.train_error == 0).all()
    assert (descent.test_error == 0).all() and (descent.feature > 1.5).all() and (descent.most_noise < 0.1).all()
    assert (adam.test_error > 0.6).all() and (adam.noise > 1).all() and (adam.feature < 0.3).all()


def test_the_border_is_where_half_of_the_samples_pull_the_feature_around():
    assert feature_border.border(100, 0.1) == pytest.approx(math.pi / 100)
    g = 100 * 0.1 * math.sqrt(2 / math.pi)
    assert feature_border.border(100, 0.1) == pytest.approx(2 / g**2)


def test_features_rise_below_the_border_and_fall_above_it():
    book = feature_border.Setting(sigma_xi=(0.4,), ratio=(0.2, 4.0), seed=(0, 1), n=20)
    found = feature_border.experiment.measure(book)
    assert (found.feature.sel(ratio=0.2) > 0.5).all() and (found.feature.sel(ratio=4.0) < -0.5).all()


def test_samples_share_as_many_coordinates_as_asked_for_and_it_takes_more_to_turn_the_feature():
    book = feature_border.Setting(overlap=(0.0, 10.0), sigma_xi=(0.4,), ratio=(1.7,), seed=(0, 1, 2), n=40)
    data = book.data(0.4, 1.7, 10.0)
    used = (data.draw(seed=0).xi[:, 1:] != 0).sum(0)
    assert data.d == 200 and used.double().mean() == pytest.approx(10, rel=0.01)
    assert book.data(0.4, 1.7).disjoint and not data.disjoint
    found = feature_border.experiment.measure(book).feature.squeeze()
    signs = found.sel(rule="sign descent").mean("seed")
    assert float(signs.sel(overlap=0.0)) < -0.5 and float(signs.sel(overlap=10.0)) > 0.3


def test_crossings_are_found_and_curves_without_one_refused():
    mean = np.array([[2.0, 1.0, -1.0, -3.0], [1.0, -1.0, -1.0, -2.0]])
    np.testing.assert_allclose(feature_border.turns(mean, (1.0, 2.0, 8.0, 16.0)), [4.0, math.sqrt(2)])
    for bad in ([1.0, 1.0], [-1.0, -2.0]):
        with pytest.raises(ValueError, match="fall from above zero"):
            feature_border.turns(np.array([bad]), (1.0, 2.0))


def test_a_batch_of_all_samples_is_no_batch_and_smaller_ones_differ():
    setting = small_batches.experiment.setting("tiny", rule=("Adam",), batch=(2, 10))
    found = small_batches.experiment.measure(setting)
    whole = setting.whole
    params = lecture.fit(lecture.problem(whole, setting.alpha), *lecture.rule(whole, "Adam")).params
    noise = lecture.problem(whole, setting.alpha).noise(params).mean(-1)
    np.testing.assert_allclose(found.noise.sel(rule="Adam", batch=10), noise, rtol=1e-4)
    assert (found.noise.sel(batch=2) != found.noise.sel(batch=10)).all()


def test_longest_filters_come_with_their_sign_and_the_signal_is_in_those_of_gradient_descent():
    w = torch.zeros(2, 3, 4)
    w[0, 1, 0], w[0, 2, 1], w[1, 0, 2] = 3.0, 2.0, 5.0
    assert noisy_digits.longest({"w": w}).tolist() == [[3, 0, 0, 0], [0, 0, -5, 0]]
    assert noisy_digits.longest({"w": w}, 2)[1].tolist() == [0, 2, 0, 0]
    found = noisy_digits.experiment.measure(noisy_digits.Setting(snr=0.4, seed=(0, 1))).isel(n=0, zoom=0)
    descent, adam = (found.sel(rule=name) for name in ("gradient descent", "Adam"))
    assert (found.train_error == 0).all() and (descent.cosine > 0.7).all() and (adam.cosine < descent.cosine).all()


def test_a_pixel_becomes_a_block_and_the_signal_to_noise_ratio_stays():
    setting = noisy_digits.Setting(zoom=(1, 2))
    small, large = (setting.data(100, zoom) for zoom in setting.zoom)
    assert (small.d, large.d) == (64, 256)
    block = large.mu.reshape(16, 16)
    torch.testing.assert_close(block[::2, ::2], block[1::2, 1::2])
    torch.testing.assert_close(block[::2, ::2].flatten(), small.mu)
    assert large.mu.norm() == pytest.approx(2 * small.mu.norm().item())


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="s must be at most"):
        lecture.Setting(s=1000)
    with pytest.raises(ValueError, match="ratio must keep α below 1"):
        feature_border.Setting(sigma_xi=(0.02,))
    with pytest.raises(ValueError, match="batch must be at most n = 200; got 300"):
        small_batches.Setting(batch=(300,))
