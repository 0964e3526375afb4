"""Training of alpha times the movement of the output, by hand."""

import pytest
import torch

from flbook.models import ConvNet, gelu
from flbook.training.losses import cross_entropy, squared_classes
from flbook.training.network import ScaledTraining, Training


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def net(seed=(0, 1)):
    return ConvNet((3, 8, 8), (4,), 5, 2, gelu, "none", hidden=(6,), padding=0, seed=seed, dtype=torch.float64)


def test_the_scaled_problem_by_hand():
    model, x, y = net(), normal(2, 5, 3, 8, 8), torch.arange(5) % 2
    problem = ScaledTraining(model, x, y, squared_classes, alpha=torch.tensor([0.5, 20.0]))
    begin = problem.start()
    assert (problem.predict(begin) == 0).all()
    moved = {name: p + 0.1 * torch.sign(p) for name, p in begin.items()}
    plain = Training(model, x, y, cross_entropy)
    expected = torch.tensor([0.5, 20.0])[:, None, None] * (plain.predict(moved) - plain.predict(begin))
    torch.testing.assert_close(problem.predict(moved), expected)
    torch.testing.assert_close(problem.predict(moved, x.flip(1)), expected.flip(1))
    torch.testing.assert_close(problem.train_loss(begin), torch.full((2,), 0.25, dtype=torch.float64))


def test_a_scale_must_be_positive():
    with pytest.raises(ValueError, match=r"alpha must be positive, the factor of the output; got 0\.0"):
        ScaledTraining(net(), normal(5, 3, 8, 8), torch.arange(5) % 2, squared_classes, 0.0)
