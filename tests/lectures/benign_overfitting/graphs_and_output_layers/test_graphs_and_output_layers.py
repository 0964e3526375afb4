"""The graph's phase diagram at a tiny preset: degree 0 is no graph, and sharing is what it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting import graphs_and_output_layers as graphs
from flbook.lectures.benign_overfitting.graphs_and_output_layers import Setting, measure
from flbook.runs import results, settings

TINY = Setting(degree=(0.0, 6.0), snr=(0.05, 0.9), seed=(0, 1), n=20, m=8, steps=200, points=64)


def test_a_labelled_dataset():
    setting = replace(TINY, model=("network", "linear", "lazy"), q=(3.0, 4.0), steps=10)
    dataset = measure(setting)
    assert set(dataset) == {"test_error", "train_error", "train_loss"}
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert dataset.to_array().notnull().all()


def test_both_regimes_with_and_without_a_graph():
    cells = measure(TINY).squeeze(("q", "model"))
    assert (cells.train_error < 0.1).all()
    assert (cells.test_error.sel(snr=0.05) > 0.3).all() and (cells.test_error.sel(snr=0.9) < 0.1).all()


def test_a_cell_does_not_see_the_grid_around_it():
    setting = replace(TINY, model=("network", "lazy"), steps=40)
    whole = measure(setting)
    for model, degree, snr, seed in (("network", 6.0, 0.9, 1), ("lazy", 0.0, 0.05, 0)):
        one = measure(replace(setting, model=(model,), degree=(degree,), snr=(snr,), seed=(seed,)))
        expected = whole.sel(model=model, degree=degree, snr=snr, seed=seed)
        for name in one:
            np.testing.assert_allclose(one[name].squeeze(), expected[name].squeeze(), rtol=2e-3, atol=0.02)


def test_private_noise_is_as_short_but_not_shared():
    shared, private = (graphs.exact(replace(TINY, shared=flag), 3.0).gram.xi_xi[1, :, 0] for flag in (True, False))
    scale = TINY.d
    diagonals = [part.diagonal(dim1=-2, dim2=-1) / scale for part in (shared, private)]
    torch.testing.assert_close(diagonals[0].mean(), diagonals[1].mean(), rtol=0.02, atol=0)
    alone = [torch.diag_embed(part.diagonal(dim1=-2, dim2=-1)) for part in (shared, private)]
    off = [(part - own).abs().mean() / scale for part, own in zip((shared, private), alone, strict=True)]
    assert off[0] > 0.03 and off[1] < 0.002


def test_attenuation_and_step_sizes():
    shares = graphs.attenuation(replace(TINY, degree=(0.0, 4.0, 11.0)))
    assert shares[0] == 1.0 and shares[1] > shares[2] > TINY.graph(11.0).attenuation
    like = torch.zeros((), dtype=torch.float64)
    for model in graphs.MODELS:
        steps = graphs.rule(TINY, 3.0, model, like).lr.flatten()
        unit = TINY.lr * TINY.n * TINY.m / TINY.d
        first = {"network": 1 / TINY.start, "linear": 20.0, "lazy": 2 / (3 * TINY.start**2) ** 2}[model]
        growth = {"network": 7**0.5, "linear": 1.0, "lazy": 7.0**2}[model]
        np.testing.assert_allclose(steps, [unit * first, unit * first * growth])


@pytest.mark.parametrize("preset", [Setting.book, Setting.private, Setting.rivals, Setting.paper])
def test_presets_can_be_run(preset):
    graphs.check(preset())
    assert settings.to_json(preset())


@pytest.mark.parametrize("change, sentence", [
    (dict(model=("network", "kernel")), "model must be among network, linear, lazy; got 'kernel'"),
    (dict(degree=(0.0, 30.0)), r"degree must lie in \[0, 12\], so that p is a probability; got 30"),
    (dict(n=21), "n must be even"),
    (dict(q=(2.0,)), "q must be above 2, where memorising has a time of its own; got 2.0"),
    (dict(snr=(0.0,)), "snr must be positive"),
    (dict(d=30), r"d must be at least n \+ k \+ 1 = 37"),
])
def test_bad_settings_are_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        graphs.run(replace(TINY, **change))


def test_run_and_what_is_stored(tmp_path):
    setting = replace(TINY, steps=10)
    dataset = graphs.run(setting, cache=tmp_path)
    np.testing.assert_allclose(dataset.test_error, measure(setting).test_error.transpose(*dataset.test_error.dims))
    kept = graphs.stored(dataset)
    assert kept.test_error.sizes["seed"] == 2 and "seed" not in kept.train_loss.dims


@pytest.mark.parametrize("q, degree, snr, seed", [(3.0, 0.0, 5, 1), (3.0, 24.0, 2, 3), (4.0, 12.0, 6, 0)])
def test_the_stored_result_can_be_had_again(q, degree, snr, seed):
    paper = Setting.paper()
    at = dict(q=(q,), degree=(degree,), snr=(paper.snr[snr],), seed=(seed,))
    kept = results.open("graphs_and_output_layers").test_error.sel(**{name: value[0] for name, value in at.items()})
    again = measure(paper.thinned(**at)).test_error.item()
    assert again == pytest.approx(kept.item(), abs=0.02)
