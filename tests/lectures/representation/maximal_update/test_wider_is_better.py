"""Tuned networks: errors of predicting zero, of a step by hand, and the base width that all share."""

import numpy as np
import torch

from flbook.lectures.representation.maximal_update import two_hidden_layers as network
from flbook.lectures.representation.maximal_update import wider_is_better
from flbook.training.parametrisation import MAXIMAL_UPDATE

TINY = wider_is_better.experiment.setting("tiny")


def test_without_a_rate_the_error_is_that_of_predicting_zero():
    ends = wider_is_better.experiment.setting("tiny", octave=(-60.0,))
    found = wider_is_better.run(ends)
    x, y = wider_is_better.sample(ends, 0)
    expected = y[: ends.n].square().mean() / y.square().mean()
    np.testing.assert_allclose(found.train_error.sel(seed=0), float(expected), rtol=1e-5)


def test_one_step_by_hand():
    found = wider_is_better.run(TINY).test_error.sel(width=8, octave=-1.0, step=1, seed=1)
    x, y = wider_is_better.sample(TINY, 1)
    start = network.start(8, 4, x[:12], 1, [MAXIMAL_UPDATE])
    lr = network.Weights(*(one.to(x) for one in network.rates(8, 4, 0.5, [MAXIMAL_UPDATE], "gradient descent")))
    before = network.outputs(start, x).f
    after = network.outputs(next(network.descend(start, x[:12], y[:12] + before[..., :12], lr)), x).f
    error = (after - before - y)[0, 12:].square().mean() / y.square().mean()
    np.testing.assert_allclose(found.sel(parametrisation="maximal update"), float(error), rtol=1e-4)


def test_at_the_base_width_all_are_one_network_and_explosions_count_as_a_hundred():
    base = wider_is_better.run(TINY).test_error.sel(width=4)
    np.testing.assert_allclose(base, base.isel(parametrisation=[0, 0, 0]).values, rtol=1e-4)
    wild = wider_is_better.run(wider_is_better.experiment.setting("tiny", octave=(40.0,), step=(3,)))
    assert float(wild.test_error.max()) == 100 and torch.tensor(wild.train_error.values).isfinite().all()
