"""Training to zero hinge loss at a tiny preset: both stops, within the exact bounds."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting import leaky_relu
from flbook.lectures.benign_overfitting.leaky_relu import Setting, experiment, smooth_leaky_relu

TINY = experiment.setting("tiny")


def test_the_bounds_that_the_page_derives():
    done = experiment.run(TINY).sel(stop="zero hinge loss", model="network")
    n = done.n
    eta = 1 / (2 * TINY.m * n)
    assert (done.norm * 0.1 * TINY.m**0.5 / done.svm_norm < 3 / 2**0.5).all()
    assert (done.steps * eta * 0.01 * TINY.m / done.svm_norm**2 < 1.5).all()


def test_the_race_ends_where_the_stop_is():
    setting = TINY.thinned(model=("network",), n=(10,), flip_prob=(0.1,), ratio=(4,))
    end = experiment.measure(setting).squeeze().sel(stop="zero hinge loss")
    history = leaky_relu.race(setting, steps=int(end.steps.max()), fresh=16)
    assert (history.hinge_loss.isel(step=-1) < 1e-6).all() and int(history.flipped.sum()) == 1
    np.testing.assert_allclose(history.test_error.isel(step=-1), end.test_error, atol=0.005)
    assert history.train_margin.isel(step=-1).min() >= 1 - 1e-6 and history.fresh_margin.sizes["fresh"] == 32


def test_signal_strength_has_its_unit():
    for unit, expected in (("1", 0.5), ("1/n", 0.05), ("1/k", 0.25), ("1/d", 0.0125)):
        assert leaky_relu.strength(Setting(gamma=(0.5,), gamma_unit=unit), 10, 40, 0.2, 0.5) == pytest.approx(expected)


def test_smooth_networks_in_high_dimension_average():
    dataset = smooth_leaky_relu.run("tiny").sel(d=1e6)
    assert (dataset.train_error == 0).all() and (dataset.cosine > 0.98).all() and (dataset.bend > 0.5).all()
