"""The experiment: what is known exactly, and that its findings are what they are, at small size."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.foundation_models import contrastive
from flbook.lectures.foundation_models.contrastive import Setting, epochs
from flbook.lectures.foundation_models.contrastive.paired_training import TWO_MODALITIES, drawn_pairs

SMALL = Setting(n=20, m=10, d=(400,), pair=(1.0, 6.0), seed=(0, 1), steps=100, points=128)


def test_either_side_of_the_border():
    found = contrastive.experiment.measure(SMALL).accuracy.mean("seed").squeeze("d")
    assert float(found.sel(pair=1.0).max()) < 0.65 and float(found.sel(pair=6.0).min()) > 0.85


def test_a_cell_of_the_diagram_is_that_of_its_own_training():
    """One training serves all cells of a product: here against training at the cell's own strengths."""
    setting = replace(SMALL, steps=30, seed=(0, 1))
    diagram = contrastive.phase(setting).accuracy
    strength, ratio = float(diagram.n_snr2[7]), float(diagram.ratio[6])
    size = (strength * 400 / setting.n) ** 0.5
    law = contrastive.TwoModalities(setting.n, 400, size, ratio * size)
    problem = drawn_pairs(law, setting.m, setting.start / 20, TWO_MODALITIES, 2, setting.seed).to(torch.float32)
    params = fit(problem, GradientDescent(setting.lr(400)), setting.steps).params
    own = contrastive.accuracy(problem, params, setting.nu, setting.points)
    np.testing.assert_allclose(diagram[7, 6].values, own.numpy(), atol=0.02)


def test_variations_are_what_their_names_say():
    setting = epochs.experiment.setting("tiny")
    losses = {name: setting.problem(name, 2) for name in epochs.VARIATIONS}
    assert int(losses["all other samples"].negatives.sum()) == setting.n * (setting.n - 1)
    assert not losses["gradient everywhere"].loss.stop_gradient and losses["normalised"].loss.normalised
    assert losses["mean over neurons"].scale == 1 / setting.m and losses["τ = 0.2"].loss.temperature == 0.2
    first = {name: float(problem.gram.w_w[0, 0, 0, 0]) for name, problem in losses.items()}
    assert first["larger start"] == pytest.approx(100 * first["the paper's"])
    assert float(losses["no ReLU"].activation(torch.tensor(-1.0))) == -1


def test_the_last_epoch_is_the_end_of_the_history():
    setting = epochs.experiment.setting("tiny", variation=("the paper's",))
    history, last = epochs.histories(setting), epochs.experiment.measure(setting)
    np.testing.assert_allclose(history.train_loss.isel(step=-1), last.train_loss)
    assert last.accuracy.dims == ("variation", "encoders", "seed")


def test_the_border_needs_a_small_start():
    found = contrastive.starts(replace(SMALL, seed=tuple(range(4)))).accuracy.mean("seed").sel(pair=6.0)
    assert float(found.sel(start=1e-3)) > 0.9 > 0.8 > float(found.sel(start=1.0))


def test_rates_are_equal_near_two_where_noise_patches_are_equally_long():
    setting = replace(SMALL, pair=(2.0,), d=(400, 10**6), seed=tuple(range(4)))
    border = contrastive.rates(setting).border.mean("seed").values
    assert border[0] > border[1] and border[1] == pytest.approx(2.0, abs=0.01)
