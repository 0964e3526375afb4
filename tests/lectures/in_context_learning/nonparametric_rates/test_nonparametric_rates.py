"""A known basis at a tiny preset, against closed forms and against brute force."""

import pytest
import torch

from flbook.lectures.in_context_learning import nonparametric_rates as lecture

TINY = lecture.experiment.setting("tiny")


def test_no_matrix_is_better_than_the_best_and_a_diagonal_one_needs_fewer_prompts():
    dataset = lecture.run(TINY)
    assert (dataset.risk >= TINY.best().risk * (1 - 1e-12)).all()
    assert dataset.risk.sel(kind="diagonal", T=40).mean() < dataset.risk.sel(kind="full", T=40).mean()


def test_the_exact_risk_is_that_of_prompts():
    gamma = torch.randn(3, 3, dtype=torch.float64) * 0.3 + torch.eye(3, dtype=torch.float64)
    means, query, label = lecture.designs(TINY, 0, 40000)
    measured = (torch.einsum("bj,jk,bk->b", means, gamma, query) - label).square().mean() - TINY.noise**2
    assert float(lecture.exact_risk(TINY, gamma)) == pytest.approx(float(measured), rel=0.05)
    best = lecture.exact_risk(TINY, torch.diag(torch.tensor(TINY.best().gamma)))
    assert float(best) == pytest.approx(TINY.best().risk)
