"""Linear layers: gradients against autograd, starts, and the times of known curves."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.saddles_and_edge.linear_network import (
    LinearNetworkTraining,
    course,
    first_time,
    initial_strength,
    random_layers,
)

TARGET = torch.diag(torch.tensor([2.0, 1.0, 0.5])).double()


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_slope_is_the_gradient_of_the_loss(depth):
    variances = torch.tensor([[1.0, 0.5, 0.2]]).double()
    training = LinearNetworkTraining(TARGET, random_layers(3, 5, 0.7, (0, 1), depth), variances)
    w = {name: part.clone().requires_grad_() for name, part in training.start().items()}
    grads = torch.autograd.grad(training.train_loss(w).sum(), list(w.values()))
    found = training.slope(training.start())
    for grad, own in zip(grads, found.values(), strict=True):
        torch.testing.assert_close(own, grad)
    length = torch.stack([part.square().sum((-2, -1)) for part in grads]).sum(0).sqrt()
    torch.testing.assert_close(training.norm(found), length)


def test_the_loss_is_the_expected_error():
    variances = torch.tensor([[1.0, 0.5, 0.2]]).double()
    training = LinearNetworkTraining(TARGET, random_layers(3, 5, 0.7), variances)
    x = torch.randn(200_000, 3, generator=torch.Generator().manual_seed(0)).double() * variances.sqrt()
    wrong = x @ (training.product(training.start()) - TARGET).T
    expected = float(wrong.square().sum(1).mean() / 2)
    assert float(training.train_loss(training.start())) == pytest.approx(expected, rel=0.02)


def test_the_part_that_grows_is_that_of_a_long_first_phase():
    layers = random_layers(3, 6, 1e-7, (0, 1))
    training = LinearNetworkTraining(TARGET, layers)
    modes = course(training, 0.1, 40)
    grown = modes[-1][:, 0] / 1.2**80
    np.testing.assert_allclose(grown, initial_strength(layers)[:, 0], rtol=1e-3)


def test_first_times_of_a_logistic_curve():
    t = np.arange(100) * 0.3
    share = 1 / (1 + np.exp(-(t - np.array([[11.0], [17.2]])))).T[:, None]
    np.testing.assert_allclose(first_time(share, 0.5, 0.3), [[11.0, 17.2]], rtol=1e-9)
    np.testing.assert_allclose(first_time(share, 0.9, 0.3) - [[11.0, 17.2]], np.log(9), rtol=1e-9)
    assert np.isnan(first_time(share[:20], 0.5, 0.3)).all(), "not reached"
