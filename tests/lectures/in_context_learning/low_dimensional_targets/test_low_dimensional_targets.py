"""Low-dimensional targets at a tiny preset: one step against rivals, exact risks against drawn prompts."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning import low_dimensional_targets as lecture
from flbook.lectures.in_context_learning.low_dimensional_targets import Setting, experiment
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.prompt_network import two_layer
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts


def test_the_exact_risk_is_that_of_fresh_prompts():
    setting = experiment.setting(
        "tiny", d=(10,), m=32, t_2=400, seed=(0,), model=("one step",), lam=(1e-2,), points=100_000)
    own = lecture.layer("one step", setting, 10, 2, 0)
    (seen,) = pretraining.summarise([own], lecture.examples(lecture.data(setting, 10, 2, 32), 400, 0, 10_000_000))
    attention = pretraining.trained(own, seen, 1e-2)
    drawn = SingleIndexPrompts(n=64, d=10, r=2, queries=4).draw(3000, 5)
    error = (attention(drawn.context, drawn.query) - drawn.target).square().mean().item()
    assert error == pytest.approx(float(experiment.measure(setting).risk.sel(context=64).squeeze()), rel=0.15)


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
