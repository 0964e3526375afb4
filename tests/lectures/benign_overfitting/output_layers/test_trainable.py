"""The CNN with a trainable output layer: by hand, as the plain one at v_0 = 1, ensemble = loop."""

import pytest
import torch

from flbook.lectures.benign_overfitting.output_layers.trainable import TrainableCNN
from flbook.models import TwoLayerCNN


def test_by_hand():
    cnn = TrainableCNN(2, 1, 0.1, v_0=0.5, scale=1.0, dtype=torch.float64)
    with torch.no_grad():
        cnn.w.copy_(torch.tensor([[[1.0, 2.0]], [[-1.0, 1.0]]]))
    x = torch.tensor([[[1.0, 1.0], [0.0, 3.0]]]).double()
    # +: (3 + 6), -: (0 + 3)
    assert cnn(x).tolist() == [0.5 * 9 - 0.5 * 3]
    assert cnn.v.tolist() == [[0.5], [-0.5]]


def test_it_starts_as_the_plain_network_and_has_one_more_gradient():
    x = torch.randn(5, 2, 7, generator=torch.Generator().manual_seed(0))
    plain, both = TwoLayerCNN(7, 3, 0.2, seed=(0, 1)), TrainableCNN(7, 3, 0.2, seed=(0, 1))
    torch.testing.assert_close(both(x), plain(x))
    both(x).sum().backward()
    assert both.v.grad.shape == (2, 2, 3) and (both.v.grad != 0).any()
    assert {name for name, _ in both.named_parameters()} == {"w", "v"}


def test_bad_input_is_one_sentence():
    with pytest.raises(ValueError, match="patches of shape"):
        TrainableCNN(5, 2, 0.1)(torch.zeros(3, 2, 4))
