"""The bound for a convolutional network: the sum is exact there, too, and its parts are those of the whole kernel."""

import pytest
import torch

from flbook.data.crops import TwoClassPictures
from flbook.lectures.representation.loss_path_kernel import convnet_path
from flbook.lectures.representation.loss_path_kernel.convnet_path import experiment
from flbook.lectures.representation.loss_path_kernel.path_kernel import ball_bound, loss_path
from flbook.models import tanh
from flbook.models.convnet import ConvNet
from flbook.training.losses import logistic
from flbook.training.network import Training


@pytest.fixture
def smooth():
    """A convolutional network without kinks on six images."""
    x, y = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double(), torch.ones(6).double()
    y[::2] = -1.0
    model = ConvNet((1, 8, 8), (2, 3), classes=1, activation=tanh, pool="mean", dtype=torch.float64)
    return Training(model, x, y, logistic)


def test_a_convnet_s_losses_are_explained(smooth):
    times = [k / 10 for k in range(6)]
    *_, end = loss_path(smooth, times)
    fall = smooth.train_loss(smooth.start()) - smooth.train_loss(end.params)
    torch.testing.assert_close(end.kernel.mean(), fall, rtol=1e-5, atol=1e-8)
    *_, own = loss_path(smooth, times, diagonal=True)
    torch.testing.assert_close(own.kernel, end.kernel.diagonal())


def test_a_path_of_its_own_steps_ends_where_the_fine_one_ends(smooth):
    *_, fine = loss_path(smooth, [k / 50 for k in range(51)])
    params, kernel, total = convnet_path.path(smooth, 1.0, miss=0.01)
    torch.testing.assert_close(kernel, fine.kernel.diagonal(), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(total, fine.kernel.mean(), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(params, fine.params, rtol=1e-3, atol=1e-5)


def test_steps_are_halved_until_the_identity_holds():
    s = experiment.setting("tiny", n=(8,))
    sample = TwoClassPictures("colour crops", n=8, flip_prob=0.0).draw(0)
    training = convnet_path.problem(s, sample.x.float(), sample.y, 0)
    fall, off = training.train_loss(training.start()), {}
    for miss in (0.01, 100.0):  # the second accepts all steps
        params, _, total = convnet_path.path(training, 1.0, miss)
        off[miss] = float(abs(fall - training.train_loss(params) - total) / total)
    assert 3 * off[0.01] < off[100.0], off


def test_the_bound_is_that_of_fall_and_own_work():
    found = experiment.measure("tiny")
    fall = found.lpk**2 / (4 * found.own)
    assert (fall > 0).all() and (fall < 0.9).all()
    assert (abs(found.missed) < 0.1 * fall).all()
    assert ball_bound(torch.tensor(0.25), torch.tensor([4.0, 5.0])).item() == pytest.approx(1.5)
    assert (found.gap != found.elsewhere).all(), "fresh crops of the columns that are trained on, and of others"
