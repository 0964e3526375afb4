"""Layers: the formula by hand, an ensemble is a loop, what a row is, bad input."""

import pytest
import torch

from flbook.models.layers import MLP, Linear


def test_a_network_is_its_formula():
    net, x = MLP((3, 5, 4), torch.tanh, spread=0.5, seed=1), torch.randn(7, 6, 3)
    first, last = net.layers
    assert (first.bias != 0).all() and (last.bias == 0).all()
    torch.testing.assert_close(net(x), torch.tanh(x @ first.weight + first.bias) @ last.weight)


def test_an_ensemble_is_a_loop_and_may_share_its_inputs():
    both, x = MLP((3, 5, 4), seed=(2, 9), spread=1.0), torch.randn(2, 7, 6, 3)
    for k, seed in enumerate((2, 9)):
        alone = MLP((3, 5, 4), seed=seed, spread=1.0)
        torch.testing.assert_close(both(x)[k], alone(x[k]))
        torch.testing.assert_close(both(x[:1])[k], alone(x[0]))
        torch.testing.assert_close(both(x[0, 0])[k], alone(x[0, 0]))


def test_rows_are_what_lies_between_the_ensemble_and_the_last_axis():
    layer = Linear(torch.randn(2, 3, 4))
    assert [layer(torch.randn(2, *rows, 3)).shape[1:-1] for rows in ((5,), (6, 5), (1, 6, 5))] == [
        (5,), (6, 5), (1, 6, 5)]


def test_a_network_has_two_widths():
    with pytest.raises(ValueError, match="widths must name at least inputs and outputs; got"):
        MLP((3,))
