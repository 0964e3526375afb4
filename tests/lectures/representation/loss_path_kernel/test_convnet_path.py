"""The bound for a convolutional network: the sum is exact there, too, and its parts are those of the whole kernel."""

import pytest
import torch

from flbook.lectures.representation.loss_path_kernel.convnet_path import experiment
from flbook.lectures.representation.loss_path_kernel.path_kernel import ball_bound, loss_path
from flbook.models import tanh
from flbook.models.convnet import ConvNet
from flbook.training.losses import logistic
from flbook.training.network import Training


def test_a_convnet_s_losses_are_explained():
    x, y = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double(), torch.ones(6).double()
    y[::2] = -1.0
    model = ConvNet((1, 8, 8), (2, 3), classes=1, activation=tanh, pool="mean", dtype=torch.float64)
    training, times = Training(model, x, y, logistic), [k / 10 for k in range(6)]
    *_, end = loss_path(training, times)
    fall = training.train_loss(training.start()) - training.train_loss(end.params)
    torch.testing.assert_close(end.kernel.mean(), fall, rtol=1e-5, atol=1e-8)
    *_, own = loss_path(training, times, diagonal=True)
    torch.testing.assert_close(own.kernel, end.kernel.diagonal())


def test_the_bound_is_that_of_fall_and_own_work():
    found = experiment.measure("tiny")
    fall = found.lpk**2 / (4 * found.own)
    assert (fall > 0).all() and (fall < 0.7).all()
    assert ball_bound(torch.tensor(0.25), torch.tensor([4.0, 5.0])).item() == pytest.approx(1.5)
