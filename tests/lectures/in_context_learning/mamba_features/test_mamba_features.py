"""Gates against their laws, and the step that finds the subspace, at a tiny preset."""

import pytest

from flbook.lectures.in_context_learning import mamba_features as lecture
from flbook.lectures.in_context_learning.mamba_features import gates


@pytest.mark.parametrize("name", ["silu 4", "slow"])
def test_gates_follow_their_law(name):
    found = lecture.experiment.measure(lecture.experiment.setting(
        "tiny", gate=(name,), d=(8,), n=(600,), prompts=40)).overlap.mean()
    gate, samples = lecture.gate_law(name, 600)
    assert float(found) == pytest.approx(float(gates.overlap(samples, 8, gate, lecture.LINK)), abs=0.04)


def test_risks_of_a_seen_and_an_unseen_direction():
    found = lecture.risk((0, 1), (300,), d=6, r=2, prompts=4, queries=60, names=("silu 4", "none")).risk
    found = found.mean("seed").squeeze("n")
    assert float(found.sel(predictor="inside")) < float(found.sel(predictor="silu 4")) < 0.4
    assert float(found.sel(predictor="none")) > 0.8


def test_even_labels_are_read_from_a_matrix():
    found = lecture.even((0, 1), (100, 1600), d=(6,), queries=80).mean("seed").squeeze("d")
    assert float(found.reading.sel(n=1600)) > 0.8 > float(found.reading.sel(n=100))
    assert float(found.eigenvector.sel(n=100)) > float(found.reading.sel(n=100))


def test_one_step_finds_the_subspace():
    share = lecture.pretraining_step((0, 1), (60, 600), d=6, r=2, n=100).share.mean("seed")
    assert float(share[0]) < float(share[1]) and float(share[1]) > 0.8
