"""Digits of rare classes: weights of the samples, the gradient, and the accuracy, by hand."""

import pytest
import torch

from flbook.lectures.training_strategies.spectral_steps import long_tails


def test_classes_have_their_shares_whatever_the_number_of_pictures():
    y = torch.tensor([[0, 0, 0, 1, *range(2, 10)]])
    weight = long_tails.sample_weights(y, torch.arange(10)[None], 1.0)
    total = sum(1 / k for k in range(1, 11))
    assert float(weight.sum()) == pytest.approx(1)
    assert weight[0, :4].tolist() == pytest.approx([1 / 3 / total] * 3 + [1 / 2 / total])


def test_the_slope_is_a_gradient():
    x, y = torch.randn(1, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.arange(6)[None]
    weight = torch.arange(1.0, 7).double()[None] / 21
    w = torch.linspace(-1, 1, 50, dtype=torch.float64).reshape(1, 10, 5).requires_grad_()
    loss = -((x @ w.mT).log_softmax(-1).gather(-1, y[..., None])[..., 0] * weight).sum()
    torch.testing.assert_close(long_tails.slope(w.detach(), x, y, weight), torch.autograd.grad(loss, w)[0])


def test_accuracy_is_a_mean_over_classes():
    w, y = torch.eye(10)[None], torch.tensor([[0, 0, 0, *range(1, 10)]])
    x = torch.eye(10)[y]
    assert float(long_tails.accuracy(w, x, y)) == 1
    x[0, 0] = torch.eye(10)[5]  # one of three pictures of class 0
    assert float(long_tails.accuracy(w, x, y)) == pytest.approx(1 - 1 / 30)
