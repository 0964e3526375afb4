"""Two borders: the law of the first step, the share by hand, and which border comes first."""

import numpy as np
import pytest
import torch

from flbook.dynamics import GramTraining
from flbook.lectures.benign_overfitting import two_borders
from flbook.lectures.benign_overfitting.two_borders import Setting, border, noise_share


@pytest.mark.parametrize("flips", [0.0, 0.2])
def test_the_first_step_learns_in_a_fixed_ratio(flips):
    setting = Setting(n=(20,), d=(200_000,), mu=(50.0, 200.0), seed=(0, 1), flip_prob=flips, steps=1, points=8)
    share = two_borders.run(setting)["first"].squeeze(("q", "n", "d"))
    a = 20 * share.mu**2 / 200_000
    np.testing.assert_allclose((1 / share - 1) / a, (1 - 2 * flips) / 2 + 0 * share, rtol=0.03)


def test_the_share_counts_what_was_memorised_only():
    training = two_borders.problem(Setting(d=(400,), mu=(2.0,), seed=(0,), m=1), 1.0, 4)
    assert isinstance(training, GramTraining)
    length = training.gram.xi_xi.diagonal(dim1=-2, dim2=-1)
    params = training.start()
    params["mu"] = params["mu"] + torch.tensor([0.5, -0.5])  # gamma = j |mu|^2 times it: 2 and 2
    memorised = torch.tensor([[1.0, 0.0, 3.0, 0.0], [0.0, -2.0, 0.0, -2.0]])  # rho = 1, 3 and 2, 2: mean 2
    params["xi"] = params["xi"] + memorised / length.squeeze()
    np.testing.assert_allclose(noise_share(training, params).squeeze(), 0.5, rtol=1e-5)


def test_relu_stops_erring_before_it_learns_more_signal_than_noise_and_its_cube_does_not():
    relu = two_borders.run(Setting(d=(20_000,), seed=(0, 1, 2, 3))).squeeze(("q", "n", "d"))
    assert float(border(relu["first"], "mu", 0.5) / border(relu.test_error, "mu", 0.25)) > 8
    slow = dict(start=0.1, lr=0.05, steps=400, seed=(0, 1, 2, 3))
    cube = Setting(q=(3.0,), d=(20_000,), mu=(20.0, 40.0, 60.0, 80.0, 120.0), **slow)
    found = two_borders.run(cube).squeeze(("q", "n", "d"))
    assert 0.5 < float(border(found["last"], "mu", 0.5) / border(found.test_error, "mu", 0.25)) < 2
