"""How long the last phase lasts: times between two levels, and the stored run."""

import numpy as np

from flbook.lectures.in_context_learning.attention_landscape import accelerated_phase


def test_a_level_is_met_between_two_steps_by_logarithms():
    loss = np.array([[1.0, 0.5, 0.125, 0.1], [1.0, 0.9, 0.8, 0.7]])
    np.testing.assert_allclose(accelerated_phase.first_below(loss, 0.25), [1.5, np.nan])
    assert accelerated_phase.first_below(loss, 2.0)[0] == 0


def test_the_stored_times_are_what_the_library_computes():
    stored = accelerated_phase.experiment.stored()
    fresh = accelerated_phase.experiment.measure(accelerated_phase.Setting(k=(2,), seed=(0, 1, 2)))
    for name in ("entered", "halving"):
        np.testing.assert_allclose(fresh[name], stored[name].sel(k=[2], seed=[0, 1, 2]), rtol=1e-2)
    assert float(stored.halving.isnull().sum()) == 0
