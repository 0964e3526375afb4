"""The experiment at its tiny preset, and what the pictures draw."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import out_of_distribution as ood
from flbook.lectures.training_strategies.out_of_distribution import Setting
from flbook.lectures.training_strategies.out_of_distribution import out_of_distribution_pictures as pictures
from flbook.lectures.training_strategies.out_of_distribution.environment_training import features

TINY = ood.experiment.setting("tiny")


def test_a_head_start_is_that_of_risk_alone():
    cells = ood.experiment.measure(TINY)
    torch_start = ood.train(TINY, ood.problem(TINY), 2.0).params
    learned = features(ood.problem(TINY), torch_start)
    np.testing.assert_allclose(cells.signal_before.sel(head_start=2.0).isel(weight=0), learned[:, 0], rtol=1e-6)
    assert (abs(cells.signal_before.sel(head_start=0.0)) < 0.01).all()
    path = TINY.plane().flow(np.zeros(2), np.array([2.0]))[0]
    np.testing.assert_allclose(learned, [path] * 2, atol=0.06)


def test_routes_end_where_the_page_says():
    setting = Setting(seed=(0, 1), n=80, d=4, m=2, weight=(300.0,))
    ends = ood.routes(setting).isel(moment=-1).mean("seed")
    assert ends.sizes["route"] == len(ood.ROUTES)
    a, b = ends.signal.to_series(), ends.spurious.to_series()
    assert a["IRMv1 from scratch"] < 0.02 < 0.9 < a["IRMv1 after spurious"] and b["risk alone"] > a["risk alone"]
    assert a["VREx from scratch"] > 0.9 and ends.accuracy.sel(route="risk alone") == pytest.approx(0.1, abs=0.02)


def test_the_least_head_start_lies_between_the_last_undone_and_the_first_kept():
    setting = Setting(seed=(0, 1), n=80, d=4, m=2, weight=(300.0,), head_start=(1.0, 2.0, 3.0, 4.0), time=4.0)
    cells = ood.experiment.measure(setting)
    least = ood.least_head_start(cells)
    kept = (cells.signal.isel(weight=0) > 0.55).sum("head_start")
    assert (kept >= 1).all() and (kept <= 3).all()
    for k in range(2):
        first = 4 - int(kept[k])
        before = cells.signal_before.isel(weight=0, seed=k)
        assert float(before[first - 1]) < float(least[k]) < float(before[first])


def test_the_level_has_its_unit_and_the_pace_is_stable():
    assert TINY.pace(1000.0) == 0.005 and TINY.pace() == TINY.pace(1.0) == 0.05
    level = ood.stopped(Setting(seed=(0,), n=80, d=4, m=2, sigma_0=1e-6, sigma_xi=0.01), 1000.0)
    assert level.item() == pytest.approx(1.087, abs=0.05)


def test_the_border_runs_into_the_saddles():
    plane = Setting().plane(1000.0)
    found = pictures.saddles(plane)
    assert len(found) == 2
    for w, _ in found:
        assert np.abs(plane.gradient(w)).max() < 1e-6
    sides = pictures.border(plane)
    outer = sorted(side[-1].round(1).tolist() for side in sides)
    assert outer[0][0] == -0.5 and outer[1][1] == -0.6 and outer[2] == outer[3] == [0.4, 0.7]  # the last a maximum
    edge = np.concatenate(sides)
    side = edge[np.abs(edge[:, 1] - 1.0).argmin()]
    assert plane.end(side + [0.03, 0])[0] > 0.5 > plane.end(side - [0.03, 0])[0]


def test_a_start_is_taken_over():
    other = {"w": torch.randn(2, 2, 2, 6)}
    assert torch.equal(ood.problem(TINY, start=other).start()["w"], other["w"])
