"""The loss path kernel at a tiny preset: what it explains, what it bounds, cells that stand alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import measures
from flbook.lectures.representation import loss_path_kernel
from flbook.lectures.representation.loss_path_kernel import BOUNDS, Setting, measure
from flbook.lectures.representation.loss_path_kernel.path_kernel import loss_path
from flbook.runs import results, settings

TINY = Setting(portion=(0.0, 0.5, 1.0), n=(20,), seed=(0, 1, 2), width=8, time=4.0, steps=40)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    assert set(settings.axes(TINY)) | {"time"} == set(dataset.dims)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
        assert np.isfinite(variable).all(), name
    assert dataset.time[-1] == 4.0 and set(BOUNDS) < set(dataset)


def test_the_kernel_explains_the_fall_and_the_bounds_hold():
    dataset = measure(TINY)
    np.testing.assert_allclose(dataset.explained, np.log(2) - dataset.train_loss, atol=1e-4)
    np.testing.assert_allclose(dataset.gap, dataset.test_loss - dataset.train_loss, atol=1e-6)
    for name in BOUNDS:
        assert (dataset[name] > dataset.gap).all(), name
    product = 2 * np.sqrt((np.log(2) - dataset.train_loss) * dataset.own)
    np.testing.assert_allclose(dataset.lpk, product, rtol=1e-3)
    own = dataset.own.isel(time=-1)
    assert (own.isel(portion=-1) > own.isel(portion=0)).all()


def test_a_cell_does_not_see_the_grid_around_it():
    setting = replace(TINY, n=(12, 20))
    whole = measure(setting)
    one = measure(replace(setting, power=(1.0,), portion=(0.5,), n=(12,), seed=(2,)))
    for name in one:
        expected = whole[name].sel(power=1.0, portion=0.5, n=12, seed=2)
        np.testing.assert_allclose(one[name].squeeze(), expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_bounds_by_their_formulas():
    setting = replace(TINY, power=(1.0,), portion=(1.0,), seed=(1,))
    network = loss_path_kernel.problem(setting, 20, dtype=torch.float64)
    *_, end = loss_path(network, setting.times)
    w, w_0, x, y = end.params["w"][0, 0, 0], network.start()["w"][0, 0, 0], network.x[0], network.observed[0, 0]
    slopes = 1 - torch.tanh(x @ w_0.T) ** 2
    kernel = (x @ x.T) * (slopes @ slopes.T) / 8
    frozen = 2 / 20 * torch.sqrt(y @ torch.linalg.solve(kernel, y) * kernel.trace())
    assert loss_path_kernel.frozen_bound(network).item() == pytest.approx(frozen.item())
    unit = 8  # the step of a unit of flow time, 1 / (N c^2)
    distance = 2 / 20 * torch.sqrt(((w - w_0) ** 2).sum() / unit * kernel.trace())
    assert loss_path_kernel.distance_bound(network, end.params["w"]).item() == pytest.approx(distance.item())
    norm = 4 / 8 * w.norm(dim=-1).sum() * x.norm(dim=-1).max() / 20**0.5
    assert loss_path_kernel.norm_bound(network, end.params["w"]).item() == pytest.approx(norm.item())
    cell = measure(setting).isel(time=-1).squeeze()
    assert cell.distance.item() == pytest.approx(distance.item(), rel=1e-3)
    assert cell.train_error.item() == pytest.approx(measures.train_error(network, end.params).item())


def test_retraining_needs_several_samples():
    dataset = loss_path_kernel.resampled(replace(TINY, seed=(0,)))
    assert set(dataset.resampled.dims) == {"power", "portion"} and (dataset.resampled == 0).all(), "one set: U_2 = 0"
    several = loss_path_kernel.resampled(TINY)
    own = measure(replace(TINY, seed=(0,))).isel(time=-1).squeeze()
    assert (several.resampled > 0).all()
    np.testing.assert_allclose(several.lpk, own.lpk.transpose(*several.lpk.dims), rtol=1e-3)


def test_every_test_image_is_explained():
    found = loss_path_kernel.explain(replace(TINY, portion=(0.5,)))
    np.testing.assert_allclose(found.explained, found.loss, atol=1e-4)
    np.testing.assert_allclose(np.log(2) - found.share.sum("sample"), found.explained[-1], rtol=1e-10)
    assert found.share.shape == (found.sizes["image"], 20) and (found.y_sample != found.clean_sample).any()
    cell = measure(replace(TINY, power=(0.5,), portion=(0.5,), seed=(0,)))
    assert found.loss[-1].mean().item() == pytest.approx(cell.test_loss[-1].item(), rel=1e-3)


@pytest.mark.parametrize("preset", [Setting.book, Setting.paper])
def test_presets_can_be_run(preset):
    loss_path_kernel.check(preset())
    assert settings.to_json(preset())
    assert len(preset().recorded) >= 9 and preset().recorded[-1] == preset().steps


def test_bad_settings_are_one_sentence(tmp_path):
    for change, sentence in [
        (dict(n=(20, 1000)), "n must lie between 1 and"),
        (dict(portion=(0.5, 2.0)), r"portions must lie in \[0, 1\]"),
        (dict(width=7), "width an even number of neurons"),
        (dict(second=1), "classes must be two different digits"),
        (dict(time=0.0), "time must be positive and steps at least 1; got 0 and 40"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            loss_path_kernel.run(replace(TINY, **change), cache=tmp_path)


def test_run_is_measure_in_chunks(tmp_path):
    dataset = loss_path_kernel.run(replace(TINY, steps=8), cache=tmp_path, memory=5e5)
    assert len(list(tmp_path.iterdir())) > 1
    for name, values in measure(replace(TINY, steps=8)).items():
        np.testing.assert_allclose(dataset[name].transpose(*values.dims), values, rtol=1e-4, atol=1e-6, err_msg=name)
    kept = loss_path_kernel.stored(dataset)
    assert "time" not in kept.gap.dims and "time" in kept.gap_path.dims and kept.gap.dtype == "float32"


@pytest.mark.parametrize("power, portion, n, seed", [(0.5, 0.0, 30, 19), (1.0, 1.0, 60, 3), (1.0, 0.3, 120, 0)])
def test_cells_of_the_stored_result_come_again(power, portion, n, seed):
    paper = results.open("loss_path_kernel").sel(power=power, portion=portion, n=n, seed=seed)
    cell = measure(replace(Setting.paper(), power=(power,), portion=(portion,), n=(n,), seed=(seed,)))
    for name, value in cell.isel(time=-1).squeeze().items():
        np.testing.assert_allclose(value, paper[name], rtol=2e-3, atol=1e-4, err_msg=name)
