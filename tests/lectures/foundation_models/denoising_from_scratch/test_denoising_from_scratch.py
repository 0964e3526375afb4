"""The experiment on digits: what it measures, and what is stored of it."""

import numpy as np
import pytest
import torch

from flbook.lectures.foundation_models import denoising_from_scratch as lecture
from flbook.lectures.foundation_models.denoising_from_scratch import Setting
from flbook.lectures.foundation_models.denoising_from_scratch import denoising_from_scratch_pictures as pictures
from flbook.lectures.foundation_models.denoising_from_scratch.gaussian_denoisers import GaussianDenoiser


def test_the_split_is_the_same_for_every_number_of_pictures():
    few, many = lecture.pictures(100, 3), lecture.pictures(1500, 3)
    assert torch.equal(few.x, many.x[:100]) and torch.equal(few.x_test, many.x_test)
    assert few.x_test.shape == (297, 1, 8, 8)
    assert float(lecture.nearest(many.x_test, many.x).amin()) > 0.5  # no test picture is a training picture
    assert float(lecture.nearest(few.x, many.x).amax()) < 1e-3


def test_the_loss_of_a_denoiser_that_knows_the_law():
    """Pictures of independent pixels of variance s: the linear denoiser has its textbook loss."""
    x = 2 * torch.randn(3000, 1, 8, 8)
    rule = GaussianDenoiser.fitted(x.flatten(1))
    for t in (60, 300):
        kept = lecture.SCHEDULE.kept(t)
        found = lecture.loss(lecture.on_pictures(lambda y, kept=kept: rule.noise(y, kept)), x, t, 0)
        assert found == pytest.approx(kept * 4 / (kept * 4 + 1 - kept), rel=0.05)
        assert lecture.loss(lambda y, t: torch.zeros_like(y), x, t, 0) == pytest.approx(1, rel=0.02)


def test_the_minimiser_copies_and_its_smoothing_does_not():
    shown, setting = lecture.pictures(60, 0), lecture.experiment.setting("tiny", samples=8, sampling_steps=50)
    copies = lecture.drawn(lecture.memoriser(shown), setting, 1)
    assert float(lecture.nearest(copies, shown.x).max()) < 1e-3
    assert torch.equal(pictures.nearest_pictures(copies, shown.x).round(decimals=3), copies.round(decimals=3))
    smooth = lecture.rivals(shown, 60)["smoothed 0.3"]
    noisy = lecture.SCHEDULE.noised(shown.x, torch.tensor(60), torch.randn(60, 1, 8, 8)).flatten(1)
    exact = lecture.memoriser(shown)(noisy.reshape(60, 1, 8, 8), 60).flatten(1)
    assert float((smooth(noisy) - exact).abs().mean()) > 0.05


def test_bad_settings_get_a_sentence():
    with pytest.raises(ValueError, match="^n must be at most 1500"):
        Setting(n=(1600,))
    with pytest.raises(ValueError, match="^t and sampling_steps must be at most 1000"):
        Setting(t=(1001,))


def test_the_checkpoint_has_the_losses_that_are_stored():
    """float16 moves the weights a little."""
    found, shown = lecture.experiment.stored().sel(n=1500, seed=0), lecture.pictures(1500, 0)
    network = lecture.opened()
    for t in (60, 120, 300):
        assert lecture.loss(network, shown.x_test, t, 0) == pytest.approx(float(found.network_test.sel(t=t)), rel=0.01)
        own = lecture.loss(lecture.memoriser(shown), shown.x_test, t, 0)
        assert own == pytest.approx(float(found.memoriser_test.sel(t=t)), rel=2e-3)
        rules = {name: lecture.on_pictures(rule) for name, rule in lecture.rivals(shown, t).items()}
        for name in ("wiener", "class_gaussians"):
            again = lecture.loss(rules[name], shown.x_test, t, 0)
            assert again == pytest.approx(float(found[f"{name}_test"].sel(t=t)), rel=2e-3)
    np.testing.assert_allclose(found.distance_memoriser, 0, atol=1e-3)


def test_the_pictures_draw():
    found = lecture.experiment.measure("tiny")
    assert len(pictures.by_noise(found.isel(n=0)).axes) == 2
    assert pictures.sheet({"a": torch.zeros(3, 1, 8, 8), "b": torch.ones(3, 1, 8, 8)}).axes
    places = torch.zeros(4, 2)
    assert pictures.in_the_plane(places, places, {"exact": places, "network": places}, "title").axes


def test_memory_is_seen_through_noise():
    """Copies with noise are as far off as asked, and nearest to training pictures; fresh draws are by chance."""
    shown = lecture.pictures(100, 0)
    copies = lecture.noisy_copies(shown, 200, 3.0, seed=0)
    assert float(lecture.nearest(copies, shown.x).median()) == pytest.approx(3.0, rel=0.1)
    assert lecture.seen(copies, shown) > 0.95
    assert lecture.seen(shown.x, shown) == 1 and lecture.seen(shown.x_test, shown) == 0
    others = lecture.Pictures(shown.x_test[:100], shown.y, shown.x_test[100:])
    assert lecture.seen(shown.x, others) == pytest.approx(100 / 297, abs=0.15)
