"""Task diversity: linear attention fitted to pools, against fresh prompts and against counting equations."""

from dataclasses import replace

import numpy as np
import torch

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.lectures.in_context_learning import task_diversity
from flbook.lectures.in_context_learning.shared.moments import draw_moments
from flbook.lectures.in_context_learning.task_diversity import exact_risk, features


def test_the_exact_risk_is_that_of_fresh_prompts():
    d, examples, rho = 4, 12, 0.3
    gamma = np.random.default_rng(0).standard_normal((d, d + 1)) / 3
    law = LinearPrompts(n=examples, d=d, noise=rho**0.5, covariance=(1 / d,) * d)
    drawn, query = draw_moments(law, 200_000, 0), law.draw(200_000, 1).query[:, 0]
    wrong = features(drawn, query) @ torch.from_numpy(gamma).flatten() - torch.einsum("bd,db->b", query, drawn.task)
    measured, error = float(wrong.square().mean()) + rho, float(wrong.square().std()) / 200_000**0.5
    assert abs(measured - exact_risk(gamma, examples, rho)) < 5 * error and error < 0.05


def test_a_fit_to_fewer_prompts_than_entries_passes_through_all():
    d, law = 4, LinearPrompts(n=12, d=4, noise=0.3, covariance=(0.25,) * 4, pool=TaskPool(9, 2))
    for prompts, passes in ((15, True), (60, False)):
        gamma = task_diversity.fitted(d, 12, 9, prompts, 0.09, 2, "cpu")
        drawn = draw_moments(law, prompts, 2)
        query = replace(law, n=1).draw(prompts, 2, step=-1)
        labels = torch.einsum("bd,db->b", query.query[:, 0], drawn.task) + (query.observed - query.target)[:, 0]
        residual = features(drawn, query.query[:, 0]) @ torch.from_numpy(gamma).flatten() - labels
        assert (float(residual.abs().max()) < 1e-4) == passes
