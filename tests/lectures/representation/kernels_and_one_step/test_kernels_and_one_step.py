"""One gradient step at a tiny preset: exact risk, spike, rivals."""

from dataclasses import replace

import numpy as np
import pytest

from flbook.lectures.representation import kernels_and_one_step
from flbook.lectures.representation.kernels_and_one_step import MODELS, experiment, harmonics, rivals, spectra
from flbook.models import kernels
from flbook.theory import one_step

TINY = experiment.setting("tiny")
SAMPLED = replace(TINY, activation="tanh", link="tanh")


def test_exact_risk_is_the_sampled_one():
    sampled = rivals(replace(TINY, points=2**15, eta=(12.0,)), names=("one step",)).risk.squeeze("model")
    exact = experiment.run(TINY).risk.sel(eta=12.0, drop=True)
    np.testing.assert_allclose(sampled, exact.transpose(*sampled.dims), rtol=0.05)


def test_a_large_step_learns_what_no_fixed_features_do():
    setting = replace(SAMPLED, psi_1=(12.0,), eta=(16.0,), seed=tuple(range(4)), points=2048)
    found = rivals(setting).squeeze("psi_1").mean("seed")
    risk, floor = found.risk.min("lam"), harmonics.floor(2 * 12 * 32, np.tanh, 32)
    assert risk.sel(model="one step") < floor
    assert (risk.drop_sel(model="one step") > floor).all() and list(found.model.values) == list(MODELS)
    assert found.share.sel(model="one step", degree=3) > 0.5
    assert (abs(found.share.sel(degree=3).drop_sel(model="one step")) < 0.2).all()
    assert (found.share.sel(degree=1) > 0.8).all()
    bend = found.profile.sel(model="one step") - np.tanh(found.place)
    assert abs(bend).max() < 0.15 and (np.diff(found.place) > 0).all()


def test_linear_regression_is_an_inner_product_kernel_at_the_same_ridges_on_both_samples():
    model = kernels_and_one_step.data(TINY, 2.0)
    first, fresh = model.draw(TINY.seed, "first"), model.draw(TINY.seed, "fresh")
    test = model.draw_test(8, TINY.seed)
    line = MODELS["linear regression"](TINY, first, None, fresh, test.x)
    together = kernels_and_one_step.both(first, fresh)
    assert together.x.shape == (len(TINY.seed), 2 * model.n, model.d)
    ridges = tuple(lam / TINY.width for lam in TINY.lam)
    kernel = kernels_and_one_step.by_kernel(kernels.inner_product(lambda t: t), ridges, together, test.x)
    np.testing.assert_allclose(kernel, line, atol=1e-3)


def test_the_blind_step_is_as_long_and_points_elsewhere():
    model = kernels_and_one_step.data(TINY, 6.0)
    first = model.draw(TINY.seed)
    net = kernels_and_one_step.start(TINY, first)
    seeing, blind = net.step(first.x, first.y, 12.0), kernels_and_one_step.blind(net, first, 12.0)
    lengths = [(moved.w - net.w).square().sum((-2, -1)) for moved in (seeing, blind)]
    np.testing.assert_allclose(*lengths)
    overlaps = [moved.spectrum(model.direction)[1][:, -1].mean() for moved in (seeing, blind)]
    assert overlaps[0] > 0.7 and overlaps[1] < 0.2


def test_the_spike_and_the_rank_one_gradient():
    found = spectra(experiment.setting("spikes", eta=(0.0, 16.0), seed=(0, 1, 2), d=64))
    expected = one_step.spike(16.0, 4.0, 2.0, *kernels_and_one_step.parts(TINY), 0.1)
    top = found.singular_value.isel(k=-1).squeeze("psi_1").mean("seed")
    assert top.sel(eta=16.0) == pytest.approx(float(expected.singular_value), rel=0.06)
    assert found.overlap.sel(eta=16.0).mean() == pytest.approx(float(expected.overlap), abs=0.1)
    assert found.overlap.sel(eta=0.0).mean() < 0.1
    assert (found.rank_one_error < 0.2).all(), "with the sign or the factor wrong it is 1 or more"
