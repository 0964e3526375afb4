"""Concept attention against a prompt worked out by hand; an ensemble is the loop; the mirrored head is odd."""

import math
from dataclasses import replace

import pytest
import torch

from flbook.lectures.in_context_learning.concept_prompts.concept_attention import (
    ConceptAttention,
    KnownConcepts,
    PromptAverages,
    SimilarWords,
    attention,
)
from flbook.lectures.in_context_learning.concept_prompts.concept_errors import known_error
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts
from flbook.shapes import Context


def test_two_words_by_hand():
    layer = ConceptAttention(2, 2, start=1.0, head=0.0, dtype=torch.float64)
    with torch.no_grad():
        layer.o += torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    words = torch.tensor([[[1.0, 1.0], [1.0, -1.0]]]).double()
    context = Context(words, torch.tensor([[[2.0, 1.0], [2.0, -1.0]]]).double())
    query = torch.tensor([[[1.0, 1.0]]]).double()
    share = math.exp(2) / (math.exp(2) + 1)
    torch.testing.assert_close(layer.attention(context, query)[0, 0].detach(), torch.tensor(share).double())
    assert layer(context, query).item() == pytest.approx((2 * share - 1) / 2)  # one neuron is on, with the weight 1/2


def test_a_mirrored_head_changes_its_sign_with_the_labels():
    data = ConceptPrompts(n=3, d=8, noise=0.0)
    layer = ConceptAttention(8, 6, spread=0.5, mirrored=4, dtype=torch.float64)
    prompts, _ = data.every()
    flip = torch.ones(8).double()
    flip[4:] = -1
    turned = Context(prompts.context.x, prompts.context.y * flip)
    torch.testing.assert_close(layer(turned, prompts.query), -layer(prompts.context, prompts.query))


def test_what_all_words_share_leaves_attention_alone():
    prompts = ConceptPrompts(n=4, d=8).draw(5)
    q, k = torch.randn(2, 8, 8)
    moved = Context(prompts.context.x + torch.randn(8), prompts.context.y)
    torch.testing.assert_close(*(attention(q, k, one, prompts.query) for one in (moved, prompts.context)))


def test_averages_see_no_pairs():
    prompts = ConceptPrompts(n=4, d=8).draw(5)
    model = PromptAverages(8)
    with torch.no_grad():
        model.w += torch.randn(3, 8)
    shuffled = Context(prompts.context.x.flip(-2), prompts.context.y)
    torch.testing.assert_close(model(shuffled, prompts.query), model(prompts.context, prompts.query))


def test_similar_words_copy_their_labels():
    data = ConceptPrompts(n=5, d=8, noise=0.0, contains=True)
    prompts, code = data.draw(50), data.dictionary()[3].sum(0)
    nearest, soft = (SimilarWords(code, scale)(*prompts[:2]) for scale in (None, 50.0))
    torch.testing.assert_close(nearest.sign(), prompts.target)
    torch.testing.assert_close(nearest, soft)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="m must be even"):
        ConceptAttention(8, 3)
    prompts = ConceptPrompts(n=4, d=8).draw(5)
    with pytest.raises(ValueError, match="do not fit queries"):
        ConceptAttention(9)(prompts.context, prompts.query)


@pytest.mark.parametrize("change", [{}, {"word_sign": -1}, {"label_sign": -1}])
def test_who_knows_the_concepts_reads_meanings_and_errs_as_often_as_one_projection_does(change):
    data = ConceptPrompts(n=8, d=10, noise=0.5)
    rule = KnownConcepts(data.dictionary())
    prompts = replace(data, **change).draw(20000, (0, 1))
    right = rule(*prompts[:2])[..., 0].sign() == prompts.target[..., 0]
    assert 1 - float(right.double().mean()) == pytest.approx(known_error(0.5, data.contrast), abs=3e-3)
