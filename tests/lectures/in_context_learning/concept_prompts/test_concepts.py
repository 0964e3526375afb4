"""Concept prompts: pure in (seed, step), the law that they claim, every prompt counted once, clear refusals."""

from dataclasses import replace

import pytest
import torch

from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts

DATA = ConceptPrompts(concepts=3, n=3, d=8, noise=0.1)


def test_words_and_labels_are_what_the_formula_says():
    prompts = replace(DATA, noise=0.0).draw(200, 0)
    a, b, c, d = (part[prompts.task] for part in DATA.dictionary().float())
    signs = torch.einsum("bni,bi->bn", prompts.context.x, b).sign()[..., None]
    torch.testing.assert_close(prompts.context.x, a[:, None] + signs * b[:, None])
    torch.testing.assert_close(prompts.context.y, c[:, None] + signs * d[:, None])
    torch.testing.assert_close(prompts.query[:, 0], a + prompts.target * b)
    word = (a + b)[0]
    assert float(word.norm()) == pytest.approx(2.0)
    assert float(word @ (a - b)[0] / word.norm() ** 2) == pytest.approx(DATA.kappa)


def test_noise_signs_and_concepts_have_their_law():
    prompts = replace(DATA, skew=0.5).draw(20000, 0)
    assert float(prompts.context.x[..., 6:].std()) == pytest.approx(0.1, rel=0.02)
    assert float(prompts.target.mean()) == pytest.approx(0, abs=0.03)
    share = torch.bincount(prompts.task) / 20000
    torch.testing.assert_close(share, torch.tensor([4.0, 2.0, 1.0]) / 7, atol=0.015, rtol=0)
    answerable = replace(DATA, contains=True, noise=0.0).draw(20000, 0)
    _, _, _, d = DATA.dictionary().float()
    equal = (torch.einsum("bni,ki->bn", answerable.context.y, d).sign() == answerable.target).sum(-1)
    assert int(equal.min()) == 1
    torch.testing.assert_close(torch.bincount(equal)[1:] / 20000, torch.tensor([3.0, 3.0, 1.0]) / 7, atol=0.015, rtol=0)


def test_every_prompt_is_there_with_its_probability():
    prompts, weight = replace(DATA, noise=0.0, skew=0.5).every()
    assert float(weight.sum()) == pytest.approx(1) and len(weight) == 3 * 2 * 4
    drawn = replace(DATA, noise=0.0, skew=0.5).draw(40000, 0)
    mean = torch.einsum("bni,b->i", prompts.context.y, weight)
    torch.testing.assert_close(drawn.context.y.sum(-2).mean(0).double(), mean, atol=0.05, rtol=0)
    second = torch.einsum("bi,bj,b->ij", *2 * [prompts.context.x.sum(-2) * prompts.target], weight)
    words = drawn.context.x.sum(-2) * drawn.target
    torch.testing.assert_close((words.mT @ words / 40000).double(), second, atol=0.25, rtol=0)


def test_switched_and_recombined_dictionaries():
    _, b, _, d = DATA.dictionary()
    switched = replace(DATA, word_sign=-1).dictionary()
    assert torch.equal(switched[1], -b) and torch.equal(switched[3], d)
    flipped = replace(DATA, label_sign=-1).draw(50, 0)
    assert torch.equal(flipped.target, -DATA.draw(50, 0).target)
    mixed = replace(DATA, recombined=True).dictionary()
    torch.testing.assert_close(mixed.norm(dim=-1), DATA.dictionary().norm(dim=-1))
    assert abs(float(mixed[0, 0] @ mixed[1, 0])) < 1e-12


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(("change", "message"), [
    ({"d": 5}, "twice the number of concepts"),
    ({"recombined": True, "concepts": 2}, "concepts must be 3 or more"),
])
def test_bad_models_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(DATA, **change)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="batch must be at least 1"):
        DATA.draw(0)
