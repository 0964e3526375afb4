"""The trained layer against its closed form, the recursion, tasks that drift."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.optimize import brentq

from flbook.lectures.in_context_learning import mamba_regression as lecture
from flbook.lectures.in_context_learning.shared import forgetting as theory

TINY = lecture.experiment.setting("tiny", d=(3,), steps=300)


def test_predictors_have_the_risk_of_their_law():
    risk = lecture.experiment.measure(replace(TINY, noise=(1.0,), n=(12,), prompts=3000)).risk.mean("seed").squeeze()
    laws = {"mamba": theory.mamba_risk(np.ones(3), 12, 1.0), "attention": theory.attention_risk(np.ones(3), 12, 1.0),
            "lms": theory.lms_risk(3, 12, 1.0), "falling": theory.falling_risk(3, 12, 1.0)}  # fmt: skip
    for name, law in laws.items():
        assert float(risk.sel(predictor=name)) == pytest.approx(float(law), rel=0.06), name
    assert float(risk.sel(predictor="ridge")) == float(risk.min())


def test_training_reaches_the_closed_form():
    history = lecture.training(replace(TINY, steps=900), 3, 12)
    assert history.excess[0].min() > 1 and np.abs(history.excess[-1]).max() < 1e-9
    assert history.off_diagonal[-1].max() < 1e-9
    sample = lecture.training(replace(TINY, steps=900), 3, 12, prompts=400)
    assert 0 < float(sample.excess[-1].mean()) < 0.5


def test_the_trained_state_steps_without_a_residual():
    setting = replace(TINY, steps=900)
    steps = lecture.hidden(setting, 3, 12, lecture.trained(setting, 3, 12))
    np.testing.assert_allclose(steps.state, steps.correlation, atol=1e-6 * float(np.abs(steps.state).max()))
    assert np.abs(steps.state - steps.residual).max() > 0.05


def test_drift_has_its_law():
    found = lecture.drift((0, 1, 2), (0.9,), (0.7, 0.9), d=3, n=30, prompts=1500).risk.mean("seed").squeeze()
    law = [theory.drifting_risk(3, 30, alpha, 0.9, 1.0) for alpha in found.alpha.values]
    np.testing.assert_allclose(found, law, rtol=0.05)


def test_the_crossing_of_two_closed_forms():
    one, n = np.ones(4), np.array([16, 22, 31, 44, 62])
    laws = np.stack([theory.mamba_risk(one, n, 1.0), theory.lms_risk(4, n, 1.0)])
    axes = {"predictor": ["mamba", "lms"], "n": n, "seed": [0, 1, 2]}
    risk = xr.DataArray(np.stack([laws] * 3, -1), axes)
    crossing = brentq(lambda n: theory.mamba_risk(one, n, 1.0) - theory.lms_risk(4, n, 1.0), 20, 60)
    assert lecture.overtaken(risk).value == pytest.approx(crossing, rel=0.01)


def test_the_crossing_of_two_straight_lines():
    gap = np.exp(np.array([1.0, -1.0]))  # log ratio 1 at n = 4 and -1 at n = 16: zero at the geometric mean
    axes = {"predictor": ["mamba", "lms"], "n": [4, 16], "seed": [0]}
    risk = xr.DataArray(np.stack([gap, np.ones(2)])[..., None], axes)
    assert lecture.overtaken(risk).value == pytest.approx(8)


def test_covariances_are_matrices():
    skewed = torch.tensor([[1.0, 0.5], [0.5, 2.0]], dtype=torch.float64)
    history = lecture.training(replace(TINY, steps=3000), 2, 6, covariance=skewed)
    assert np.abs(history.excess[-1]).max() < 1e-6
