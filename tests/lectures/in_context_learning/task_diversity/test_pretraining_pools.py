"""Transformers on pools of many sizes: what comes with the library is what its networks do, and the split is exact."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.lectures.in_context_learning.task_diversity import pretraining_pools
from flbook.lectures.in_context_learning.task_diversity.pretraining_pools import KEPT, experiment


@pytest.mark.parametrize("preset", KEPT)
def test_the_networks_that_come_with_the_library_give_their_stored_errors_again(preset):
    runs, (s, network) = experiment.stored(preset), pretraining_pools.opened(preset)
    part = replace(s, seed=s.seed[:2])
    found = pretraining_pools.test(part, network)
    stored = runs.sel(steps=list(s.steps), tasks=list(s.tasks), seed=list(part.seed)).isel(steps=0)
    np.testing.assert_allclose(found.error[:, :, 0], stored.error[:, :, 0], rtol=0.02, atol=0.003)  # half precision
    np.testing.assert_allclose(found.error[:, :, 1:], stored.error[:, :, 1:], rtol=1e-6)
    np.testing.assert_allclose(found.between, stored.between, rtol=1e-5)
    assert experiment.path(".safetensors", preset).stat().st_size < 400_000


def test_the_pools_rule_is_best_at_home_and_ridge_regression_elsewhere():
    error = pretraining_pools.trained().error.mean(("seed", "position"))
    for where, best in (("own pool", "pool's Bayes rule"), ("fresh tasks", "ridge")):
        assert (error.sel(tested=where).idxmin("rule", skipna=True, fill_value=best) == best).all()


def test_the_split_is_the_excess_of_answers_between_the_rules():
    runs = experiment.measure(experiment.setting("tiny"))
    split, pool = pretraining_pools.split(runs), runs.apart.sel(rule="pool's Bayes rule")
    np.testing.assert_allclose((1 - split.share) ** 2 * runs.between + split.off, pool)
    assert (split.off > 0).all()
    exact = runs.assign(apart=xr.where(runs.rule == "ridge", runs.between, 0.0))  # answers of the pool's Bayes rule
    np.testing.assert_allclose(pretraining_pools.split(exact).share, 1)
    np.testing.assert_allclose(pretraining_pools.split(exact).off, 0, atol=1e-12)


def test_only_the_tasks_differ_between_pools():
    s = experiment.setting("tiny")
    drawn = pretraining_pools.pools(s).draw(7, seed=3)
    torch.testing.assert_close(drawn.context.x[0], drawn.context.x[1])
    noise = drawn.context.y - torch.einsum("...d,...nd->...n", drawn.task, drawn.context.x)
    torch.testing.assert_close(noise[0], noise[1])
    for tasks, size in zip(drawn.task, s.tasks, strict=True):
        assert torch.cdist(tasks, pretraining_pools.bayes(s, size).pool).amin(1).max() < 1e-12
    starts = [p for p in pretraining_pools.untrained(s).parameters()]
    assert all(torch.equal(p[0], p[1]) for p in starts)


def test_another_setting_is_refused(monkeypatch):
    monkeypatch.setattr(pretraining_pools, "KEPT", {"larger": (4, 16)})
    with pytest.raises(ValueError, match="another setting"):
        pretraining_pools.opened()


def test_the_grid_of_the_paper_is_a_preset():
    s = experiment.setting("gpu", tasks=(4,), steps=(1,))
    network = pretraining_pools.untrained(s)
    assert network.predictions(torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16)).shape == (1, 2, 16)
    assert max(experiment.setting("gpu").tasks) == 4**10 and s.decay == "linear"
