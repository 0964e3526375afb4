"""Rivals on the same data at a tiny preset."""

import torch

from flbook.lectures.benign_overfitting.vision_transformer import attention_rivals
from flbook.lectures.benign_overfitting.vision_transformer.attention_rivals import experiment

TINY = experiment.setting("tiny")


def test_all_models_have_the_same_tokens():
    gram = attention_rivals.drawn(TINY, "cpu")
    problems = [attention_rivals.problem_of(cell, gram) for cell in experiment.cells(TINY)]
    for problem in problems[1:]:
        torch.testing.assert_close(
            problem.gram[..., : problem.span, : problem.span], problems[0].gram[..., : problem.span, : problem.span]
        )
    assert [problem.width for problem in problems] == [9, 9, 4, 4, 1]


def test_strong_signals_are_found_by_all():
    found = attention_rivals.run(TINY.thinned(n_snr2=(60.0,), steps=200))
    assert float(found.test_error.max()) == 0 and float(found.train_error.max()) == 0
