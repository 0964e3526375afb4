"""The experiment at a tiny preset: what it returns, what is exact in it, the checkpoint that comes with the book."""

import numpy as np
import pytest
import torch

from flbook.data import LinearPrompts
from flbook.lectures.in_context_learning import what_is_icl
from flbook.lectures.in_context_learning.what_is_icl import Setting
from flbook.lectures.in_context_learning.what_is_icl import baselines as prompt_baselines
from flbook.runs import checkpoints, settings

TINY = Setting(seed=(0, 1), points=20, k=(1, 2, 6), width=8, layers=1, heads=2, steps=20, batch=8)


@pytest.fixture(scope="module", autouse=True)
def short():
    """The frozen rival of a tiny network needs no long training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(what_is_icl, "READ_OUT_STEPS", 20)
        yield


@pytest.fixture(scope="module")
def dataset():
    return what_is_icl.measure(TINY)


def test_every_axis_is_a_dimension_and_every_variable_has_a_name(dataset):
    assert dataset.error.dims == ("model", "law", "seed", "k")
    assert all(dataset[name].attrs.keys() >= {"long_name", "units"} for name in [*dataset.data_vars, *dataset.coords])
    missing = dataset.error.isnull()
    assert missing.sel(law="orthogonal query", k=6).all() and int(missing.sum()) == int(missing.sel(k=6).sum())


def test_what_least_squares_answers_is_exact(dataset):
    exact = dataset.error.sel(model="least squares")
    base = exact.sel(law="as in training")
    for law in ("inputs × 3", "inputs × ⅓", "labels × 3"):
        np.testing.assert_allclose(exact.sel(law=law), base, rtol=1e-9, atol=1e-20)
    assert float(base.sel(k=6).max()) < 1e-20 and float(exact.sel(law="query seen before").max()) < 1e-20
    assert float(exact.sel(law="half the directions", k=2).max()) < 1e-20


def test_a_cell_does_not_depend_on_the_grid_around_it(dataset):
    one = what_is_icl.measure(TINY.thinned(seed=(1,), k=(2,), law=("one orthant",), model=("averaging", "transformer")))
    for model in one.model.values:
        cell = dict(model=model, law="one orthant", seed=1, k=2)
        assert float(one.error.sel(cell)) == pytest.approx(float(dataset.error.sel(cell)), rel=1e-5)


def test_the_network_comes_back_from_the_dataset(dataset):
    network = what_is_icl.restored(TINY, dataset.weights)
    again = what_is_icl.errors(TINY.thinned(model=("transformer",)), {"transformer": network})
    np.testing.assert_allclose(again[0], dataset.error.sel(model="transformer"), rtol=1e-6)


def test_the_frozen_network_learns_its_read_out_only():
    frozen, start = what_is_icl.frozen(TINY), what_is_icl.untrained(TINY)
    for (name, after), before in zip(frozen.named_parameters(), start.parameters(), strict=True):
        assert torch.equal(after, before) != name.startswith("read_out"), name


def test_least_squares_answers_with_its_own_weights():
    found = what_is_icl.mechanism(TINY.thinned(model=("least squares", "averaging")), {})
    assert found.cosine.sel(model="least squares").values == pytest.approx(1)
    assert found.linear.values == pytest.approx(1)
    assert found.cosine.sel(model="averaging", k=1).values == pytest.approx(1)  # one example: one direction


def test_fine_tuning_returns_an_error_a_seed():
    error = what_is_icl.fine_tuned(TINY, what_is_icl.untrained(TINY), k=2, steps=3, points=4)
    assert error.dims == ("seed",) and error.shape == (2,) and (error > 0).all()


def test_the_checkpoint_of_the_book_answers_prompts_and_says_its_setting():
    setting = Setting.paper()
    network = what_is_icl.opened()
    predict = what_is_icl.predictor(network)
    prompts = LinearPrompts(setting.n, setting.d).draw(400, seed=123)
    error = float((predict(prompts.context, prompts.query) - prompts.target).square().mean()) / setting.d
    assert error < prompt_baselines.one_step(setting.n, setting.d) / 2
    with pytest.raises(ValueError, match="what_is_icl.safetensors is of another setting: d is 8 there and 5 here"):
        checkpoints.stored("what_is_icl", what_is_icl.about(setting.thinned(d=5)))


def test_presets_and_bad_input():
    assert settings.scale_of(Setting.paper()) == "paper"
    big = Setting.standard()
    assert (big.width, big.layers, big.heads, big.d, big.n, big.steps) == (256, 12, 8, 20, 40, 500_000)
    assert what_is_icl.recipe(big).precision == "bfloat16"
    with pytest.raises(ValueError, match="model must be among transformer, .*; got 'oracle'"):
        what_is_icl.run(TINY.thinned(model=("oracle",)))
    with pytest.raises(ValueError, match="law must be among"):
        what_is_icl.run(TINY.thinned(law=("on the moon",)))
