"""Sparse noise: its patches, the gradient by hand, the rivals, and the steps of the page's proposition."""

import math
from dataclasses import replace

import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.training_strategies.adam_and_gradient_descent.sparse_training import SparseTraining, network
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.training.network import LazyTraining, Training
from flbook.training.optimizers import SignDescent

DATA = SparseNoise(n=12, d=80, s=6, sigma_xi=0.5, alpha=0.3)


def problem(data=DATA, seed=(0, 1), sigma_0=0.4, m=3):
    sample = data.draw(seed)
    return SparseTraining(network(data, m, sigma_0, seed).double(), sample.x, sample.y), sample


def test_a_sample_has_the_feature_and_noise_on_s_other_coordinates_with_some_of_the_wrong_feature():
    sample = DATA.draw(seed=(0, 1))
    assert sample.y.sum() == 0 and (sample.x[..., 0, 0] == sample.y).all() and (sample.x[..., 0, 1:] == 0).all()
    assert (sample.x[..., 1, :] == sample.xi).all() and (sample.xi[..., 0] == -0.3 * sample.y).all()
    assert ((sample.xi[..., 1:] != 0).sum(-1) == 6).all()
    assert (DATA.draw(seed=1).xi == sample.xi[1]).all()


def test_masks_are_uniform_and_the_noise_has_its_variance_in_fresh_samples_too():
    fresh = SparseNoise(n=1, d=21, s=5, sigma_xi=0.5).draw_test(20_000, seed=3)
    noise = fresh.xi[:, 1:]
    share = (noise != 0).double().mean(0)
    assert share.min() > 0.23 and share.max() < 0.27
    assert noise.square().sum(-1).mean().item() == pytest.approx(5 * 0.25, rel=0.02)
    assert noise.abs().sum(-1).mean().item() == pytest.approx(5 * 0.5 * math.sqrt(2 / math.pi), rel=0.02)
    assert abs(fresh.y.mean().item()) < 0.03 and (fresh.x[:, 0, 0] == fresh.y).all()


def test_disjoint_samples_share_no_coordinate_but_fresh_ones_may():
    data = replace(DATA, disjoint=True)
    used = (data.draw(seed=0).xi[:, 1:] != 0).sum(0)
    assert used.max() == 1 and used.sum() == 72
    assert (data.draw_test(50, seed=0).xi[:, 1:] != 0).sum(0).max() > 1


def test_gradients_outputs_and_the_lazy_rival_are_those_of_automatic_differentiation():
    ours, sample = problem()
    theirs = Training(ours.model, sample.x, sample.y)
    lazy, its = ours.lazy(), LazyTraining(ours.model, sample.x, sample.y)
    start = ours.start()
    moved = {"w": start["w"] + 0.3 * torch.sin(torch.arange(start["w"].numel()).double()).reshape(start["w"].shape)}
    for one, other in ((ours, theirs), (lazy, its)):
        torch.testing.assert_close(one.predict(moved), other.predict(moved), rtol=1e-11, atol=1e-12)
        torch.testing.assert_close(one.gradient(moved), other.gradient(moved), rtol=1e-10, atol=1e-13)
    batch = torch.tensor([0, 3, 4])
    torch.testing.assert_close(ours.batch(batch).gradient(moved), theirs.batch(batch).gradient(moved))


def test_the_linear_rival_is_a_linear_classifier_of_the_sum_of_patches_from_zero():
    ours, sample = problem()
    linear = ours.linear()
    params = fit(linear, GradientDescent(0.3), 5).params
    direct = Training(linear.model, sample.x, sample.y)
    torch.testing.assert_close(linear.predict(params), direct.predict(params))
    w = params["w"][:, 0, 0] - params["w"][:, 1, 0]
    torch.testing.assert_close(linear.predict(params), torch.einsum("end,ed->en", sample.x.sum(-2), w))
    assert (linear.start()["w"] == 0).all() and (ours.start()["w"] != 0).any()


def test_feature_and_noise_are_the_largest_responses_for_the_own_label():
    ours, sample = problem(seed=2)
    w = ours.start()["w"]
    assert ours.feature({"w": w}).tolist() == pytest.approx([w[0, :, 0].max().item(), -w[1, :, 0].min().item()])
    for i in range(4):
        own = w[0 if sample.y[i] > 0 else 1]
        assert ours.noise({"w": w})[i].item() == pytest.approx((own @ sample.xi[i]).max().item())


@pytest.mark.parametrize("rule", [GradientDescent(0.01), SignDescent(0.01)])
def test_one_step_adds_to_noise_and_feature_what_the_proposition_says(rule):
    data = replace(DATA, disjoint=True)
    ours, sample = problem(data, seed=4)
    w, sparse = ours.start()["w"], sample.xi.clone()
    sparse[:, 0] = 0
    after = rule.step(ours, {"w": w}, rule.start({"w": w}))[0]["w"] - w
    kappa = torch.sigmoid(-sample.y * ours.predict({"w": w}))
    plain = not isinstance(rule, SignDescent)
    for j, filters, steps in ((1, w[0], after[0]), (-1, w[1], after[1])):
        for one, step in zip(filters, steps, strict=True):
            b, a = sample.xi @ one, j * one[0]
            for i in range(data.n):
                if sample.y[i] == j:
                    size = kappa[i] * 3 * b[i].relu() ** 2 * sparse[i].square().sum() / data.n
                    expected = 0.01 * (size if plain else (b[i] > 0) * sparse[i].abs().sum())
                    assert (step @ sparse[i]).item() == pytest.approx(float(expected), abs=1e-13)
            if a > 0:
                s = (3 * a**2 * kappa[sample.y == j].sum() - 0.3 * (kappa * 3 * b.relu() ** 2).sum()).item()
                assert j * step[0].item() == pytest.approx(0.01 * (s / data.n if plain else math.copysign(1, s)))


def test_the_feature_falls_after_the_step_that_the_proposition_names():
    data = SparseNoise(n=20, d=1001, s=50, sigma_xi=0.3, alpha=0.1, disjoint=True)
    sample = data.draw(seed=(0, 1, 2))
    ours = SparseTraining(network(data, 8, 1e-4, (0, 1, 2)).double(), sample.x, sample.y)
    rule, w = SignDescent(1e-5), ours.start()["w"]
    length = sample.xi[..., 1:].abs().sum(-1)[:, None, None]
    j = torch.tensor([1.0, -1.0]).double()[:, None]
    own = (sample.y[:, None] == j)[:, :, None]
    active = (torch.einsum("ejrd,end->ejrn", w, sample.xi) > 0) & own
    big_a = 2 * 0.1 / data.n * (active * (length - 0.1) ** 2).sum(-1)
    start = w[..., 0] * j
    bound = start / (1e-5 * (big_a.sqrt() - 1))
    held = (start > 0) & (big_a > 1.2)
    assert held.sum() > 10
    params, fell = {"w": w}, 0
    for step in range(60):
        a = params["w"][..., 0] * j
        params, _ = rule.step(ours, params, rule.start(params))
        change = params["w"][..., 0] * j - a
        now = held & (step > bound) & (a > 0)
        assert (change[now] < 0).all()
        fell += int(now.sum())
    assert fell > 50


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="s must be at most d - 1 = 9"):
        SparseNoise(n=2, d=10, s=10)
    with pytest.raises(ValueError, match="d must be above n s = 40"):
        SparseNoise(n=4, d=40, s=10, disjoint=True)
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 1\)"):
        SparseNoise(alpha=1.0)
    sample = DATA.draw(seed=0)
    with pytest.raises(ValueError, match="first basis vector"):
        SparseTraining(network(DATA, 3), sample.x.flip(-2), sample.y)
