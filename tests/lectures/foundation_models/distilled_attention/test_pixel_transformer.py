"""The transformer over pixels: causal, a distribution per pixel, with any attention; softmax is the one of the GPT."""

import math

import pytest
import torch

from flbook.lectures.foundation_models.distilled_attention.pixel_sequences import PixelSequences
from flbook.lectures.foundation_models.distilled_attention.pixel_transformer import PixelTransformer
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import RandomFeatureAttention
from flbook.models.transformer import softmax_attention

TOKENS = PixelSequences().test[:3]


def lively(seed=0):
    return PixelTransformer(8, 2, 2, sigma_0=0.5, seed=seed).requires_grad_(False)


@pytest.mark.parametrize("at", [0, 30, 63])
def test_a_pixel_is_predicted_from_those_before_it(at):
    network, other = lively(), TOKENS.clone()
    other[:, at] = (other[:, at] + 5) % 17
    before, after = network(TOKENS), network(other)
    torch.testing.assert_close(after[:, : at + 1], before[:, : at + 1])
    assert at == 63 or not torch.isclose(after[:, at + 1], before[:, at + 1]).all()


def test_nats_are_of_the_chosen_greys():
    network = lively()
    p = network(TOKENS).softmax(-1)
    by_hand = [sum(-math.log(p[b, t, TOKENS[b, t]]) for t in range(64)) / 64 for b in range(3)]
    torch.testing.assert_close(network.nats(TOKENS), torch.tensor(by_hand), rtol=1e-5, atol=0)
    silent = PixelTransformer(8, 1, 2, sigma_0=0.0)
    torch.nn.init.zeros_(silent.read_out.weight)
    torch.testing.assert_close(silent.nats(TOKENS), torch.full((3,), math.log(17)))


def test_an_ensemble_is_the_loop():
    both = lively((3, 1))
    shared, own = both.nats(TOKENS[None]), both.nats(torch.stack([TOKENS, TOKENS.flip(0)]))
    for member, seed in enumerate((3, 1)):
        torch.testing.assert_close(shared[member], lively(seed).nats(TOKENS))
    torch.testing.assert_close(own[1], lively(1).nats(TOKENS.flip(0)))


def test_another_attention_in_one_layer():
    network = lively()
    features = RandomFeatureAttention.draw(4, 2, 4, seed=(0, 1))
    changed = network.attending([None, features])
    assert network.gpt.blocks[1].attend is softmax_attention and changed.gpt.blocks[0].attend is softmax_attention
    found = changed.nats(TOKENS.expand(2, -1, -1))
    query, key = network.queries_and_keys(TOKENS)[1]
    seen = []

    def exact_rows(q, k, v):
        seen.append((q, k))
        return features.rows(q, k)[:1] @ v

    torch.testing.assert_close(network.attending([None, exact_rows]).nats(TOKENS[None])[0], found[0])
    torch.testing.assert_close(seen[0][0][0], query)
    torch.testing.assert_close(seen[0][1][0], key)
    with pytest.raises(ValueError, match="one entry for each of the 2 layers; got 1"):
        network.attending([None])
