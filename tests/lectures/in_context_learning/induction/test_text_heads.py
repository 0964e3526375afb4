"""Heads on a text: scores and losses by hand, the statistic by hand, and what is stored."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.induction import text_heads
from flbook.lectures.in_context_learning.induction.source_words import LookBack


def test_scores_are_taken_from_place_to_place():
    maps = torch.arange(2 * 3 * 2 * 4 * 4.0).view(2, 3, 2, 4, 4)
    where = LookBack(torch.tensor([0, 2]), torch.tensor([3, 1]), torch.tensor([1, 0]))
    found = text_heads.at(maps, where)
    assert found.shape == (2, 2, 2)
    assert found[1, 0, 1] == maps[1, 0, 1, 3, 1] and found[0, 1, 0] == maps[0, 2, 0, 1, 0]


def test_the_statistic_by_hand():
    window = torch.tensor([[[1, 2, 3, 1, 2]]])  # the last word, 2, follows 1 2 3 1
    found = text_heads.slopes(window, 3)[0, 0]
    ratio, last = np.array([-1, 3, -1, -1.0]), np.array([1, 0, 0, 1.0])
    expected = [(last * ratio).sum() / 4, (last[:-1] * ratio[1:]).sum() / 4, (last[:-2] * ratio[2:]).sum() / 4]
    assert found.tolist() == pytest.approx(expected)
    assert not text_heads.slopes(torch.tensor([[[1, 2, 3, 1, 5]]]), 3).any(), "a window without the next word"


def test_steps_at_which_is_looked():
    steps = text_heads.looked_at(text_heads.experiment.setting("gpu"))
    assert steps[0] == 0 and steps[-1] == 12_000 and np.all(np.diff(steps) > 0) and len(steps) <= 60


def test_a_run_gives_every_score_and_one_layer_has_no_second():
    found = text_heads.run("tiny")
    assert not found.sel(kind="two layers").induction.isnull().any()
    assert found.sel(kind="one layer", layer=2).induction.isnull().all()
    assert (found.previous.sel(layer=1) <= 1).all() and found.text.sel(item="files") == 3
    np.testing.assert_allclose(found.copy_loss.isel(step=0), np.log(40), atol=0.05)
    paired = found.text_loss.isel(kind=0, step=0, seed=0)
    assert np.ptp(paired.values) == 0, "before training the networks of all shares are one"


def test_more_words_than_there_are_are_refused():
    with pytest.raises(ValueError, match="length must be at most"):
        text_heads.experiment.setting(length=128, vocabulary=100)


@pytest.mark.parametrize("preset", ["gpu", "smeared", "long"])
def test_what_is_stored_names_its_text(preset):
    found = text_heads.experiment.stored(preset)
    assert found.text.sel(item="words") > 10**6 and found.device == "cuda"
