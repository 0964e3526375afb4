"""Both layers trained, at a tiny preset: the two regimes, the balance, and only the product of the starts counts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting import output_layers
from flbook.lectures.benign_overfitting.output_layers import Setting, experiment

TINY = experiment.setting("tiny")


def test_the_two_regimes():
    cells = experiment.run(TINY).squeeze("sigma_0")
    assert (cells.train_error == 0).all()
    assert (cells.test_error.sel(r=50.0) < 0.05).all() and (cells.test_error.sel(r=0.1) > 0.2).all()
    assert (cells.output.sel(v_0=0.01) > 0.2).all(), "small output weights grow"
    assert (abs(cells.output.sel(v_0=3.0) / 3 - 1) < 0.03).all(), "large ones stay"


def test_growth_keeps_the_balance():
    setting = replace(TINY, r=(50.0,), sigma_0=(0.01,), lr=0.05, steps=500)
    growth = output_layers.growth(setting).squeeze(("r", "sigma_0"))
    assert growth.drift[0].max() == 0 and growth.drift.max() < 0.01
    halved = output_layers.growth(replace(setting, lr=0.025, steps=1000)).squeeze(("r", "sigma_0"))
    ratio = growth.drift.isel(step=-1) / halved.drift.isel(step=-1)
    np.testing.assert_allclose(ratio, 2.0, rtol=0.25)
    small = growth.isel(step=-1).sel(v_0=0.01)
    np.testing.assert_allclose(small["filter"] ** 2 - small.output**2, 0.04, atol=0.03)
    assert growth.time[-1] == pytest.approx(25.0)


def test_the_start_by_hand():
    start = output_layers.starts(Setting(v_0=(1.0, 30.0), sigma_0=(1e-4, 1e-3), n=25, d=1000))
    np.testing.assert_allclose(start, [[0.02, 0.2], [0.6, 6.0]])


def test_steps_are_as_long_in_the_output():
    rule = output_layers.rule(Setting(v_0=(0.1, 1.0, 10.0), n=20, d=1000, m=10))
    torch.testing.assert_close(rule.lr.flatten(), torch.tensor([0.2, 0.2, 0.002]).double())


def test_large_output_weights_train_as_large_filters():
    problems = [
        output_layers.problem(replace(TINY, v_0=(v_0,), sigma_0=(sigma_0,), r=(5.0,)))
        for v_0, sigma_0 in ((1e4, 1e-5), (1e6, 1e-7), (1e4, 1e-4))
    ]
    ends = []
    for problem, v_0 in zip(problems, (1e4, 1e6, 1e4), strict=True):
        rule, params = output_layers.rule(replace(TINY, v_0=(v_0,))), problem.start()
        for _ in range(100):
            params, _ = rule.step(problem, params, None)
        ends.append(problem.predict(params))
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-6, atol=1e-6)
    assert (ends[0] - ends[2]).abs().max() > 0.05, "another product is another network"
