"""Networks of three laws of training: what is exact in a tiny run, the checkpoint, and the stored result from it."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.what_is_icl import shifted_prompts, training_laws

TINY = training_laws.experiment.setting("tiny")
LONGER = training_laws.experiment.setting("longer")


def test_half_of_the_prompts_have_large_inputs_and_labels():
    x = training_laws.TwoScales(3, 4).draw(400, seed=0).context.x
    plain = shifted_prompts.ShiftedPrompts(3, 4, "as in training").draw(400, seed=0).context.x
    scale = (x / plain).flatten(1)
    assert torch.allclose(scale, scale[:, :1].expand_as(scale))  # one scale a prompt
    assert set(scale[:, 0].round().tolist()) == {1.0, 3.0}
    assert (scale[:, 0] > 2).double().mean().item() == pytest.approx(0.5, abs=0.1)
    prompts = training_laws.TwoScales(3, 4).draw(5, seed=(0, 1))
    torch.testing.assert_close(prompts.target, torch.einsum("sbqd,sbd->sbq", prompts.query, prompts.task))


def test_a_network_of_another_law_is_another_network():
    dataset = training_laws.run(TINY)
    assert not np.allclose(dataset.weights[0], dataset.weights[1])
    same = dataset.error.sel(model="least squares")  # a rule that is not trained does not know the law of training
    np.testing.assert_array_equal(same[0], same[1])


@pytest.mark.parametrize("law, seed, k", [("as in training", 3, 6), ("inputs × 3", 9, 8)])
def test_the_stored_errors_are_those_of_the_stored_networks(law, seed, k):
    """The networks themselves take some minutes. Their weights are kept as float16."""
    cell = LONGER.thinned(seed=(seed,), k=(k,), law=(law,))
    again = training_laws.errors(cell, law, training_laws.opened((seed,)))[:, 0, 0]
    stored = training_laws.experiment.stored().error.sel(trained_on="plain", law=law, seed=seed, k=k)
    stored = stored.sel(model=list(cell.model))
    np.testing.assert_allclose(again[1:], stored[1:], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(again[0], stored[0], rtol=0.02)
