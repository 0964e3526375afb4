"""The Bayes gap at a tiny preset."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.data.prompt_pool import PromptPool
from flbook.lectures.in_context_learning import bayes_gap as lecture
from flbook.lectures.in_context_learning.bayes_gap import Planes, Setting
from flbook.runs import settings

TINY = Setting(model=("told k", "frozen features"), N=(8, 400), seed=(0, 1), n=4, steps=80, batch=16, points=2000)


def test_a_labelled_dataset_whose_parts_add_up():
    dataset = lecture.measure(TINY)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    np.testing.assert_allclose(dataset.risk, dataset.gap + dataset.variance + dataset.cross, rtol=1e-4)
    assert (abs(dataset.cross) < 0.1 * dataset.risk).all()
    assert (dataset.variance == dataset.variance[0, 0]).all(), "the same test prompts for all"
    gap = dataset.gap.sel(model="told k").mean("seed")
    assert gap.sel(N=400) < gap.sel(N=8)


def test_a_cell_does_not_see_the_grid_around_it():
    small = replace(TINY, steps=5)
    whole = lecture.measure(small)
    one = lecture.measure(replace(small, model=("told k",), N=(400,), seed=(1,)))
    assert one.gap.item() == pytest.approx(whole.gap.sel(model="told k", N=400, seed=1).item(), rel=1e-4)


def test_pools():
    data = TINY.data()
    pool, fresh = PromptPool(data, 3), PromptPool(data, 0)
    seen = torch.cat([pool.draw(8, (0, 1), step).context.y[0] for step in range(5)])
    assert len(torch.unique(seen[:, 0])) == 3
    seen = torch.cat([fresh.draw(8, (0, 1), step).context.y[0] for step in range(5)])
    assert len(torch.unique(seen[:, 0])) == 40


def test_two_planes():
    dataset = lecture.planes(Planes(noise=(0.7, 1.5), seed=(0, 1), n=12, batch=50))
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    np.testing.assert_allclose(dataset.variance, dataset.known + dataset.cost, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dataset.isel(k=0).variance, 1, rtol=1e-5)
    late = dataset.isel(k=-1).mean("seed")
    for part in (late.known, late.cost):
        assert part.sel(noise=0.7) < part.sel(noise=1.5)


def test_presets_and_errors():
    for preset in (Setting.book, Setting.rivals, Setting.counting, Setting.paper):
        lecture.check(preset())
        assert settings.to_json(preset())
    for change, sentence in [
        (dict(N=(-1,)), "N must not be negative"),
        (dict(n=0), "n must be at least 1"),
        (dict(noise=0.0), "noise must be positive"),
        (dict(model=("told",)), "model must be among"),
        (dict(law="Cauchy"), "law must be among"),
        (dict(steps=0), "steps and batch must be"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            lecture.run(replace(TINY, **change))
