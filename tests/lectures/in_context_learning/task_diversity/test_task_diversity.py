"""Task diversity: exact where it is known, estimators on their sides, checkpoints that fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.lectures.in_context_learning import task_diversity
from flbook.lectures.in_context_learning.shared.moments import draw_moments
from flbook.lectures.in_context_learning.task_diversity import Pretrained, exact_risk, features


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


def test_estimators_know_what_they_should():
    table = task_diversity.estimators((2, 40), d=3, n=6, prompts=60, seed=(0, 1, 2)).error.mean(("position", "seed"))
    fresh, own = table.sel(tasks="fresh"), table.sel(tasks="pool")
    assert (own.sel(estimator="dMMSE") < own.sel(estimator="ridge")).all()
    assert (fresh.sel(estimator="dMMSE") > fresh.sel(estimator="ridge")).all()
    assert float(fresh.sel(estimator="dMMSE", size=40)) < float(fresh.sel(estimator="dMMSE", size=2))


@pytest.mark.parametrize("given, side", [(Pretrained.few(), "dMMSE"), (Pretrained.many(), "ridge")])
def test_the_stored_transformers_are_on_their_sides(given, side):
    model, pool = task_diversity.network(given)
    assert pool.shape == (given.tasks, given.d) and given.path().stat().st_size < 500_000
    torch.testing.assert_close(pool, given.law().pool.tasks(given.d), rtol=1e-6, atol=1e-6)
    found = task_diversity.compare(given, model, pool, prompts=60, seed=(0, 1))
    apart = found.apart.mean(("position", "seed")).drop_sel(estimator="transformer")
    assert str(apart.idxmin("estimator").values) == side


def test_on_its_own_pool_nothing_beats_its_bayes_estimator():
    given = Pretrained.few()
    found = task_diversity.compare(given, *task_diversity.network(given), prompts=60, seed=(0, 1), own=True)
    assert str(found.error.mean(("position", "seed")).idxmin("estimator").values) == "dMMSE"


def test_a_transformer_is_trained_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(Pretrained, "path", lambda self: tmp_path / f"{self.d}_{self.tasks}.safetensors")
    small = Pretrained(tasks=3, d=2, n=3, width=8, layers=1, heads=1, steps=3, batch=4)
    task_diversity.retrain(small)
    model, pool = task_diversity.network(small)
    assert pool.shape == (3, 2) and not model.training
    with pytest.raises(ValueError, match="another setting"):
        task_diversity.network(replace(small, steps=4))
    with pytest.raises(ValueError, match="there is no checkpoint"):
        task_diversity.network(replace(small, tasks=5))


def test_the_grid_of_the_paper_is_one_call_each():
    given = Pretrained.paper(2**14)
    assert given.untrained().predictions(torch.randn(2, 16, 8), torch.randn(2, 16)).shape == (2, 16)
    assert given.law().pool.size == 2**14 and given.decay == "linear"
