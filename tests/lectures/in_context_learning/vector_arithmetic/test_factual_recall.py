"""Factual recall: pure in (seed, step), words and answers as the formulas say, clear refusals."""

from dataclasses import replace

import pytest
import torch

from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall

DATA = FactualRecall(concepts=4, common=3, d=12, noise=0.0)


def test_a_query_ties_between_two_answers():
    prompts = DATA.questions(500)
    scores = prompts.query @ DATA.answers.T
    top = scores == scores.amax(-1, keepdim=True)
    assert bool((top.sum(-1) == 2).all())
    assert bool(top.gather(1, prompts.answer[:, None]).all())
    assert bool((prompts.answer % 4 == prompts.task).all())


def test_a_question_names_its_task_once_and_no_fact():
    prompts = DATA.questions(100)
    named = torch.einsum("bli,ki->bk", prompts.tokens, DATA.tasks)
    assert torch.equal(named, torch.nn.functional.one_hot(prompts.task, 4).float())
    assert float(torch.einsum("bli,ki->bk", prompts.tokens, DATA.facts).abs().max()) == 0
    assert prompts.tokens.shape == (100, 8, 12)


def test_examples_are_words_and_their_answers():
    prompts = DATA.in_context(300, 3)
    words, answers = prompts.tokens.chunk(2, -2)
    torch.testing.assert_close(torch.einsum("bli,bi->bl", answers, DATA.tasks[prompts.task]), torch.ones(300, 3))
    facts = [torch.einsum("bli,bi->bl", part, DATA.facts[prompts.task]) for part in (words, answers)]
    assert torch.equal(*facts) and bool((facts[0].abs() == 1).all()) and abs(float(facts[0].mean())) < 0.1
    torch.testing.assert_close(words.square().sum(-1), torch.full((300, 3), 2 + 2 * 0.1**2))
    opposite = DATA.in_context(300, 3, opposite=True)
    sign = 1 - 2 * (opposite.answer >= 4).float()
    shown = torch.einsum("bli,bi->bl", opposite.tokens, DATA.facts[opposite.task])
    assert torch.equal(shown, -sign[:, None].expand_as(shown))


def test_noise_has_its_size():
    prompts = replace(DATA, noise=0.3).in_context(2000, 2)
    assert float(prompts.tokens[..., 11].std()) == pytest.approx(0.3, rel=0.03)


def test_what_has_no_place_and_empty_prompts_are_refused():
    with pytest.raises(ValueError, match="d must be at least 11, two directions"):
        replace(DATA, d=10)
    with pytest.raises(ValueError, match="examples must be at least 1"):
        DATA.in_context(3, 0)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        DATA.questions(0)
