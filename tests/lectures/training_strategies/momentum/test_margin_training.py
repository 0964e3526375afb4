"""Samples of two margins: their patches, the problem in coefficients, and what it does on fresh samples."""

import pytest
import torch

from flbook import GradientDescent, TwoLayerCNN, fit, measures, rng
from flbook.lectures.training_strategies.momentum import rule
from flbook.lectures.training_strategies.momentum.margin_training import (
    coasting_to,
    feature_coefficient,
    generalisation,
    two_margin_training,
)
from flbook.lectures.training_strategies.shared.margins import Margins
from flbook.models.activations import cube
from flbook.training.network import Training

DATA = Margins(n=10, d=60, small=0.2, share=0.3, sigma_xi=0.2)


def cnn(seed):
    return TwoLayerCNN(DATA.d, m=3, sigma_0=0.1, activation=cube, scale=1.0, seed=seed, dtype=torch.float64)


def test_patches_are_the_feature_times_label_and_margin_and_noise_orthogonal_to_it():
    sample = DATA.draw(seed=(0, 1))
    assert sample.margin.tolist() == [0.2] * 3 + [1.0] * 7 and sample.y.sum() == 0
    assert (sample.x[..., 0, 0] == sample.margin * sample.y).all() and (sample.x[..., 0, 1:] == 0).all()
    assert (sample.x[..., 1, :] == sample.xi).all() and (sample.xi[..., 0] == 0).all()
    assert sample.xi[..., 1:].std().item() == pytest.approx(0.2, rel=0.05)
    assert (DATA.draw(seed=1).xi == sample.xi[1]).all()


@pytest.mark.parametrize("memory", [0.5, 10.0])
def test_coefficients_are_direct_training(memory):
    sample = DATA.draw(seed=(0, 1))
    problem, direct = two_margin_training(DATA, sample, cnn((0, 1))), Training(cnn((0, 1)), sample.x, sample.y)
    params, weights = (fit(one, rule(0.5, memory), 200).params for one in (problem, direct))
    torch.testing.assert_close(problem.predict(params), direct.predict(weights), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(feature_coefficient(problem, params), weights["w"][..., 0].flatten(-2).norm(dim=-1))


@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_errors_are_those_on_drawn_samples_of_either_label(margin):
    sample = DATA.draw(seed=3)
    problem, direct = two_margin_training(DATA, sample, cnn(3)), Training(cnn(3), sample.x, sample.y)
    params, weights = (fit(one, GradientDescent(0.5), 300).params for one in (problem, direct))
    fresh = generalisation(problem, params, margin, points=8192)
    xi = DATA.sigma_xi * rng.normal((20_000, DATA.d), 5, "fresh")
    xi[:, 0] = 0
    for label in (1.0, -1.0):
        x = torch.stack([torch.zeros_like(xi), xi], -2)
        x[:, 0, 0] = label * margin
        output = label * direct.predict(weights, x)
        assert (output <= 0).double().mean().item() == pytest.approx(fresh.error.item(), abs=0.012)
        assert torch.nn.functional.softplus(-output).mean().item() == pytest.approx(fresh.loss.item(), abs=0.01)
    assert measures.train_error(problem, params) == 0


def test_a_feature_coasts_by_memory_times_velocity():
    problem = two_margin_training(DATA, DATA.draw(seed=0), cnn(0))
    start = problem.start()
    grad = problem.gradient(start)
    stepped = fit(problem, GradientDescent(7.0), 1).params
    assert coasting_to(problem, start, grad, 7.0) == pytest.approx(feature_coefficient(problem, stepped).item())
    assert coasting_to(problem, start, grad, 0.0) == feature_coefficient(problem, start)
