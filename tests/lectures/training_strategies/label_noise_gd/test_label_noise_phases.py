"""Step size against flips: smoothing's line, and the two rules at p = 0, where both are gradient descent."""

import math

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import label_noise_gd
from flbook.lectures.training_strategies.label_noise_gd import label_noise_phases
from flbook.lectures.training_strategies.label_noise_gd.label_noise_phases import stability
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@pytest.mark.parametrize("p", [0.05, 0.2, 0.4])
def test_a_step_of_one_patch_stretches_a_deviation_above_the_line_and_shrinks_it_below(p):
    rest, off = math.log(1 / p - 1), 1e-6
    for share, grows in ((0.95, False), (1.05, True)):
        force = (1 - p) - 1 / (1 + math.exp(-(rest + off)))
        after = (rest + off) * (1 + share * stability(p) * force) ** 2 - rest
        assert (abs(after) > off) == grows
    assert stability(0.0) == math.inf


def test_without_flips_both_rules_are_gradient_descent():
    setting = label_noise_phases.experiment.setting("tiny")
    found = label_noise_phases.run(setting).sel(flip_prob=0.0).isel(lr=0)
    one = setting.one(setting.lr[0], 0.0)
    training = label_noise_gd.problem(one)
    params = fit(training, GradientDescent(setting.lr[0]), setting.steps).params
    expected = training.train_loss(params).numpy()
    for rule in label_noise_phases.RULES:
        np.testing.assert_allclose(found.train_loss.sel(rule=rule), expected, rtol=1e-4)


def test_the_residual_is_the_mean_square_of_the_forces():
    setting = label_noise_phases.experiment.setting("tiny")
    found = label_noise_phases.run(setting).isel(lr=0).sel(flip_prob=0.2)
    one = setting.one(setting.lr[0], 0.2)
    training = label_noise_gd.problem(one)
    for name, spread in (("label smoothing", 0.0), ("label noise", 0.16)):
        params = fit(training, label_noise_gd.rule(one, name, setting.lr[0]), setting.steps).params
        margins = (training.predict(params) * training.observed).double()
        expected = (0.8 - torch.sigmoid(margins)).square().mean(-1) + spread
        np.testing.assert_allclose(found.residual.sel(rule=name), expected, rtol=1e-3)
