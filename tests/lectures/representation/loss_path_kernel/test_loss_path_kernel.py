"""The loss path kernel at a tiny preset: bounds by their formulas, halves, retraining, what it explains."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.lectures.representation import loss_path_kernel
from flbook.lectures.representation.loss_path_kernel import experiment
from flbook.lectures.representation.loss_path_kernel.path_kernel import loss_path

TINY = experiment.setting("tiny", n=(20,))


def test_bounds_by_their_formulas():
    setting = replace(TINY, portion=(1.0,), seed=(1,))
    training = loss_path_kernel.problem(setting, 20, dtype=torch.float64)
    *_, end = loss_path(training, setting.stops)
    w, w_0, x, y = end.params["w"][0, 0], training.start()["w"][0, 0], training.x[0], training.observed[0, 0]
    slopes = 1 - torch.tanh(x @ w_0.T) ** 2
    kernel = (x @ x.T) * (slopes @ slopes.T) / 8
    frozen = 2 / 20 * torch.sqrt(y @ torch.linalg.solve(kernel, y) * kernel.trace())
    assert loss_path_kernel.frozen_bound(training).item() == pytest.approx(frozen.item())
    distance = 2 / 8 * (w - w_0).norm(dim=-1).sum() * (x.square().sum(-1).mean() / 20).sqrt()
    assert loss_path_kernel.distance_bound(training, end.params["w"]).item() == pytest.approx(distance.item())
    cell = experiment.measure(setting).isel(time=-1).squeeze()
    assert cell.distance.item() == pytest.approx(distance.item(), rel=1e-3)
    fall = training.train_loss(training.start()) - training.train_loss(end.params)
    bound = 2 * (fall.item() * end.kernel[0, 0].trace().item() / 20**2) ** 0.5
    assert cell.lpk.item() == pytest.approx(bound, rel=1e-3)
    assert cell.train_error.item() == pytest.approx(measures.train_error(training, end.params).item())


def test_half_of_the_sample_is_held_out():
    training = loss_path_kernel.problem(TINY, 20)
    first, (x, y) = loss_path_kernel.halves(training)
    assert (first.x == training.x[..., ::2, :]).all() and (x == training.x[..., 1::2, :]).all()
    *_, end = loss_path(first, TINY.stops, diagonal=True)
    loss = training.loss(training.predict(end.params, x), y).mean(-1)
    np.testing.assert_allclose(experiment.measure(TINY).held_out.isel(time=-1, n=0), loss, rtol=1e-4)


def test_a_moment_does_not_depend_on_later_ones():
    early = experiment.measure(replace(TINY, time=(1.0,))).isel(time=0)
    both = experiment.measure(TINY).sel(time=1.0)
    for name in early:
        np.testing.assert_allclose(early[name], both[name], rtol=1e-3, atol=1e-5)


def test_retraining_needs_several_samples():
    late = replace(TINY, time=(4.0,))
    dataset = loss_path_kernel.resampled(replace(late, seed=(0,)))
    assert set(dataset.resampled.dims) == {"portion"} and (dataset.resampled == 0).all(), "one set: U_2 = 0"
    several = loss_path_kernel.resampled(late)
    own = experiment.measure(replace(late, seed=(0,))).squeeze()
    assert (several.resampled > 0).all()
    for name in ("lpk", "gap"):
        np.testing.assert_allclose(several[name], own[name], rtol=2e-3, atol=1e-5)


def test_every_test_image_is_explained():
    found = loss_path_kernel.explain(replace(TINY, portion=(0.5,)))
    np.testing.assert_allclose(found.explained, found.loss, atol=1e-4)
    np.testing.assert_allclose(np.log(2) - found.share.sum("sample"), found.explained[-1], rtol=1e-10)
    assert found.share.shape == (loss_path_kernel.SHOWN, 20) and (found.y_sample != found.clean_sample).any()
