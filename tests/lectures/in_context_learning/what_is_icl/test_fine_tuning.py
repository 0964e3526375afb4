"""Fine-tuning: copies are copies, and the error before the first step is that of the network without a context."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.what_is_icl import fine_tuning, training_laws
from flbook.shapes import Context

TINY = fine_tuning.experiment.setting("tiny")


def test_copies_stand_member_by_member():
    network = training_laws.opened((0, 1))
    copies = fine_tuning.copies_of(network, 3)
    for mine, theirs in zip(copies.parameters(), network.parameters(), strict=True):
        assert torch.equal(mine[2], theirs[0]) and torch.equal(mine[3], theirs[1])


def test_before_the_first_step_it_is_the_network_itself():
    dataset = fine_tuning.run(TINY)
    network, prompts = fine_tuning.drawn(TINY, "cpu")
    query = prompts.query
    answer = network(Context(query[..., :0, :], query[..., :0, 0]), query)
    error = ((answer - prompts.target).square()[..., 0] / network.d).T  # (use, seed), one prompt each
    found = dataset.error.sel(rule="Adam", step=0).isel(size=0).transpose("tasks", "seed")
    np.testing.assert_allclose(found, error, rtol=1e-5)


@pytest.mark.parametrize("preset", ["longer", "long"])
def test_the_stored_errors_are_those_of_the_first_ten_steps(preset):
    """Thousands of steps in float32 end elsewhere on another processor."""
    whole = fine_tuning.experiment.setting(preset)
    again = fine_tuning.run(whole.thinned(seed=(7,), size=whole.size[:1], steps=10))
    stored = fine_tuning.experiment.stored(preset)
    for what in ("error", "loss"):
        there = stored[what].sel(seed=[7], step=again.step).isel(size=[0])
        np.testing.assert_allclose(again[what], there.transpose(*again[what].dims), rtol=1e-3, atol=1e-5)
