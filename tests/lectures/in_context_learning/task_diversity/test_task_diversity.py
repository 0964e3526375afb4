"""Task diversity at a tiny preset: labelled, exact where it is known, checkpoints that fit, and stored as measured."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.dynamics.moments import draw_moments
from flbook.lectures.in_context_learning import task_diversity
from flbook.lectures.in_context_learning.task_diversity import Pretrained, Setting, exact_risk, features, measure
from flbook.runs import results, settings

TINY = Setting(d=(5,), kappa=(0.5, 2.0), tau=(0.5, 3.0), seed=(0, 1, 2))


def test_a_labelled_dataset():
    dataset = measure(TINY)
    assert dataset.risk.dims == ("d", "kappa", "tau", "seed") and dataset.limit.dims == ("d", "kappa", "tau")
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert (dataset.risk > TINY.rho).all()


def test_a_cell_does_not_see_the_grid_around_it(tmp_path):
    whole = task_diversity.run(TINY, cache=tmp_path)
    one = measure(TINY.thinned(kappa=(2.0,), tau=(3.0,), seed=(1,))).squeeze()
    np.testing.assert_allclose(one.risk, whole.risk.sel(kappa=2.0, tau=3.0, seed=1), rtol=1e-9)


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
        left = features(drawn, query.query[:, 0]) @ torch.from_numpy(gamma).flatten() - labels
        assert (float(left.abs().max()) < 1e-4) == passes


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


def test_a_transformer_is_trained_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(task_diversity.results, "path", lambda name: tmp_path / name)
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


@pytest.mark.parametrize("change, sentence", [
    (dict(kappa=(0.01,)), "kappa must leave at least one task; got 0.01 at d = 5"),
    (dict(tau=(1.0,)), "tau must differ from 1"),
])
def test_what_does_not_exist_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        task_diversity.run(TINY.thinned(**change))


@pytest.mark.parametrize("kappa, tau, seed", [(5.0, 0.25, 0), (0.5, 0.5, 7), (5.0, 0.75, 3)])
def test_three_cells_of_the_stored_result(kappa, tau, seed):
    stored = results.open("task_diversity").sel(kappa=kappa, tau=tau, seed=seed).squeeze()
    again = measure(Setting.paper().thinned(kappa=(kappa,), tau=(tau,), seed=(seed,))).squeeze()
    np.testing.assert_allclose(again.risk, stored.risk, rtol=1e-4)
