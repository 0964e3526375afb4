"""Denoiser and classifier on the same data, at a tiny preset: both are the networks of the page."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.foundation_models import diffusion
from flbook.lectures.foundation_models.diffusion import Setting
from flbook.lectures.foundation_models.diffusion.noise_prediction import noising, stationary_point

TINY = diffusion.experiment.setting("tiny")
LONG = replace(TINY, n_snr2=(0.75,), mu=(4.0,), t=(0.2,), d=400, steps=3000)


def test_training_ends_near_the_prediction_and_between_its_two_bounds():
    for n_snr2 in (0.75, 6.0):
        setting = replace(LONG, n_snr2=(n_snr2,))
        end = diffusion.experiment.measure(setting)
        assert (end.gradient < 1e-6).all()
        np.testing.assert_allclose(end.ratio.mean(), stationary_point(4.0, n_snr2, 4, *noising(0.2)).ratio, rtol=0.1)
        low, high = sorted((1, n_snr2 / 2))
        assert ((low * 0.95 < end.ratio) & (end.ratio < high * 1.05)).all()


def test_the_race_ends_where_its_networks_do():
    setting = replace(LONG, steps=20)
    race = diffusion.race(setting)
    assert set(race.dims) == {"step", "seed"} and race.step[-1] == 20
    network = diffusion.denoiser(setting, 0.75, 4.0, 0.2)
    params = fit(network, GradientDescent(setting.lr(0.75, 4.0, 0.2)), 20).params
    z = network.responses(params).abs()
    np.testing.assert_allclose(race.denoiser[-1], z[..., :2].mean((-2, -1)) / z[..., 2:].mean((-2, -1)), rtol=1e-6)


def test_both_networks_have_the_same_noise_and_the_first_neurons():
    network, labels = (make(TINY, 0.75, 2.0, *rest) for make, rest in
                       ((diffusion.denoiser, (0.2,)), (diffusion.classifier, ())))
    assert torch.equal(network.basis.b_b, labels.basis.b_b)
    assert torch.equal(network.basis.w_b, labels.basis.w_b[:, : TINY.m])
    square = network.basis.b_b.diagonal(dim1=-2, dim2=-1)
    np.testing.assert_allclose(square[:, :2], 4.0)
    assert (TINY.n * 4 / square[:, 2:]).mean().item() == pytest.approx(0.75, rel=0.2)
    assert network.share.sum() == pytest.approx(2) and network.share[0] == 0.5


def test_a_classifier_fits_and_says_its_accuracy():
    setting = replace(LONG, d=1000)
    strong = diffusion.classifier(setting, 40.0, 10.0)
    params = fit(strong, GradientDescent(0.3), 300).params
    assert (diffusion.accuracy(strong, params) > 0.99).all() and (strong.train_loss(params) < 0.05).all()
    turned = replace(strong, a=-strong.a)
    assert (diffusion.accuracy(turned, params) < 0.01).all()
    signal, noise = diffusion.seen(strong, params)
    assert (signal > 3 * noise).all()


def test_the_page_takes_ten_seeds_at_unit_noise():
    setting = Setting.at_noise_one(5.0)
    assert setting.sigma_xi(*setting.n_snr2, 5.0) == pytest.approx(1.0) and len(setting.seed) == 10
    assert setting.n_snr2[0] == pytest.approx(0.75)


def test_refusals():
    with pytest.raises(ValueError, match="^n must be even"):
        replace(TINY, n=5)
    with pytest.raises(ValueError, match=r"^d must be at least n \+ m \+ 2 = 16"):
        replace(TINY, d=15)


def test_a_probe_tells_a_class_as_far_as_it_was_seen_more_often():
    setting = Setting.at_noise_one(5.0, seed=(0, 1))
    told = []
    for plus in (15, 20):
        training = diffusion.with_classes(diffusion.denoiser(setting, *setting.n_snr2, 5.0, 0.2), plus)
        params, _ = fit(training, GradientDescent(0.7 * setting.lr(*setting.n_snr2, 5.0, 0.2)), 600)
        told.append(float(diffusion.probed(training, params).mean()))
    assert abs(told[0] - 0.5) < 0.02 and told[1] > 0.6
