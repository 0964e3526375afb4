"""Low-dimensional targets at a tiny preset: labelled, a cell alone is a cell in the grid, one step against rivals."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.data.single_index_prompts import SingleIndexPrompts
from flbook.dynamics import attention_pretraining as pretraining
from flbook.dynamics.prompt_network import two_layer
from flbook.lectures.in_context_learning import low_dimensional_targets as lecture
from flbook.lectures.in_context_learning.low_dimensional_targets import Setting, measure
from flbook.lectures.in_context_learning.low_dimensional_targets import alignment as closed
from flbook.runs import results, settings

TINY = Setting(d=(6, 10), r=(2,), lam=(1e-3, 0.1), context=(8, 64), seed=(0, 1), m=24, t_2=200, n_2=32, points=2000)


def test_a_labelled_dataset_whose_cells_stand_alone():
    dataset = measure(TINY)
    assert set(settings.axes(TINY)) == set(dataset.dims)
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    one = measure(TINY.thinned(d=(10,), model=("oracle",), lam=(0.1,), seed=(1,), context=(64,)))
    for name in one:
        cell = {key: value for key, value in
                dict(d=10, model="oracle", lam=0.1, seed=1, context=64).items() if key in dataset[name].dims}
        np.testing.assert_allclose(one[name].squeeze(), dataset[name].sel(cell).squeeze(), rtol=1e-6)


def test_the_step_finds_the_subspace_and_pays():
    dataset = measure(TINY.thinned(d=(16,), m=48, t_2=600, seed=(0, 1, 2)))
    aligned = dataset.alignment.squeeze().mean("seed")
    assert aligned.sel(model="oracle") == 1 and abs(aligned.sel(model="frozen") - 2 / 16) < 0.03
    assert aligned.sel(model="one step") == pytest.approx(closed.alignment_after_step(16, 2), abs=0.04)
    risk = dataset.risk.min("lam").squeeze().mean("seed")
    assert risk.sel(model="one step", context=64) < 0.4 < 0.9 < risk.sel(model="frozen", context=64)
    limit = dataset.limit.squeeze().mean("seed")
    assert (limit <= risk).all() and (limit.diff("context") < 0).all()


def test_the_exact_risk_is_that_of_fresh_prompts():
    setting = TINY.thinned(d=(10,), m=32, t_2=400, seed=(0,), model=("one step",), lam=(1e-2,), points=100_000)
    own = lecture.layer("one step", setting, 10, 2, 0)
    (seen,) = pretraining.summarise([own], lecture.examples(lecture.data(setting, 10, 2, 32), 400, 0, 10_000_000))
    attention = pretraining.trained(own, seen, 1e-2)
    drawn = SingleIndexPrompts(n=64, d=10, r=2, queries=4).draw(3000, 5)
    error = (attention(drawn.context, drawn.query) - drawn.target).square().mean().item()
    assert error == pytest.approx(float(measure(setting).risk.sel(context=64).squeeze()), rel=0.15)


def test_a_drawn_step_tends_to_the_exact_one():
    drawn = lecture.progress(Setting(d=(8,), m=24, t_1=8000, n_1=64, seed=(0, 1)), batches=8)
    assert drawn.shape == (8, 2) and drawn.prompts[-1] == 1000, "(8/16)^3 of the prompts at d = 16"
    exact = [lecture.stage_one(Setting(m=24), 8, 2, seed).alignment(2).item() for seed in (0, 1)]
    one = lecture.progress(Setting(d=(8,), m=24, t_1=8000, n_1=64, seed=(1,)), batches=20).isel(prompts=-1, seed=0)
    whole = lecture.stage_one(Setting(m=24, t_1=8000, n_1=64), 8, 2, 1).alignment(2).item()
    assert 2 / 8 < float(drawn[0].mean()) < float(drawn[-1].mean()) < np.mean(exact)
    assert whole == pytest.approx(float(one), rel=1e-4), "the same batches, added up in two ways"


def test_rivals_that_see_the_prompt_alone():
    setting = Setting(d=(6,), context=(20, 40), seed=(0, 1))
    kernel = lecture.alone(lecture.kernel_ridge, setting, tasks=4, queries=50)
    assert kernel.dims == ("context", "seed") and kernel.attrs["long_name"]
    assert kernel.sel(context=20).mean() > 0.1, "fewer examples than the 28 of a quadratic in 6 variables"
    assert kernel.sel(context=40).mean() < 1e-3, "the quadratic kernel interpolates a quadratic"
    network = lecture.alone(two_layer, setting, tasks=2, queries=50)
    assert network.mean() > kernel.mean() and np.isfinite(network).all()


def test_run_is_measure_in_chunks_and_what_is_stored(tmp_path):
    setting = TINY.thinned(model=("one step",), lam=(0.1,))
    dataset = lecture.run(setting, cache=tmp_path, memory=6e6)
    assert len(list(tmp_path.iterdir())) > 1
    for name, values in measure(setting).items():
        np.testing.assert_allclose(dataset[name].transpose(*values.dims), values, rtol=1e-6)
    kept = lecture.stored(dataset)
    assert set(kept.risk.dims) == {"d", "r", "seed", "context"} and kept.risk.dtype == np.float32


def test_the_stored_result_is_what_this_code_computes():
    kept, setting = results.open("low_dimensional_targets"), Setting.paper()
    cells = measure(setting.thinned(d=(8,), seed=(3,))).squeeze(("model", "lam", "seed", "d"))
    for name in cells:
        np.testing.assert_allclose(cells[name], kept[name].sel(d=8, seed=3), rtol=1e-2)


def test_bad_settings_are_one_sentence(tmp_path):
    for change, sentence in [
        (dict(r=(12,)), "at most d = 6; got 12"),
        (dict(model=("gpt",)), "model must be among one step, oracle, frozen; got 'gpt'"),
        (dict(context=(0,)), "n must be at least 1, the examples of a prompt"),
        (dict(lam=(0.0,)), "lam must be positive"),
        (dict(t_2=0), "t_2 and points must be at least 1"),
        (dict(noise=-1.0), "noise must be finite and not negative"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            lecture.run(replace(TINY, **change), cache=tmp_path / "cache")
    assert not list(tmp_path.iterdir())
