"""Two stages at a tiny preset: their order, the exact count on training noise, and what fresh noise does not see."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.benign_overfitting import label_noise_stages as stages
from flbook.lectures.benign_overfitting.label_noise_stages import experiment

TINY = experiment.setting("tiny", model=("network",), d=(10**8,), steps=120, points=16)


def test_on_training_noise_the_error_is_half_the_fitted_flips():
    setting = replace(TINY, flip_prob=(0.1,), n_snr2=(12.0,))
    strong = experiment.measure(setting).squeeze(("model", "flip_prob", "d", "n_snr2")).sel(step=slice(2, None))
    np.testing.assert_allclose(strong.test_recycled, 0.5 * 0.1 * strong.fitted_flipped, atol=1e-7)


@pytest.mark.parametrize("model", ["network", "linear", "lazy"])
def test_the_limit_is_where_many_networks_end(model):
    setting = replace(TINY, model=(model,), n_snr2=(4.0, 12.0), n=60, seed=(0, 1, 2, 3), steps=60)
    run, limit = experiment.measure(setting).squeeze(), stages.limit(setting, model).squeeze()
    after = {"step": slice(3, None)}
    ratio = run.signal.mean("seed").sel(**after) / limit.signal.sel(**after)
    assert abs(ratio - 1).max() < (0.01 if model == "linear" else 0.12)
    assert abs(run.fitted_flipped.mean("seed") - limit.fitted_flipped).sel(**after).max() < 0.35


def test_presets_flip_exactly_pn_labels():
    for setting in map(experiment.setting, ("book", "longer")):
        for p in setting.flip_prob:
            assert p * setting.n == pytest.approx(round(p * setting.n))
