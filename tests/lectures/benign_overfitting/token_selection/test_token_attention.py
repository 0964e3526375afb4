"""Token-selection attention: uniform before training, by hand on two tokens, ensemble = loop."""

import pytest
import torch

from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention

DATA = TokenSelection(n=6, d=30, mu_norm=5.0, tokens=4)


def test_it_starts_uniform_and_reads_the_mean():
    x = DATA.draw(0).x
    model = TokenAttention(DATA.head, dtype=torch.float64)
    torch.testing.assert_close(model(x), (x @ DATA.head).mean(-1))


def test_by_hand():
    model = TokenAttention(torch.tensor([1.0, 0.0]), dtype=torch.float64)
    model.query.data = torch.tensor([0.0, 2.0]).double()
    x = torch.tensor([[[3.0, 0.0], [5.0, 1.0]]]).double()
    weight = torch.sigmoid(torch.tensor(2.0).double())  # of the second token
    torch.testing.assert_close(model(x)[0], 3 * (1 - weight) + 5 * weight)


def test_keys_act_from_the_left_of_the_query():
    model = TokenAttention(DATA.head, train_keys=True, dtype=torch.float64)
    model.query.data = torch.randn(30, generator=torch.Generator().manual_seed(1)).double()
    x = DATA.draw(0).x
    expected = (x @ model.w.T @ model.query).softmax(-1)
    torch.testing.assert_close(model.attention(x), expected)


def test_tokens_of_another_dimension():
    with pytest.raises(ValueError, match="do not fit a head"):
        TokenAttention(DATA.head)(torch.zeros(2, 4, 7))
