"""Known and hidden bases at a tiny preset, against closed forms and against brute force."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import nonparametric_rates as lecture
from flbook.lectures.in_context_learning.nonparametric_rates import Contexts, Setting

TINY = Setting.tiny()
PROMPTS = Contexts(predictor=tuple(lecture.PREDICTORS), n=(8, 20), T=(4, 60), seed=(0, 1), pairs=2, power=1, spread=2,
                   batch=16, queries=4)


def test_no_matrix_is_better_than_the_best_and_a_diagonal_one_needs_fewer_prompts():
    dataset = lecture.run(TINY)
    assert (dataset.risk >= TINY.best().risk * (1 - 1e-12)).all()
    assert dataset.risk.sel(kind="diagonal", T=40).mean() < dataset.risk.sel(kind="full", T=40).mean()


def test_a_context_does_not_see_the_grid_around_it():
    both = lecture.contexts(replace(PROMPTS, predictor=("pretrained attention",)))
    one = lecture.contexts(replace(PROMPTS, predictor=("pretrained attention",), n=(20,), T=(4,), seed=(1,)))
    assert one.risk.item() == pytest.approx(both.risk.sel(n=20, T=4, seed=1).item(), rel=1e-6)


def test_the_exact_risk_is_that_of_prompts():
    gamma = torch.randn(3, 3, dtype=torch.float64) * 0.3 + torch.eye(3, dtype=torch.float64)
    means, query, label = lecture.designs(TINY, 0, 40000)
    measured = (torch.einsum("bj,jk,bk->b", means, gamma, query) - label).square().mean() - TINY.noise**2
    assert lecture.exact_risk(TINY, gamma) == pytest.approx(float(measured), rel=0.05)
    assert lecture.exact_risk(TINY, torch.diag(torch.tensor(TINY.best().gamma))) == pytest.approx(TINY.best().risk)


def test_least_squares_on_either_side():
    for rows in (4, 7, 30):
        columns, label = torch.randn(rows, 7, dtype=torch.float64), torch.randn(rows, dtype=torch.float64)
        torch.testing.assert_close(lecture.solved(columns, label), torch.linalg.pinv(columns) @ label)


def test_the_sandwich_is_near_one():
    assert 0.9 < float(lecture.sandwich(replace(TINY, n=50), 8000)) < 1.4


def test_prompts_on_a_hidden_basis():
    dataset = lecture.contexts(PROMPTS)
    assert dict(dataset.risk.sizes) == {"predictor": 6, "n": 2, "T": 2, "seed": 2}
    assert (dataset.known < dataset.expected).all()
    both = ("attention on the basis", "attention on the dictionary")
    many = lecture.contexts(replace(PROMPTS, predictor=both, n=(20,), T=(4,), batch=600, seed=(0, 1, 2, 3)))
    np.testing.assert_allclose(many.risk.mean("seed").squeeze(), [many.known[0], many.expected[0]], rtol=0.12)
