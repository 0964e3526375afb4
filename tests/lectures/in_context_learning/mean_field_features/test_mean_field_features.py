"""Training below attention at a tiny preset: labelled, floors, dynamics that agree or differ, widths, stored result."""

import numpy as np
import pytest
import torch

from flbook.dynamics import mean_field
from flbook.lectures.in_context_learning import mean_field_features as lecture
from flbook.lectures.in_context_learning.mean_field_features import CASES, MODELS, Setting
from flbook.runs import results, settings

TINY = Setting(seed=(0, 1), m=24, k=3, d=6, n=40, points=60, teacher=8, steps=60, check=20)


def test_a_labelled_dataset_above_its_floors():
    dataset = lecture.measure(TINY.thinned(case=CASES))
    assert set(settings.axes(TINY)) < set(dataset.dims)
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert dataset.isnull().sum().to_array().sum() == 0
    for model in ("static", "attention"):
        assert (dataset.fresh.sel(case="dead", model=model) > 2 / 6 - 1e-5).all()
    assert (dataset.fresh.sel(case="seven") > 2 / 10 - 1e-5).all()
    matched = dataset.fresh.sel(case="matched", model="static")
    assert (matched.isel(time=-1) < matched.isel(time=0) / 2).all()
    assert (dataset.fresh.sel(case="dead", model="modified").isel(time=-1) < 2 / 6).any()


def test_cells_stand_alone():
    dataset = lecture.measure(TINY)
    one = lecture.measure(TINY.thinned(case=("seven",), model=("static",), seed=(1,)))
    np.testing.assert_allclose(one.loss.squeeze(), dataset.loss.sel(case="seven", model="static", seed=1), rtol=5e-3)


def test_tasks_and_their_errors_by_hand():
    f = torch.tensor([[[1.0, -2.0], [3.0, 0.5]]])
    assert lecture.task("max", f, torch.zeros(1, 2)).tolist() == [[1.0, 3.0]]
    assert lecture.task("square", f, torch.tensor([[1.0, 0.0]])).tolist() == [[8.0, 16.25]]
    h = torch.tensor([[[1.0], [-1.0], [2.0], [-2.0]]])
    g = torch.tensor([[3.0, 1.0, 4.0, 0.0]])  # 2 + h + (0, 0, 0, 0) with signs: centred 1, -1, 2, -2
    assert float(lecture.task_error(h, g)) == pytest.approx(0, abs=1e-10)


def test_band_and_speed():
    flows = lecture.band(TINY, steps=30)
    fall = -np.gradient(flows.loss.values[:, 1:], flows.time.values[1:], axis=1)
    assert (flows.loss.diff("time") < 0).all() and (fall > 0).all() and (flows.speed > 0).all()
    bound = 4 / flows.cross * flows.loss * (1 / 6 - flows.loss)
    assert (flows.steepness >= bound - 1e-12).all()


def test_flows_of_more_particles_are_closer():
    distance = lecture.chaos(TINY, (32, 512), reference=4096, steps=5).mean("seed")
    assert (distance.sel(m=512) < distance.sel(m=32) / 4).all()


def test_a_weak_feature_is_weak():
    setting = TINY.thinned(n=500)
    truth = lecture.teacher(setting, "weak")
    x = lecture.inputs(setting, 4000, "whitening")
    moment = mean_field.second_moment(truth.features(x), truth.features(x))
    torch.testing.assert_close(torch.linalg.eigvalsh(moment)[:, 0], torch.full((2,), 0.01, dtype=torch.float64))


@pytest.mark.parametrize("fields, text", [
    ({"case": ("six",)}, "case must be among matched, dead, seven, weak"),
    ({"model": ("slow",)}, f"model must be among {', '.join(MODELS)}"),
    ({"n": 4}, "n above k"),
])
def test_bad_settings_are_refused(fields, text):
    with pytest.raises(ValueError, match=text):
        lecture.run(TINY.thinned(**fields))


def test_attention_that_is_too_slow_is_told():
    with pytest.raises(ValueError, match="training diverged at lr = 5 and turn = 0.01"):
        lecture.run(TINY.thinned(case=("matched",), model=("attention",), lr=5.0, turn=0.01))


def test_the_stored_result_is_what_the_library_computes():
    stored = results.open("mean_field_features")
    setting = Setting.paper().thinned(case=("seven",), model=("static",), seed=(1,), steps=20)
    fresh = lecture.measure(setting).squeeze()
    kept = stored.sel(case="seven", model="static", seed=1).isel(time=slice(fresh.sizes["time"]))
    np.testing.assert_allclose(fresh.fresh, kept.fresh, rtol=1e-2)
