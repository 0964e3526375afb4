"""The landscape at a tiny preset: exact saddles, the rate of escape, prompts of finite length."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import attention_landscape as lecture
from flbook.lectures.in_context_learning.attention_landscape import landscape as theory
from flbook.lectures.in_context_learning.shared import mean_field

TINY = lecture.experiment.setting("tiny")


def test_dead_features_keep_their_rung_and_the_bound_holds():
    dataset = lecture.run(TINY)
    assert (dataset.loss.sel(start="dead") >= dataset.missing / 6 - 1e-6).all()
    alive = dataset.sel(start="saddle")
    assert (alive.steepness >= -theory.arch_slope(alive.loss.values, 3, 1.0) - 1e-7).all()


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_saddles_are_critical_and_the_rate_is_the_hessians(missing):
    teacher, population = lecture.truth(TINY)
    exact = lecture.saddle(TINY, missing, teacher)
    move, loss = mean_field.velocity(exact, population)
    assert max(part.abs().max() for part in move) < 1e-12
    torch.testing.assert_close(loss, torch.full((2,), missing / 6, dtype=torch.float64))
    one = mean_field.Population(*(part[0] for part in population))

    def downhill(theta):
        return torch.cat(mean_field.velocity(mean_field.Particles(*theta.split([3, 6], -1)), one)[0], -1)

    theta = torch.cat([exact.a[0], exact.w[0]], -1)
    matrix = torch.autograd.functional.jacobian(downhill, theta, vectorize=True).reshape(theta.numel(), -1)
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-9)
    rate = lecture.escape_rate(TINY, missing, exact, population)[0]
    torch.testing.assert_close(torch.linalg.eigvalsh(matrix)[-1], rate, rtol=1e-8, atol=0)


def test_escape():
    found = lecture.escape(TINY.thinned(missing=(1,), steps=250))
    np.testing.assert_allclose(found.fitted, found.eigenvalue, rtol=0.03)
    with pytest.raises(ValueError, match="more steps"):
        lecture.fitted_rate(np.zeros(9), 0.1)


def test_networks_are_built_that_attain_the_bound():
    setting = lecture.experiment.setting(seed=(0, 1))
    levels, slopes = lecture.attaining(setting, *lecture.truth(setting))
    np.testing.assert_allclose(slopes, theory.arch_slope(levels, 5, 1.0), rtol=1e-8)


def test_the_rate_falls_with_the_features_as_one_over_their_number():
    rates = lecture.scaling((2, 8), (80,), (0, 1, 2, 3))
    assert float((rates.sel(k=2) / rates.sel(k=8)).mean()) == pytest.approx(4, rel=0.3)


@pytest.mark.parametrize("start, steps", [("dead", 20), ("saddle", 50)])
def test_the_stored_result_is_what_the_library_computes(start, steps):
    stored = lecture.experiment.stored()
    setting = lecture.experiment.setting("paper", start=(start,), missing=(1,), seed=(3,), steps=steps)
    fresh = lecture.experiment.measure(setting).squeeze()
    kept = stored.sel(start=start, missing=1, seed=3).isel(time=slice(fresh.sizes["time"]))
    for name in ("loss", "steepness"):
        np.testing.assert_allclose(fresh[name], kept[name], rtol=1e-2)
