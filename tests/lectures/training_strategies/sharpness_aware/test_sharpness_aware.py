"""The sweep at a tiny preset: rules that must agree, the two borders, and what is read off a path at equal loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from flbook import measures
from flbook.lectures.training_strategies import sharpness_aware
from flbook.lectures.training_strategies.sharpness_aware import Setting, at_loss, experiment, paths
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent, SharpnessAware

TINY = experiment.setting("tiny", model=("network",), radius=(1.0,))


def test_without_a_radius_all_rules_are_gradient_descent_bit_for_bit():
    cells = experiment.measure(replace(TINY, radius=(0.0,)))
    for name in ("test_error", "train_loss", "memorised"):
        for rule in TINY.rule[1:]:
            assert (cells[name].sel(rule=rule) == cells[name].sel(rule="GD")).all(), (name, rule)
    apart = experiment.measure(TINY).train_loss
    for rule in TINY.rule[1:]:
        assert (apart.sel(rule=rule) != apart.sel(rule="GD")).all(), rule


@pytest.mark.parametrize("name", ["SAM then GD", "GD then SAM"])
def test_rules_change_at_the_switch(name):
    training = sharpness_aware.problem(TINY)
    radius = sharpness_aware.theorem_radius(TINY).to(training.gram.w_w)
    plain, aware = GradientDescent(TINY.lr), SharpnessAware(TINY.lr, radius)
    first, second = (aware, plain) if name == "SAM then GD" else (plain, aware)
    params = training.start()
    for step in range(TINY.steps):
        params, _ = (first if step < TINY.switch else second).step(training, params, None)
    cells = experiment.measure(TINY).sel(rule=name).squeeze(("model", "radius"))
    np.testing.assert_array_equal(cells.train_loss, training.train_loss(params))


def test_the_radius_is_the_theorems():
    assert sharpness_aware.theorem_radius(Setting(d=(2500,), n=16, m=10, sigma_xi=2.0)).item() == pytest.approx(0.2)


def test_sam_first_wins_where_gradient_descent_and_sam_last_fail():
    few = experiment.setting(rule=("GD", "SAM then GD", "GD then SAM"), d=(8000,), mu=(2.5,), seed=(0, 1, 2),
                             switch=500, steps=1000)
    error = experiment.measure(few).test_error.squeeze()
    assert (error.sel(rule="SAM then GD") < 0.02).all()
    assert (error.sel(rule="GD") > 0.2).all() and (error.sel(rule="GD then SAM") > 0.2).all()


def test_a_network_without_a_kink_does_not_profit():
    few = experiment.setting(model=("linear", "lazy"), d=(8000,), mu=(2.5,), seed=(0, 1, 2), switch=200, steps=400)
    assert (experiment.measure(few).test_error > 0.2).all()


def test_sam_alone_leaves_the_error_of_a_filter_along_the_signal():
    few = experiment.setting(rule=("SAM",), d=(4000,), mu=(1.0,), seed=(0, 1), steps=600)
    assert experiment.measure(few).test_error.values.ravel() == pytest.approx(0.1587, abs=0.02)


def test_paths_end_where_the_sweep_does_and_know_both_yardsticks():
    setting = replace(TINY, rule=("GD", "SAM"), steps=30)
    order = ("rule", "d", "seed", "mu")
    path, cells = paths(setting), experiment.measure(setting).squeeze(("model", "radius")).transpose(*order)
    end = path.isel(step=-1).transpose(*order)
    np.testing.assert_allclose(end.train_loss, cells.train_loss, rtol=1e-4)
    np.testing.assert_allclose(end.rho, cells.memorised, rtol=1e-3)
    assert path.step[0] == 0 and path.step[-1] == 30 and (path.rise > 0).all()
    training = sharpness_aware.problem(setting).to(torch.float64)
    params = fit(training, GradientDescent(setting.lr), 30).params
    exact = measures.sharpness(training, params, steps=200, reach=1e-6)
    np.testing.assert_allclose(end.sharpness.sel(rule="GD"), exact, rtol=1e-3)


def test_values_at_equal_loss_are_interpolated_by_logarithms():
    step = [0, 1, 2]
    path = xr.Dataset({"train_loss": (("rule", "step"), [[1.0, 0.1, 0.01], [1.0, 0.9, 0.8]]),
                       "sharpness": (("rule", "step"), [[8.0, 4.0, 1.0], [8.0, 8.0, 8.0]])},
                      {"step": step, "rule": ["GD", "SAM"]})
    value = at_loss(path, "sharpness", 10**-1.5)
    assert value.sel(rule="GD").item() == pytest.approx(2.0) and np.isnan(value.sel(rule="SAM"))


def test_a_signal_of_no_length_has_no_orthogonal_noise():
    with pytest.raises(ValueError, match="^mu must be above 0 if the noise is orthogonal"):
        replace(TINY, orthogonal=True, mu=(0.0, 1.0))
