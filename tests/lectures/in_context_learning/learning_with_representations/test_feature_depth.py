"""Networks of several depths: those that come with the library are those that arrived, and give their errors again."""

import numpy as np
import pytest
import torch

from flbook.data.prompts import map_tensors
from flbook.lectures.in_context_learning.learning_with_representations import feature_depth
from flbook.lectures.in_context_learning.learning_with_representations.feature_depth import ARRIVED, DEEPEST, experiment
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import FeatureMapPrompts


def test_the_networks_that_come_with_the_library_give_their_stored_errors_again(monkeypatch):
    monkeypatch.delenv("FLBOOK_SEED", raising=False)
    s = experiment.setting("gpu")
    data = FeatureMapPrompts(s.n, s.d, s.noise)
    # The stored errors are those of 2000 prompts that a GPU drew: others have them up to their scatter.
    drawn = data.draw(2000, 0, feature_depth.TEST, dtype=torch.float32)
    found = feature_depth.errors(feature_depth.trained(), *feature_depth.whole(drawn))
    stored = experiment.stored().error.sel(given="x", layers=DEEPEST, seed=list(ARRIVED))
    np.testing.assert_allclose(found[:, 0], stored[:, 0], rtol=0.1)
    np.testing.assert_allclose(found[:, -4:], stored[:, -4:], rtol=0.35)
    assert experiment.path(".safetensors").stat().st_size < 400_000


def test_those_that_arrived_are_all_whose_error_is_below_a_tenth():
    last = experiment.stored().error.sel(given="x", layers=DEEPEST).isel(position=-1)
    assert tuple(last.seed.values[last.values < 0.1]) == ARRIVED
    assert int((last > 0.95).sum()) == 6


def test_each_member_has_prompts_of_its_own_from_one_draw():
    data = FeatureMapPrompts(3, 2)
    dealt, whole = feature_depth.Dealt(data, tuple(range(10))).draw(4, 0, 1), data.draw(40, 0, 1, dtype=torch.float32)
    map_tensors(dealt, lambda ours, theirs: torch.testing.assert_close(ours.flatten(0, 1), theirs), whole)
    assert not torch.equal(dealt.context.x[0], dealt.context.x[1])
    some = feature_depth.Dealt(data, (3, 7)).draw(4, 0, 1)
    map_tensors(some, lambda ours, theirs: torch.testing.assert_close(ours, theirs[[3, 7]]), dealt)


def test_the_task_gives_the_labels_whatever_stands_in_the_prompt():
    for given in ("x", "features"):
        drawn = FeatureMapPrompts(3, 2, noise=0.0, given=given).draw(5, 0)
        _, y, clean = feature_depth.whole(drawn, given)
        torch.testing.assert_close(y, clean)
    assert not torch.allclose(feature_depth.whole(drawn, "x")[2], clean)


def test_deeper_networks_than_are_kept_are_refused():
    with pytest.raises(ValueError, match="layers must be at most 4; got 5"):
        experiment.setting("tiny", layers=(5,))
    with pytest.raises(ValueError, match="seed must be below 10"):
        experiment.setting("tiny", seed=(0, 10))
