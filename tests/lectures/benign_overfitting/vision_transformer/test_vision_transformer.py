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
    setting = Setting(n=(8,), d=(20000,), n_snr2=(2.0, 32.0), seed=tuple(range(4)), tokens=4, sigma_v=1e-6, steps=1)
    step = vision_transformer.race(setting).sel(step=1).mean("seed")
    np.testing.assert_allclose(step.gamma / step.rho, np.array([2.0, 32.0]) / 2, rtol=0.05)


def test_the_score_gap_is_that_of_every_pair_of_tokens():
    setting = TINY.thinned(d=(400,), n=(4,), sigma_0=0.5)
    training = vision_transformer.problem(setting, 400, 4)
    params = fit(training, vision_transformer.rule(setting, 4), 20).params
    query, key, _, _ = training.attend(training.samples(training.responses(params)))
    gaps = []
    for sign in (1, -1):  # the mean query of a class against its mean keys
        some = training.y == sign
        asks, signal, noise = (part[..., some, :].mean(-2) for part in (query.mean(-2), key[..., 0, :],
                                                                        key[..., 1:, :].mean(-2)))  # fmt: skip
        gaps.append((asks * (signal - noise)).sum(-1))
    torch.testing.assert_close(training.score_gap(params), sum(gaps) / 2)


def test_starts_give_the_gap_before_training():
    setting = TINY.thinned(d=(400,), n=(4,))
    u, w = vision_transformer.starts(setting)
    gap = vision_transformer.race(setting, names=("gap",), at=[0]).gap.sel(step=0)
    np.testing.assert_allclose((u * w).sum("component").mean("label") / 5, gap, rtol=1e-5)


def test_wrong_labels_are_followed():
    setting = TINY.thinned(d=(400,), n=(4,), flip_prob=0.25)
    way = vision_transformer.race(setting, at=[0])
    np.testing.assert_allclose(way.pull_wrong.sel(step=0), 0.25, atol=1e-3)
    np.testing.assert_allclose(way.noise_wrong.sel(step=0), 1 / 6, rtol=1e-2)
