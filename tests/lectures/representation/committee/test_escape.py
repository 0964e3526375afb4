"""Waiting on the plateau from random starts, at tiny sizes."""

import numpy as np

from flbook.lectures.representation import committee
from flbook.lectures.representation.committee import escape


def test_it_looks_at_the_same_runs_as_the_committee():
    tiny = escape.experiment.setting("tiny")
    waits = escape.experiment.measure(tiny).wait
    alpha = tuple(float(a) for a in np.arange(0, 12.25, 0.25))
    setting = committee.Setting(d=(16,), seed=tiny.seed, alpha=alpha, start="random")
    risk = committee.experiment.measure(setting).risk.squeeze("d").transpose("seed", "alpha").to_numpy()
    np.testing.assert_allclose(waits.sel(d=16), committee.crossing(np.array(alpha), risk, 0.1))


def test_who_never_leaves_is_not_counted():
    never = escape.experiment.measure(escape.experiment.setting("tiny", level=1e-9, longest=2.0)).wait
    assert never.isnull().all()


def test_a_crossing_lies_on_a_straight_line_of_the_logarithm():
    alpha, risk = np.array([0.0, 1.0, 2.0]), np.array([[1.0, 0.1, 0.001], [1.0, 1.0, 1.0]])
    found = committee.crossing(alpha, risk, 0.01)
    assert found[0] == 1.5 and np.isnan(found[1])


def test_random_starts_have_the_law_of_gaussian_weights():
    d, seeds = 40, tuple(range(4000))
    state = committee.random_start(d, seeds)
    # weights of variance 0.2 in d dimensions: E Q_ii = 0.2, var Q_ii = 0.08/d, var Q_12 = 0.04/d, var R = 0.2/d
    Q, R = state["Q"], state["R"]
    room = 4.5 / len(seeds) ** 0.5
    for own in (Q[:, 0, 0], Q[:, 1, 1]):
        assert abs(own.mean() - 0.2) < room * (0.08 / d) ** 0.5
        assert abs(own.var() / (0.08 / d) - 1) < 2 * room
    assert abs(Q[:, 0, 1].var() / (0.04 / d) - 1) < 2 * room and abs(Q[:, 0, 1].mean()) < room * (0.04 / d) ** 0.5
    assert np.abs(R.var(0) / (0.2 / d) - 1).max() < 2 * room and np.abs(R.mean(0)).max() < room * (0.2 / d) ** 0.5
    # the same luck along the teachers in every dimension
    np.testing.assert_allclose(committee.random_start(160, (3,))["R"] * 2, R[3:4])
