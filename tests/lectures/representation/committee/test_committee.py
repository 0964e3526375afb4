"""The committee at tiny sizes: simulation and equations, the plateau's length, what label noise leaves."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.dynamics.equations import integrate
from flbook.lectures.representation import committee
from flbook.lectures.representation.committee import Setting, experiment, plateau
from flbook.lectures.representation.committee.order_parameters import Committee


def test_runs_start_together_and_learn():
    found = experiment.run("tiny")
    np.testing.assert_allclose(found.Q.sel(alpha=0.0, d=20, seed=1), committee.beginning()["Q"])
    np.testing.assert_allclose(found.Q, found.Q.transpose("d", "seed", "alpha", "k", "i").values)
    assert (found.risk.sel(alpha=4.0) < found.risk.sel(alpha=0.0)).all()


def test_simulation_follows_the_equations():
    setting = Setting(d=(400,), seed=tuple(range(6)), alpha=(2.0, 6.0))
    found, exact = experiment.measure(setting), committee.equation(replace(setting, alpha=(0.0, 2.0, 6.0)))
    gap = found.mean("seed").squeeze("d") - exact.sel(alpha=[2.0, 6.0])
    assert max(float(np.abs(gap[name]).max()) for name in "QR") < 0.02


def test_a_tenth_of_asymmetry_costs_the_time_of_the_linearised_equations():
    waits = [committee.plateau_length(0.5, asymmetry) for asymmetry in (1e-3, 1e-4)]
    rate = committee.growth(0.5, committee.saddle(0.5))
    assert waits[1] - waits[0] == pytest.approx(np.log(10) / rate, rel=0.04)


def test_an_exit_that_begins_on_the_plateau_is_the_linearised_one():
    at, rule, alpha = committee.saddle(0.5), Committee(lr=0.5), np.arange(0.0, 400.0, 1.0)
    waits = []
    for small in (1e-4, 1e-5):
        start = {**at, "R": at["R"] + small * np.array([[1.0, -1.0], [-1.0, 1.0]])}
        path = integrate(rule.rate, start, alpha, 1.0)
        risk = rule.risk({name: np.moveaxis(value, -1, 0) for name, value in path.items()})
        waits.append(committee.crossing(alpha, risk[None], 0.005)[0])
    assert waits[1] - waits[0] == pytest.approx(np.log(10) / committee.growth(0.5, at), rel=1e-3)


@pytest.mark.parametrize("lr", [0.01, 0.5, 1.5])
def test_the_plateau_stands_still(lr):
    at = committee.saddle(lr)
    rate = committee.rule(Setting(lr=lr)).rate(at)
    assert at["Q"][0, 0] > at["Q"][0, 1]  # not the students that are one vector
    assert max(np.abs(value).max() for value in rate.values()) < 1e-10 * lr


def test_growth_at_small_steps_is_the_closed_form():
    assert committee.growth(1e-3, committee.saddle(1e-3)) / 1e-3 == pytest.approx(plateau.rate(2), rel=1e-3)


def test_a_plateau_that_does_not_end_gets_a_sentence():
    with pytest.raises(ValueError, match="not below level = 0.005 by longest = 20"):
        committee.plateau_length(0.5, 1e-4, longest=20.0)


def test_label_noise_leaves_what_the_closed_form_says():
    assert committee.final_risk(0.05, 0.1) / (0.05 * 0.01) == pytest.approx(1 / (np.pi * 3**0.5), rel=0.03)


def test_the_plateau_is_just_below_the_best_linear_model():
    at = committee.saddle(0.5)
    assert 0.95 * plateau.linear(2) < committee.rule(Setting()).risk(at) < plateau.linear(2)


def test_random_starts_reach_the_plateau():
    setting = Setting(d=(100,), seed=(0, 1, 2, 3), alpha=(0.0, 40.0), start="random")
    found = experiment.measure(setting)
    assert (found.R.sel(alpha=40.0) > 0.2).all()
    assert (found.risk.sel(alpha=40.0) < 0.03).all()
