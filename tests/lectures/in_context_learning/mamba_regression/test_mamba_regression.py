"""The trained layer against its closed form, the recursion, tasks that drift."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import mamba_regression as experiment
from flbook.lectures.in_context_learning.mamba_regression import Setting
from flbook.theory import forgetting as theory

TINY = replace(Setting.tiny(), d=(3,), steps=300)


def test_ridge_regression_is_exact_without_noise():
    assert experiment.run(Setting.tiny()).risk.sel(noise=0.0, predictor="ridge").max() < 1e-15


def test_predictors_have_the_risk_of_their_law():
    risk = experiment.measure(replace(TINY, noise=(1.0,), n=(12,), prompts=3000)).risk.mean("seed").squeeze()
    laws = {"mamba": theory.mamba_risk(np.ones(3), 12, 1.0), "attention": theory.attention_risk(np.ones(3), 12, 1.0),
            "lms": theory.lms_risk(3, 12, 1.0), "falling": theory.falling_risk(3, 12, 1.0)}  # fmt: skip
    for name, law in laws.items():
        assert float(risk.sel(predictor=name)) == pytest.approx(float(law), rel=0.06), name
    assert float(risk.sel(predictor="ridge")) == float(risk.min())


def test_training_reaches_the_closed_form():
    history = experiment.training(replace(TINY, steps=900), 3, 12)
    assert history.excess[0].min() > 1 and np.abs(history.excess[-1]).max() < 1e-9
    assert history.off_diagonal[-1].max() < 1e-9
    sample = experiment.training(replace(TINY, steps=900), 3, 12, prompts=400)
    assert 0 < float(sample.excess[-1].mean()) < 0.5


def test_the_trained_state_steps_without_a_residual():
    setting = replace(TINY, steps=900)
    steps = experiment.hidden(setting, 3, 12, experiment.trained(setting, 3, 12))
    np.testing.assert_allclose(steps.state, steps.correlation, atol=1e-6 * float(np.abs(steps.state).max()))
    assert np.abs(steps.state - steps.residual).max() > 0.05


def test_drift_has_its_law():
    found = experiment.drift((0, 1, 2), (0.9,), (0.7, 0.9), d=3, n=30, prompts=1500).risk.mean("seed").squeeze()
    law = [theory.drifting_risk(3, 30, alpha, 0.9, 1.0) for alpha in found.alpha.values]
    np.testing.assert_allclose(found, law, rtol=0.05)


def test_the_crossing_of_two_curves():
    risk = experiment.measure(replace(TINY, predictor=("mamba", "lms"), noise=(1.5,), n=(4, 16), prompts=300)).risk
    assert 4 <= experiment.overtaken(risk.squeeze(("d", "noise"))).value <= 16


def test_covariances_are_matrices():
    skewed = torch.tensor([[1.0, 0.5], [0.5, 2.0]], dtype=torch.float64)
    history = experiment.training(replace(TINY, steps=3000), 2, 6, covariance=skewed)
    assert np.abs(history.excess[-1]).max() < 1e-6
