"""Low-dimensional targets at a tiny preset: one step against rivals, exact risks against drawn prompts."""

import numpy as np
import pytest

from flbook.lectures.in_context_learning import low_dimensional_targets as lecture
from flbook.lectures.in_context_learning.low_dimensional_targets import Setting, experiment
from flbook.lectures.in_context_learning.shared import attention_pretraining as pretraining
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.lectures.in_context_learning.test_time_training.prompt_network import two_layer


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
    few, many = (Setting(d=(8,), m=24, t_1=t_1, n_1=64) for t_1 in (800, 32_000))  # (8/16)^3 of it at d = 8
    shares = [np.mean([lecture.stage_one(s, 8, 2, seed).alignment(2) for seed in (0, 1)]) for s in (few, many)]
    exact = np.mean([lecture.stage_one(Setting(m=24), 8, 2, seed).alignment(2) for seed in (0, 1)])
    assert 2 / 8 < shares[0] < shares[1] < exact + 0.02 and shares[1] > 0.8 * exact


def test_rivals_that_see_the_prompt_alone():
    setting = Setting(d=(6,), seed=(0, 1))
    kernel = lecture.alone(lecture.kernel_ridge, setting, (20, 40), queries=50)
    assert kernel.dims == ("context", "seed") and kernel.attrs["long_name"]
    assert kernel.sel(context=20).mean() > 0.1, "fewer examples than the 28 of a quadratic in 6 variables"
    assert kernel.sel(context=40).mean() < 1e-3, "the quadratic kernel interpolates a quadratic"
    network = lecture.alone(two_layer, setting, (20,), tasks=2, queries=50)
    assert np.isfinite(network).all() and network.mean() > 0.1


def test_rivals_by_what_they_are_told():
    found = lecture.rivals(Setting(d=(16,), seed=(0, 1)), 16)
    link, features, both, none = found.values()
    assert both.sel(context=8).max() < 1e-3 < features.sel(context=8).min(), "two unknowns"
    assert features.sel(context=24).mean() < 0.5 < none.sel(context=32).mean()
    assert link.isel(context=-1).mean() < 0.1 < link.isel(context=0).mean()
    rows = lecture.by_ratio({16: link, 32: link})
    assert rows.dims == ("d", "ratio", "seed") and list(rows.ratio.values) == list(lecture.RATIOS)
    flat = link.copy(data=np.full(link.shape, 0.3))
    at = lecture.crossing(flat, link)
    assert link.context[0] < at < link.context[-1]


def test_endless_pretraining_costs_more_in_larger_subspaces():
    risks = lecture.endless(Setting(d=(8,), r=(2, 3), context=(8, 64), seed=(0, 1), points=4000), per_square=8)
    assert risks.dims == ("r", "seed", "context")
    assert (risks.sel(r=3) > risks.sel(r=2)).all() and (risks.sel(context=8) > risks.sel(context=64)).all()
