"""Chains: products by hand, gradients against autograd, and the layer's own answers."""

import pytest
import torch

from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import (
    ChainTraining,
    ParityTree,
    activation,
    first_gradient,
    found,
)

TREE = ParityTree(d=10, k=8)


def test_every_node_is_the_product_of_its_parents_and_the_last_of_all_hidden_bits():
    tokens, parents, y = TREE.draw(50, seed=(0, 1))
    hidden = TREE.hidden((0, 1))
    for member in (0, 1):
        for m, (a, b) in enumerate(parents[member], 10):
            torch.testing.assert_close(tokens[member, :, m], tokens[member, :, a] * tokens[member, :, b])
        torch.testing.assert_close(y[member], tokens[member][:, hidden[member]].prod(-1))
    torch.testing.assert_close(tokens[..., -1], y)
    assert TREE.levels.tolist() == [1, 1, 1, 1, 2, 2, 3]


def test_flips_touch_each_node_by_itself_and_larger_samples_keep_the_smaller():
    clean, noisy = (ParityTree(10, 8, q).draw(4000, 0).tokens for q in (0.0, 0.1))
    torch.testing.assert_close(clean[:, :10], noisy[:, :10])
    wrong = (clean[:, 10:] != noisy[:, 10:]).double()
    assert (wrong.mean(0) - 0.1).abs().max() < 0.02
    assert torch.corrcoef(wrong.T).fill_diagonal_(0).abs().max() < 0.07
    torch.testing.assert_close(TREE.draw(5, 3).tokens, TREE.draw(9, 3).tokens[:5])


def test_the_slope_is_the_gradient_of_the_loss():
    tokens = TREE.draw(60, (0, 1)).tokens.double()
    problem = ChainTraining(tokens, 10)
    w = torch.linspace(-1, 1, 2 * 7 * 17, dtype=torch.float64).reshape(2, 7, 17).requires_grad_()
    (grad,) = torch.autograd.grad(problem.train_loss({"w": w}).sum(), w)
    torch.testing.assert_close(problem.slope({"w": w.detach()})["w"], grad)
    torch.testing.assert_close(first_gradient(tokens, 10), -problem.slope(problem.start())["w"])


def test_half_of_the_attention_on_each_parent_writes_the_right_chain():
    tokens, parents, _ = TREE.draw(40, 0)
    w = torch.zeros(7, 17).scatter(-1, parents, 100.0)
    problem = ChainTraining(tokens, 10)
    torch.testing.assert_close(problem.answers({"w": w}, tokens[:, :10], rounded=False), tokens[:, 10:])
    assert found(w, parents, 10).all() and float(problem.train_loss({"w": w})) < 1e-6
    assert not found(w.roll(1, -1), parents, 10).any()
    torch.testing.assert_close(activation(torch.tensor([-1.0, 0.0, 1.0])), torch.tensor([1.0, -1.0, 1.0]))


def test_trees_that_do_not_fit_are_refused():
    for k in (3, 1, 16):
        with pytest.raises(ValueError, match="k must be a power of 2"):
            ParityTree(d=10, k=k)
