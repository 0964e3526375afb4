"""The tanh network: its sharpness against Lanczos' method, and its stored course before rounding steers it."""

import numpy as np
import torch

from flbook import observe
from flbook.data.ten_digits import ten_digits
from flbook.lectures.training_strategies.saddles_and_edge import parity_hover


def test_the_sharpness_is_the_largest_eigenvalue():
    digits = ten_digits(50, (0, 1))
    x, y = digits.x.flatten(2).float(), (1 - 2 * (digits.y % 2)).float()
    w = parity_hover.weights(16, 64, (0, 1))
    v = parity_hover._unit([torch.ones_like(part) for part in w])
    found, _ = parity_hover.largest(w, x, y, v, 200)
    for seed in (0, 1):
        def loss(p, seed=seed):
            return parity_hover.loss([part[None] for part in p.values()], x[seed][None], y[seed][None])[0]
        params = {f"w{k}": part[seed] for k, part in enumerate(w)}
        expected = observe.sharpness(loss, params).value
        assert abs(float(found[seed]) / expected - 1) < 1e-3


def test_the_stored_networks_begin_as_they_are_trained_now():
    stored = parity_hover.experiment.stored()
    setting = parity_hover.experiment.setting("longer", lr=(0.12,), seed=(0, 3), time=6.0, points=2)
    found, old = parity_hover.run(setting), stored.sel(lr=[0.12], seed=[0, 3], time=[0.0, 3.0, 6.0])
    np.testing.assert_allclose(found.sharpness, old.sharpness, rtol=0.02)
    np.testing.assert_allclose(found.loss, old.loss, rtol=0.02)
