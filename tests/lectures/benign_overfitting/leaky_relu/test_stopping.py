"""Descent that stops: the steps and weights of `fit`, level by level, whoever else is in the batch."""

from dataclasses import replace
from operator import methodcaller

import pytest
import torch

from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SinglePatchTraining
from flbook.lectures.benign_overfitting.leaky_relu.stopping import descend
from flbook.models import LeakyReLU, TwoLayerCNN
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import logistic
from flbook.training.optimizers import GradientDescent

LINEAR, LAZY = methodcaller("linear"), methodcaller("lazy")  # rivals of a problem
SEEDS = (0, 1, 2, 3)


def problem(seeds=SEEDS):
    data = Mixture(n=12, d=30, gamma=0.3, flip_prob=0.2)
    sample = data.draw(seeds)
    cnn = TwoLayerCNN(30, 4, 0.02, LeakyReLU(0.1), 1.0, seed=seeds, dtype=torch.float64)
    return SinglePatchTraining.of(data, sample, cnn)


@pytest.mark.parametrize("rival", [lambda p: p, LINEAR, LAZY], ids=["network", "linear", "lazy"])
def test_it_is_gradient_descent_read_at_the_right_step(rival):
    training = rival(problem())
    fitted, done = descend(training, 0.1)
    last = int(done.step.max())
    assert 0 < fitted.step.min() and (fitted.step <= done.step).all() and (fitted.step < done.step).any()
    of = [Quantity("margin", lambda p: (training.observed * training.predict(p)).amin(-1)),
          Quantity("x", lambda p: p["x"], ("filter", "sample"))]
    path = fit(training, GradientDescent(0.1), last, of, ("seed",), range(last + 1)).history
    margin = torch.from_numpy(path.margin.values)
    assert fitted.step.tolist() == (margin > 0).double().argmax(0).tolist()
    assert done.step.tolist() == (margin >= 1).double().argmax(0).tolist()
    for stop in (fitted, done):
        for k, step in enumerate(stop.step.tolist()):
            expected = torch.from_numpy(path.x.values[step, k])
            torch.testing.assert_close(stop.params["x"][k], expected, rtol=1e-9, atol=1e-12)
    assert (training.train_loss(done.params) == 0).all(), "exactly"


def test_members_do_not_see_each_other():
    together, alone = descend(problem(), 0.1)[-1], descend(problem((2,)), 0.1)[-1]
    assert alone.step[0] == together.step[2]
    torch.testing.assert_close(alone.params["x"][0], together.params["x"][2])


def test_a_limit_keeps_what_is_there():
    (stop,) = descend(problem(), torch.tensor([0.1, 0.1, 0.1, 0.0]).double(), (1.0,), limit=20)
    assert stop.step.tolist() == [-1] * 4
    expected = fit(problem(), GradientDescent(0.1), 20).params["x"]
    torch.testing.assert_close(stop.params["x"][:3], expected[:3])
    assert (stop.params["x"][3] == 0).all()


def test_a_loss_that_never_stops_pulling():
    training = replace(problem(), loss=logistic)
    (stop,) = descend(training, 0.5, (0.5,), limit=3000)
    assert (stop.step > 0).all()
    assert ((training.observed * training.predict(stop.params)).amin(-1) >= 0.5).all()


@pytest.mark.parametrize("levels", [(1.0, 0.0), (1.0, 1.0)])
def test_levels_increase(levels):
    with pytest.raises(ValueError, match="levels must increase, such as"):
        descend(problem(), 0.1, levels)
