"""Curvature at equal loss: the trace against the whole Hessian, and what is read off at a loss."""

import math

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.lectures.training_strategies.sharpness_aware import curvature, experiment, problem

TINY = experiment.setting("tiny", model=("network",), radius=(1.0,), d=(400,), mu=(4.0,), lr=0.05, steps=120)


def test_the_trace_is_that_of_the_hessian_weight_by_weight():
    training = problem(TINY).to(torch.float64)
    params = training.start()
    weight = training.loss.curvature(training.predict(params), training.observed) / TINY.n
    root = weight.sqrt()
    kernel = root[..., :, None] * training.output_gradients(params) * root[..., None, :]
    expected = torch.linalg.eigvalsh(kernel).sum(-1)
    torch.testing.assert_close(curvature.trace(training, params), expected, rtol=1e-10, atol=0)


def test_the_same_rule_has_the_ratio_one_and_a_loss_out_of_reach_has_none():
    setting = curvature.protocol(TINY, switch=0)
    found = curvature.at_losses(setting, (0.3, 1e-9))
    for name in ("sharpness", "trace"):
        ratio = curvature.ratios(found, name)
        np.testing.assert_allclose(ratio.sel(loss=0.3), 1.0, rtol=1e-9)
        assert np.isnan(ratio.sel(loss=1e-9)).all()
    assert (found.trace.sel(loss=0.3) >= found.sharpness.sel(loss=0.3)).all()


def test_sam_first_changes_the_curvature_at_equal_loss():
    found = curvature.at_losses(curvature.protocol(TINY, switch=40), (0.3,))
    assert (abs(curvature.ratios(found, "trace") - 1) > 1e-3).all()


def test_what_is_typical_is_the_geometric_mean():
    assert curvature.typical(xr.DataArray([0.5, 8.0])) == pytest.approx(math.sqrt(4.0))
