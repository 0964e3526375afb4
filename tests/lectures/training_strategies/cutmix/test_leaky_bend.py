"""The smoothed leaky ReLU: its three pieces, and its slope."""

import torch

from flbook.lectures.training_strategies.cutmix.leaky_bend import LeakyBend


def test_the_pieces_and_the_slope():
    bend, z = LeakyBend(0.2, 0.5), torch.linspace(-2, 2, 41, dtype=torch.float64).requires_grad_()
    beta, r = 0.2, 0.5
    pieces = torch.where(
        z < 0, beta * z, torch.where(z < r, beta * z + (1 - beta) * z**2 / (2 * r), z - (1 - beta) * r / 2)
    )
    torch.testing.assert_close(bend(z), pieces)
    (slope,) = torch.autograd.grad(bend(z).sum(), z)
    torch.testing.assert_close(bend.slope(z), slope)
