"""The experiment at small sizes: sweep and race agree, and specialisation comes before the loss moves."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies import mixture_of_experts as lecture
from flbook.lectures.training_strategies.mixture_of_experts import Setting
from flbook.lectures.training_strategies.mixture_of_experts.clustered import ExpertClusters
from flbook.lectures.training_strategies.mixture_of_experts.routers import dispatched, entropy, given, k_means

TINY = lecture.experiment.setting("tiny")


def test_the_race_ends_where_the_sweep_does():
    setting = replace(TINY, router=("learned",), steps=20)
    race, cells = lecture.race(setting), lecture.experiment.measure(setting).squeeze()
    for name in ("test_error", "entropy"):
        np.testing.assert_allclose(race[name].isel(step=-1), cells[name], rtol=1e-4, atol=1e-6)
    assert race.step[-1] == 20 and (race.counts.sum(("number", "cluster")) == TINY.points).all()


def test_cubic_experts_specialise_before_the_loss_moves_and_linear_ones_do_not():
    race = lecture.race(lecture.experiment.setting(n=500, seed=(0, 1), steps=15, points=50))
    end = race.isel(step=-1)
    assert (end.lead.sel(expert="cubic") > 0.6).all() and (end.lead.sel(expert="linear") < 0.4).all()
    assert (end.agreement.sel(expert="cubic") > 0.9).all() and race.agreement.isel(step=0).isnull().all()


def test_each_router_trains_by_its_own_loss():
    cells = lecture.experiment.measure(replace(TINY, expert=("linear",), n=200, steps=120))
    assert (cells.train_loss.sel(router="oracle") > np.log1p(np.exp(-1)) - 1e-6).all()
    assert (cells.train_loss.sel(router=lecture.PLAIN) < 0.3).all()  # below the floor of the double softmax


def test_linear_experts_that_are_told_the_cluster_are_right():
    few = dict(n=400, seed=(0, 1), steps=60, points=300)
    setting = lecture.experiment.setting(expert=("linear",), router=("oracle",), **few)
    end = lecture.experiment.measure(setting)
    assert (end.test_error < 0.01).all() and (end.entropy == 0).all()


def test_entropy_of_dispatch():
    cluster = torch.arange(40) % 4
    assert entropy(dispatched(cluster, cluster, 6, 4)).item() == 0
    assert entropy(dispatched(cluster * 0, cluster, 6, 4)).item() == pytest.approx(np.log(4))
    half = entropy(dispatched(cluster // 2, cluster, 6, 4))
    assert half.item() == pytest.approx(np.log(2))
    counts = dispatched(cluster // 2, cluster, 6, 4)
    assert counts.shape == (6, 4) and counts[0].tolist() == [10, 10, 0, 0]


def test_k_means_finds_what_is_there_and_each_seed_alone():
    spots = torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], dtype=torch.float64)
    noise = 0.1 * torch.randn(2, 60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    centres = k_means(spots.repeat(20, 1) + noise, 3, (0, 1))
    assert (torch.cdist(centres, spots).amin(-1) < 0.2).all() and (torch.cdist(spots, centres).amin(-1) < 0.2).all()
    torch.testing.assert_close(k_means((spots.repeat(20, 1) + noise)[1:], 3, (1,)), centres[1:])


def test_eight_centres_tell_the_clusters_and_four_do_not():
    data, seed = ExpertClusters(n=600), (0, 1)
    sample, fresh = data.draw(seed), data.draw_test(400, seed)
    spread = {k: entropy(dispatched(given("k-means", sample, fresh, k, seed)[1], fresh.cluster, k, 4)) for k in (4, 8)}
    assert (spread[8] < 0.15).all() and (spread[4] > 0.4).all()
    oracle = given("oracle", sample, fresh, 8, seed)
    assert torch.equal(oracle[0], sample.cluster) and torch.equal(oracle[1], fresh.cluster)


def test_bad_input():
    with pytest.raises(ValueError, match="^d must be at least 8"):
        Setting(d=7)
    with pytest.raises(ValueError, match="^experts must be at least 4"):
        Setting(experts=3)
