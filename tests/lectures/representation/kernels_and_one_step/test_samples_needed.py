"""Three rules at small dimensions: against test points, and against their formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import erf

from flbook.data import SingleIndex
from flbook.lectures.representation.kernels_and_one_step import harmonics, line_then_curve, samples_needed
from flbook.models import kernels

BOOK = samples_needed.experiment.setting("book")


def test_kernel_has_the_risk_that_its_eigenvalues_predict():
    setting = samples_needed.experiment.setting("kernel", d=(12,), x=(1.0,), seed=tuple(range(6)))
    found = samples_needed.run(setting).risk.mean().item()
    assert found == pytest.approx(harmonics.kernel_risk(352, erf, 12, 0.1), rel=0.15)


def test_kernel_is_ridge_regression_with_the_variance_of_the_noise():
    model = SingleIndex(40, 6, torch.erf, 0.1)
    sample, test = model.draw(3), model.draw_test(100, 3)
    x, outside = sample.x / 6**0.5, test.x / 6**0.5
    weights = torch.linalg.solve(kernels.arcsine(x, x) + 0.01 * torch.eye(40, dtype=x.dtype), sample.y)
    expected = (kernels.arcsine(outside, x) @ weights - test.target).square().mean().item()
    assert samples_needed.best_kernel(model, 3, 100).item() == pytest.approx(expected, rel=1e-3)


def test_curve_has_the_risk_that_its_angle_predicts():
    setting = samples_needed.experiment.setting("curve", d=(32,), x=(16.0,))
    found = samples_needed.run(setting).risk.mean().item()
    assert found == pytest.approx(line_then_curve.predicted_risk(256, 32, 0.1), rel=0.15)


def test_exponent_counts_samples_and_not_units():
    few = replace(BOOK, d=(8, 16), seed=tuple(range(24)))
    found = samples_needed.run(few)
    n = samples_needed.needed(found, "network")
    slope = np.log(n[1] / n[0]) / np.log(2)
    assert samples_needed.exponent(found, "network").value == pytest.approx(float(slope), abs=1e-6)
    assert (samples_needed.units(found, "best kernel") == [112, 800]).all()
    assert samples_needed.samples(few, 16, 10.0) == 160
