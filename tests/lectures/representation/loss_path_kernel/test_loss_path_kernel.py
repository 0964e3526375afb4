"""The loss path kernel at a tiny preset: what it explains, what it bounds, cells that stand alone."""

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
    setting = replace(TINY, power=(1.0,), portion=(1.0,), seed=(1,))
    training = loss_path_kernel.problem(setting, 20, dtype=torch.float64)
    *_, end = loss_path(training, setting.times)
    w, w_0, x, y = end.params["w"][0, 0, 0], training.start()["w"][0, 0, 0], training.x[0], training.observed[0, 0]
    slopes = 1 - torch.tanh(x @ w_0.T) ** 2
    kernel = (x @ x.T) * (slopes @ slopes.T) / 8
    frozen = 2 / 20 * torch.sqrt(y @ torch.linalg.solve(kernel, y) * kernel.trace())
    assert loss_path_kernel.frozen_bound(training).item() == pytest.approx(frozen.item())
    unit = 8  # the step of a unit of flow time, 1 / (N c^2)
    distance = 2 / 20 * torch.sqrt(((w - w_0) ** 2).sum() / unit * kernel.trace())
    assert loss_path_kernel.distance_bound(training, end.params["w"]).item() == pytest.approx(distance.item())
    norm = 4 / 8 * w.norm(dim=-1).sum() * x.norm(dim=-1).max() / 20**0.5
    assert loss_path_kernel.norm_bound(training, end.params["w"]).item() == pytest.approx(norm.item())
    cell = experiment.measure(setting).isel(time=-1).squeeze()
    assert cell.distance.item() == pytest.approx(distance.item(), rel=1e-3)
    assert cell.train_error.item() == pytest.approx(measures.train_error(training, end.params).item())


def test_retraining_needs_several_samples():
    dataset = loss_path_kernel.resampled(replace(TINY, seed=(0,)))
    assert set(dataset.resampled.dims) == {"power", "portion"} and (dataset.resampled == 0).all(), "one set: U_2 = 0"
    several = loss_path_kernel.resampled(TINY)
    own = experiment.measure(replace(TINY, seed=(0,))).isel(time=-1).squeeze()
    assert (several.resampled > 0).all()
    np.testing.assert_allclose(several.lpk, own.lpk.transpose(*several.lpk.dims), rtol=1e-3)


def test_every_test_image_is_explained():
    found = loss_path_kernel.explain(replace(TINY, portion=(0.5,)))
    np.testing.assert_allclose(found.explained, found.loss, atol=1e-4)
    np.testing.assert_allclose(np.log(2) - found.share.sum("sample"), found.explained[-1], rtol=1e-10)
    assert found.share.shape == (found.sizes["image"], 20) and (found.y_sample != found.clean_sample).any()
    cell = experiment.measure(replace(TINY, power=(0.5,), portion=(0.5,), seed=(0,)))
    assert found.loss[-1].mean().item() == pytest.approx(cell.test_loss[-1].item(), rel=1e-3)
