"""The vision transformer at a tiny preset: labelled, independent of the grid, and its rival is frozen attention."""


import numpy as np
import torch

from flbook.lectures.benign_overfitting import vision_transformer
from flbook.lectures.benign_overfitting.vision_transformer import Setting, experiment
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny")


def test_the_rival_is_the_network_with_frozen_attention():
    setting = TINY.thinned(d=(120,), n=(6,), sigma_0=0.0, sigma_v=0.0)
    training = vision_transformer.problem(setting, 120, 6)
    frozen = training.to(torch.float64).frozen()
    rival, side = vision_transformer.pooling(training.to(torch.float64))
    rule = GradientDescent(3.0)
    theirs, ours = fit(frozen, rule, 50).params, fit(rival, rule, 50).params
    torch.testing.assert_close(rival.predict(ours), frozen.predict(theirs))
    torch.testing.assert_close(torch.einsum("...mn,...n->...m", side, ours["head"]), frozen.responses(theirs)[..., -1])


def test_the_first_step_reads_the_signal_n_snr_squared_over_two_times_as_well():
    setting = Setting(n=(8,), d=(20000,), snr=(0.5, 2.0), seed=tuple(range(4)), tokens=4, sigma_v=1e-6, steps=1)
    step = vision_transformer.race(setting).sel(step=1).mean("seed")
    np.testing.assert_allclose(step.gamma / step.rho, 8 * np.array([0.25, 4.0]) / 2, rtol=0.05)


def test_maps_are_attention():
    maps = vision_transformer.maps(TINY.thinned(n=(4,), d=(120,)))
    assert maps.dims == ("snr", "query", "key") and maps.shape == (2, 6, 6)
    np.testing.assert_allclose(maps.sum("key"), 1.0, rtol=1e-5)
