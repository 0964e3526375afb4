"""The transformer of words: it cannot look ahead, knows distances only, and smears keys."""

import pytest
import torch

from flbook.lectures.in_context_learning.induction.word_transformer import WordTransformer, attention


def network(**how):
    made = WordTransformer(12, 9, 16, heads=2, sigma_0=0.4, **how)
    return made.double()


def test_it_does_not_look_ahead():
    words = torch.randint(12, (1, 3, 9), generator=torch.Generator().manual_seed(0))
    other = words.clone()
    other[..., 6:] = (other[..., 6:] + 1) % 12
    one = network(seed=(0,))
    torch.testing.assert_close(one(words)[..., :6, :], one(other)[..., :6, :])
    assert not torch.allclose(one(words)[..., 6, :], one(other)[..., 6, :])


def test_its_maps_are_those_it_attends_by():
    words, maps, one = torch.randint(12, (1, 2, 9)), [], network(seed=(0,))
    one(words, maps=maps)
    assert len(maps) == 2 and maps[0].shape == (1, 2, 2, 9, 9)
    torch.testing.assert_close(maps[0].sum(-1), torch.ones(1, 2, 2, 9).double())
    query, key, value = one.parts(0, torch.randn(1, 2, 9, 16, dtype=torch.float64))
    by_hand = attention(query, key) @ value
    fused = torch.nn.functional.scaled_dot_product_attention(query[0], key[0], value[0], is_causal=True)
    torch.testing.assert_close(by_hand[0], fused)


def test_scores_depend_on_the_distance():
    one = network(seed=(0,))
    same = torch.randn(1, 1, 1, 16, dtype=torch.float64).expand(1, 1, 9, 16)
    query, key, _ = one.parts(0, same)
    scores = (query @ key.mT)[0, 0, 0]
    torch.testing.assert_close(scores.diagonal(-2), scores[2, 0].expand(7))
    assert (scores[2, 0] - scores[1, 0]).abs() > 1e-6


def test_a_head_can_be_left_out():
    words, one = torch.randint(12, (1, 2, 9)), network(seed=(0,))
    whole = one(words)
    torch.testing.assert_close(one(words, torch.ones(2, 2).double()), whole)
    without = torch.ones(2, 2).double()
    without[1, 0] = 0
    assert not torch.allclose(one(words, without), whole)


def test_smeared_keys_begin_as_means_of_two():
    plain, smeared = network(seed=(0,)), network(seed=(0,), smeared=True)
    x = torch.randn(1, 1, 9, 16, dtype=torch.float64)
    with torch.no_grad():
        smeared.smear.fill_(-50.0)
    torch.testing.assert_close(smeared.parts(0, x)[1], plain.parts(0, x)[1])
    with torch.no_grad():
        smeared.smear.fill_(50.0)
        smeared.cos.fill_(1.0), smeared.sin.fill_(0.0), plain.cos.fill_(1.0), plain.sin.fill_(0.0)
    torch.testing.assert_close(smeared.parts(0, x)[1][..., 1:, :], plain.parts(0, x)[1][..., :-1, :])


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="twice heads"):
        WordTransformer(5, 4, 6, heads=2)
