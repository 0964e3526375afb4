"""The experiment at a tiny preset: what it returns, what is exact in it, the checkpoint that comes with the book."""

import numpy as np
import pytest
import torch

from flbook.data import LinearPrompts
from flbook.lectures.in_context_learning import what_is_icl
from flbook.lectures.in_context_learning.what_is_icl import baselines as prompt_baselines

TINY = what_is_icl.experiment.setting("tiny")


@pytest.fixture(scope="module")
def dataset():
    return what_is_icl.run(TINY)


def test_no_query_is_orthogonal_to_as_many_examples_as_dimensions(dataset):
    missing = dataset.error.isnull()
    assert missing.sel(law="orthogonal query", k=6).all() and int(missing.sum()) == int(missing.sel(k=6).sum())


def test_the_network_comes_back_from_the_dataset(dataset):
    network = what_is_icl.restored(TINY, dataset.weights)
    again = what_is_icl.errors(TINY.thinned(model=("transformer",)), {"transformer": network})
    kept = dataset.error.sel(model="transformer").transpose(*again[0].dims)
    np.testing.assert_allclose(again[0], kept, rtol=1e-4)


def test_the_frozen_network_learns_its_read_out_only():
    frozen, start = what_is_icl.frozen(TINY), what_is_icl.untrained(TINY)
    for (name, after), before in zip(frozen.named_parameters(), start.parameters(), strict=True):
        assert torch.equal(after, before) != name.startswith("read_out"), name


def test_least_squares_answers_with_its_own_weights():
    found = what_is_icl.mechanism(TINY.thinned(model=("least squares", "averaging")), {})
    assert found.cosine.sel(model="least squares").values == pytest.approx(1)
    assert found.linear.values == pytest.approx(1)
    assert found.cosine.sel(model="averaging", k=1).values == pytest.approx(1)  # one example: one direction


def test_the_checkpoint_of_the_book_answers_prompts_and_says_its_setting():
    setting = what_is_icl.experiment.setting("longer")
    network = what_is_icl.opened()
    predict = what_is_icl.predictor(network)
    prompts = LinearPrompts(setting.n, setting.d).draw(400, seed=123)
    error = float((predict(prompts.context, prompts.query) - prompts.target).square().mean()) / setting.d
    assert error < prompt_baselines.one_step(setting.n, setting.d) / 2
    with pytest.raises(ValueError, match="what_is_icl.safetensors is of another setting: d is 8 there and 5 here"):
        what_is_icl.opened(setting.thinned(d=5))


@pytest.mark.parametrize("law, k, seed", [("as in training", 1, 0), ("skewed inputs", 8, 6), ("noisy labels", 16, 11)])
def test_the_stored_errors_are_those_of_the_stored_network(law, k, seed):
    """The network itself takes twelve minutes. Its weights are kept as float16."""
    models = ("transformer", "least squares", "ridge", "one gradient step", "averaging", "3 neighbours")
    cell = what_is_icl.experiment.setting("longer", law=(law,), k=(k,), seed=(seed,), model=models)
    again = what_is_icl.errors(cell, {"transformer": what_is_icl.opened()}).squeeze()
    stored = what_is_icl.experiment.stored().error.sel(law=law, k=k, seed=seed, model=list(models))
    np.testing.assert_allclose(again[1:], stored[1:], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(again[0], stored[0], rtol=0.02)
