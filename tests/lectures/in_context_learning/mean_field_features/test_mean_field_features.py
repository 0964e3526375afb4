"""Training below attention at a tiny preset: floors, dynamics that agree or differ, tasks outside the span, widths."""

import numpy as np
import pytest
import torch

from flbook.estimators.in_context import LeastSquares
from flbook.lectures.in_context_learning import mean_field_features as lecture
from flbook.lectures.in_context_learning.shared import mean_field

TINY = lecture.experiment.setting("tiny")


def test_tasks_and_their_errors_by_hand():
    f = torch.tensor([[[1.0, -2.0], [3.0, 0.5]]])
    assert lecture.task("max", f, torch.zeros(1, 2)).tolist() == [[1.0, 3.0]]
    assert lecture.task("square", f, torch.tensor([[1.0, 0.0]])).tolist() == [[8.0, 16.25]]
    h = torch.tensor([[[1.0], [-1.0], [2.0], [-2.0]]])
    g = torch.tensor([[3.0, 1.0, 4.0, 0.0]])  # 2 + h + (0, 0, 0, 0) with signs: centred 1, -1, 2, -2
    assert float(lecture.task_error(h, g)) == pytest.approx(0, abs=1e-10)


def test_a_weak_feature_is_weak():
    setting = TINY.thinned(n=500)
    truth = lecture.teacher(setting, "weak")
    x = lecture.inputs(setting, 4000, "whitening")
    moment = mean_field.second_moment(truth.features(x), truth.features(x))
    torch.testing.assert_close(torch.linalg.eigvalsh(moment)[:, 0], torch.full((2,), 0.01, dtype=torch.float64))


def test_steps_that_are_too_large_are_told():
    with pytest.raises(ValueError, match="training diverged at lr = 1e\\+38"):
        lecture.run(TINY.thinned(case=("matched",), model=("attention",), lr=1e38))


def test_new_mixtures_are_free_for_whoever_reads_the_true_features():
    truth, points = lecture.teacher(TINY, "matched"), lecture.inputs(TINY, 260)
    readers = {"true": (truth.features, [LeastSquares()]), "inputs": (lambda x: x, [LeastSquares()])}
    found = lecture.new_tasks(readers, truth, points, (8, 40), TINY.seed, tasks=3)
    assert found.true.shape == (2, 2) and float(found.true.max()) < 1e-10 < 0.01 < float(found.inputs.min())


def test_sampled_neurons_differ_by_the_variance_of_one_over_their_number():
    one = lecture.teacher(TINY, "matched")
    neurons, a = one.neurons(lecture.inputs(TINY, 50))[0], one.a[0]
    mean = neurons @ a / len(a)
    single = float((neurons[..., None] * a).square().sum(-1).mean() - mean.square().sum(-1).mean())
    error = lecture.sampled(neurons, a, (16, 64), draws=400)
    assert (error.mean("seed") * error.m / single).values == pytest.approx(1, rel=0.1)


def test_a_teacher_of_bounded_barron_norm_is_the_mean_of_a_bounded_second_layer():
    crowd = lecture.barron(TINY, crowd=1000)
    assert crowd.a.shape == (1000, TINY.k) and float(crowd.a.abs().max()) < 1
    lean = crowd.a.atanh().mT @ torch.linalg.pinv(crowd.w.mT)  # a = tanh(B w) for one B
    torch.testing.assert_close(torch.tanh(crowd.w @ lean.mT), crowd.a)


def test_the_stored_run_begins_as_the_same_setting_does_today():
    """Ten thousand prompts take a test too long: its first hundred are run again, at two of its cells."""
    stored, whole = lecture.experiment.stored(), lecture.experiment.setting("paper")
    few = whole.thinned(case=("dead",), model=("attention",), steps=whole.every)
    found = lecture.experiment.measure(few, "cpu").squeeze(("case", "model"))
    there = stored.sel(case="dead", model="attention").isel(time=slice(0, 2))
    for name in ("fresh", "loss", "max", "square"):
        np.testing.assert_allclose(found[name], there[name].transpose(*found[name].dims), rtol=0.02, err_msg=name)
