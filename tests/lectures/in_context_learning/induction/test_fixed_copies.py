"""Copies at one distance: which windows they are, and what is tested."""

import torch

from flbook.lectures.in_context_learning.induction import fixed_copies


def test_tests_repeat_at_half_a_window_or_earlier():
    s = fixed_copies.experiment.setting("tiny")
    for name, (words, where) in fixed_copies.on_copies(s, "cpu").items():
        assert (words[where.row, where.place + 1] == words[where.row, where.after]).all(), name
        distance = where.place - where.after + 1
        assert (distance == 8).all() if name == "half" else (distance < 8).all()


def test_a_run_has_scores_of_both_layers():
    found = fixed_copies.run("tiny")
    assert found.half.shape == (2, 2, 5, 2) and (found.half > 0).all()
    assert torch.isfinite(torch.from_numpy(found.other.values)).all()
