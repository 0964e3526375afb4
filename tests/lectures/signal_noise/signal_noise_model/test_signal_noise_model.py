"""The digits experiment at a tiny size, and the closed forms of its averaging classifier."""

import math

import numpy as np
import pytest
import torch

from flbook import theory
from flbook.data.images import ImageNoise, digits
from flbook.estimators import averaging
from flbook.lectures.signal_noise import signal_noise_model as digits_in_noise
from flbook.lectures.signal_noise.signal_noise_model import averaging_error_on_images, experiment
from flbook.models.cnn import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

# torch warns of itself when it is first asked for a forward-mode derivative, which the lazy rival takes
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")

TINY = experiment.setting("tiny", d=(64,), steps=40)


def test_the_ensemble_is_the_network_that_the_page_trains():
    setting = TINY.thinned(model=("network",), snr=(0.5,), seed=(1,))
    data = ImageNoise(digits((3, 8)), n=6, snr=0.5)
    sample, fresh = data.draw(1), data.draw_test(1)
    problem = Training(TwoLayerCNN(64, setting.m, setting.sigma_0, seed=1), sample.x, sample.observed)
    lr = setting.lr * 6 * setting.m / (64 * (1 + 6 * 0.5**2))
    params = fit(problem, GradientDescent(lr), setting.steps).params
    drawn = digits_in_noise.ensemble(setting, 6, 64)
    members, trained = digits_in_noise.train("network", setting, drawn)
    torch.testing.assert_close(trained["w"][0], params["w"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(drawn.unseen[0], fresh.images.float())
    share = digits_in_noise.judge(members, trained, drawn)["noise_share"]
    margin = sample.y * problem.predict(params)
    only_noise = sample.y * problem.predict(params, sample.x * torch.tensor([0.0, 1.0])[:, None])
    assert float(share[0]) == pytest.approx(float(only_noise.mean() / margin.mean()), rel=1e-4)


def test_errors_over_pairs_by_hand():
    image, y = torch.tensor([[1.0, -2.0]]), torch.tensor([[1.0, -1.0]])
    noise = torch.tensor([[-1.5, 0.5, 3.0, 1.0]])
    # image 1: wrong beside -1.5; image -2: wrong beside 3.0
    assert float(digits_in_noise.pairs_wrong(image, y, noise)[0]) == 2 / 8


def test_averaging_is_one_step_of_the_linear_model():
    drawn = digits_in_noise.ensemble(TINY, 6, 64)
    trained, params = digits_in_noise.train("averaging", TINY, drawn)
    w = averaging(drawn.x.sum(-2), drawn.y)
    moved = params["w"][:, 0] - params["w"][:, 1]
    cosine = torch.nn.functional.cosine_similarity(moved[:, 0], w)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))
    torch.testing.assert_close(params["w"][:, 0, 0], params["w"][:, 0, -1])


def test_frozen_filters_do_not_move():
    drawn = digits_in_noise.ensemble(TINY, 6, 64)
    trained, params = digits_in_noise.train("frozen", TINY, drawn)
    assert set(params) == {"a"}
    assert float(trained.model.features(trained.x).square().mean()) == pytest.approx(1)


def test_error_on_images_without_variation_is_the_closed_form():
    snr, n, d = 0.05, 4000, 1024
    assert averaging_error_on_images(n, snr, d, digits_in_noise.Moments(0.0, 0.0, 0.0)) == pytest.approx(
        theory.averaging_error(n, snr * math.sqrt(d), d), rel=1e-2)


def test_moments_predict_the_averaging_classifier_on_digits():
    setting = TINY.thinned(model=("averaging",), n=(40,), d=(576,), snr=(0.05, 0.1), seed=tuple(range(20)))
    found = experiment.run(setting).squeeze().mean("seed")
    images = ImageNoise(digits((3, 8)), n=40).moments
    np.testing.assert_allclose(found.test_error, averaging_error_on_images(40, found.snr, 576, images), atol=0.03)
    share = digits_in_noise.averaging_noise_share(40, found.snr, images)
    np.testing.assert_allclose(found.noise_share, share, atol=0.03)


def test_without_variation_images_are_the_signal():
    moments = ImageNoise(digits_in_noise.pictures(TINY.thinned(variation=0.0), 64), n=6).moments
    assert max(moments) < 1e-3
    half = ImageNoise(digits_in_noise.pictures(TINY.thinned(variation=0.5), 64), n=6).moments
    whole = ImageNoise(digits((3, 8)), n=6).moments
    assert half.total == pytest.approx(whole.total / 4, rel=1e-2)
    assert half.square == pytest.approx(whole.square / 16, rel=1e-2)
