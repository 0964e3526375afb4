"""Two scalings of one network at a tiny preset: cells are those of direct training, and the laws already show."""

from dataclasses import replace

import numpy as np
import torch

from flbook.lectures.representation import lazy_and_mean_field
from flbook.lectures.representation.lazy_and_mean_field import experiment
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny")


def test_the_tangent_rival_is_the_lazy_network_at_any_scaling():
    training = lazy_and_mean_field.problem(TINY, 16)
    fresh = lazy_and_mean_field.fresh_samples(TINY, training)
    tangent = lazy_and_mean_field.rivals(TINY, training, fresh)["tangent"]
    lazy = training.lazy()
    params = fit(lazy, GradientDescent(training.model.step(TINY.lr)), TINY.steps).params
    for place, x in enumerate((training.x, fresh.x)):
        for p in range(2):
            torch.testing.assert_close(lazy.predict(params, x)[p], tangent[place], rtol=1e-9, atol=1e-10)


def test_the_best_ridge_is_the_best():
    training = lazy_and_mean_field.problem(TINY, 16)
    fresh = lazy_and_mean_field.fresh_samples(TINY, training)
    outputs = lazy_and_mean_field.rivals(TINY, training, fresh)
    best, tangent = (lazy_and_mean_field.error(outputs[name][1], fresh.y).mean() for name in ("kernel", "tangent"))
    assert best < tangent * 1.05
    line = np.linalg.lstsq(training.x[0].numpy(), training.observed[0].numpy(), rcond=None)[0]
    np.testing.assert_allclose(outputs["linear"][1][0], fresh.x[0].numpy() @ line)


def test_the_race_ends_where_the_sweep_does():
    race, cells = lazy_and_mean_field.race(replace(TINY, width=(16,))), experiment.run(TINY).sel(width=16)
    assert race.time[0] == 0 and race.time[-1] == TINY.time and (race.moved[0] == 0).all()
    for name in ("moved", "kernel_change", "aligned"):
        np.testing.assert_allclose(race[name][-1], cells[name], err_msg=name)
    np.testing.assert_allclose(race.test_error[-1], cells.test_error.sel(model="network"))
    np.testing.assert_allclose(race.tangent[-1], cells.test_error.sel(model="tangent")[0])
    np.testing.assert_allclose(race.test_error[0], 1.0)


def test_scales_and_paths():
    scales = experiment.setting("enlarged", start="centred")
    np.testing.assert_allclose(lazy_and_mean_field.alpha(scales, 64), 2.0 ** np.arange(7))
    plane = experiment.setting("plane", width=(12,), n=30)
    paths = lazy_and_mean_field.paths(plane, (0.0, 1.0, 5.0))
    assert dict(paths.w.sizes) == {"time": 3, "power": 2, "neuron": 12, "axis": 2}
    assert (paths.w[0, 0] == paths.w[0, 1]).all() and (paths.sign.values == [1] * 6 + [-1] * 6).all()
    assert abs(paths.train_error[0] - 1).max() < 1e-12 and (paths.train_error[-1] < paths.train_error[1]).all()


def test_a_line_then_a_curve_is_better_than_the_line_and_exact_where_the_target_is_straight():
    setting = replace(TINY, n=60)
    training = lazy_and_mean_field.problem(setting, 16)
    fresh = lazy_and_mean_field.fresh_samples(setting, training)
    line = lazy_and_mean_field.rivals(setting, training, fresh)["linear"][1]
    found = lazy_and_mean_field.line_then_curve(setting)
    assert found.shape == (3,)
    assert found.mean() < lazy_and_mean_field.error(line, fresh.y).mean()
    straight = replace(setting, sharpness=0.01)  # nearly
    assert lazy_and_mean_field.line_then_curve(straight).max() < 1e-6
