"""The network: what it watches at the start, and the stored result's beginning."""

import numpy as np

from flbook.lectures.representation.grokking import trained_quadratic


def test_it_fits_what_it_is_shown():
    setting = trained_quadratic.experiment.setting("tiny", width=64, steps=100, every=50, lr=0.02)
    found = trained_quadratic.run(setting)
    assert (found.train.sel(step=100) == 1).all() and (found.train.sel(step=0) < 1).all()
    assert found.step.values.tolist() == [0, 50, 100]


def test_the_stored_networks_begin_as_they_would_today():
    stored = trained_quadratic.experiment.stored()
    setting = trained_quadratic.experiment.setting("longer", split=("random",), seed=(0, 1), steps=1)
    again = trained_quadratic.run(setting)
    for name in again.data_vars:
        np.testing.assert_allclose(again[name], stored[name].sel(split=["random"], seed=[0, 1], step=[0]), atol=2e-3)
