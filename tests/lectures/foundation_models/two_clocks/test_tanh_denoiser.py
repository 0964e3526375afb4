"""True tanh features: what is drawn, and the moments against sums by hand; a cell of the stored result."""

import numpy as np
import pytest
import torch

from flbook.lectures.foundation_models.two_clocks import tanh_denoiser, wide_features

SETTING = tanh_denoiser.experiment.setting("tiny")


@pytest.mark.parametrize("data", tanh_denoiser.DATA)
def test_samples_have_mean_zero_and_variance_one_a_coordinate(data):
    x, new = tanh_denoiser.draw(SETTING, data, 1500, 0)
    both = torch.cat([x, new])
    assert float(both.mean()) == pytest.approx(0, abs=0.01) and float(both.var()) == pytest.approx(1, abs=0.03)


def test_gaussian_digits_have_the_covariance_of_digits():
    digits, normal = (torch.cat(tanh_denoiser.draw(SETTING, data, 1500, 0)).T.cov() for data in tanh_denoiser.DATA[1:])
    assert float(torch.linalg.matrix_norm(digits - normal) / torch.linalg.matrix_norm(digits)) < 0.15


def test_moments_by_hand():
    x, w = torch.eye(3, dtype=torch.float64), tanh_denoiser.first_layer(5, 3, 0)
    torch.testing.assert_close(w.norm(dim=-1), torch.ones(5, dtype=torch.float64))
    u, v = tanh_denoiser.moments(x, w, 1 - 1e-12, 6, 0, "noise")  # nearly no noise
    phi = torch.tanh(x @ w.T)
    torch.testing.assert_close(u, phi.T @ phi / 15, rtol=0, atol=1e-5)
    assert v.shape == (5, 3)


def test_settings_out_of_range_are_refused():
    for wrong, words in (({"n": (1600,)}, "pictures are left"), ({"kept": 0.0}, "kept")):
        with pytest.raises(ValueError, match=words):
            tanh_denoiser.experiment.setting(**wrong)
    for wrong, words in (({"n": (16,)}, "some directions"), ({"kept": 1.0}, "kept")):
        with pytest.raises(ValueError, match=words):
            wide_features.experiment.setting(**wrong)


def test_curves_hold_the_landmarks_of_the_run():
    found, marks = tanh_denoiser.curves(SETTING), tanh_denoiser.run(SETTING)
    np.testing.assert_allclose(found.test.min("s"), marks.best.isel(seed=0), rtol=1e-5)


def test_both_kinds_of_features_learn_at_the_same_time():
    found = wide_features.run("tiny").mean(["seed", "n", "each"])
    assert float(found.tanh_learned) == pytest.approx(float(found.gaussian_learned), rel=0.15)
