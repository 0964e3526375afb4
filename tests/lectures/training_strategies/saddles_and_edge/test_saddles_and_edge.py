"""Half times and distances: closed forms against an aligned mode, and what is refused."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import saddles_and_edge
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import (
    LinearNetworkTraining,
    course,
    first_time,
)


@pytest.mark.parametrize("lr", [0.02, 0.2])
def test_the_half_time_is_that_of_a_balanced_mode(lr):
    u_0, s = 1e-30, 2.0
    layer = torch.full((1, 1), u_0**0.5).double()
    modes = course(LinearNetworkTraining(torch.full((1, 1), s).double(), (layer, layer)), lr, round(24 / lr))
    expected = saddles_and_edge.half_time(u_0, s, lr)
    assert float(first_time(modes / s, 0.5, lr)[0]) == pytest.approx(expected, rel=0.006)
    assert saddles_and_edge.half_time(u_0, s) < expected


def test_theory_finds_the_random_networks():
    found = saddles_and_edge.run("tiny")
    theory = saddles_and_edge.half_time(found.u_0, found.s, 0.1)
    assert abs(float((found.half / theory).sel(s=2.0).mean()) - 1) < 0.05
    assert (found.distance.sel(sigma=1e-3) < found.distance.sel(sigma=1e-2)).all()
    assert (found.gradient.sel(sigma=1e-3) < found.gradient.sel(sigma=1e-2)).all()


def test_paths_are_the_courses_of_the_run():
    setting = saddles_and_edge.experiment.setting("tiny")
    path, found = saddles_and_edge.paths(setting), saddles_and_edge.run(setting)
    np.testing.assert_allclose(path.distance.min("time"), found.distance)
    np.testing.assert_allclose(path.distance.sel(rank=1).isel(time=0), 2, atol=1e-3)  # the first of two modes is alone
    after = path.share.sel(time=found.half.transpose("sigma", "seed", "s"), method="nearest")
    assert (abs(after - 0.5) < 0.3).all()


def test_the_growth_of_half_times_is_that_of_the_steps():
    setting = saddles_and_edge.experiment.setting("tiny", sigma=(1e-4, 1e-6), time=16.0)
    grown = saddles_and_edge.growth(saddles_and_edge.run(setting), 2.0)
    np.testing.assert_allclose(grown, float(saddles_and_edge.stretch(0.1, 2.0)), rtol=0.01)


def test_modes_out_of_order_are_refused():
    with pytest.raises(ValueError, match="the strongest first"):
        saddles_and_edge.experiment.setting(s=(1.0, 2.0))
