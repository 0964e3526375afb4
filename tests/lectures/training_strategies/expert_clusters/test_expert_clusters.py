"""IndexExperts and router against automatic differentiation, and what the tiny runs must show."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.lectures.training_strategies import expert_clusters
from flbook.lectures.training_strategies.expert_clusters import Setting, leaks, learned, relu_rival, single_neurons
from flbook.lectures.training_strategies.expert_clusters.correlations import quartic_leak
from flbook.lectures.training_strategies.expert_clusters.index_clusters import IndexClusters
from flbook.lectures.training_strategies.expert_clusters.index_experts import IndexExperts, Together, start

DATA = IndexClusters(d=7, rho=1.5)


def test_a_step_is_a_gradient_step():
    """In all three layers, with directions at the pace of a second-layer weight of size one and on the sphere."""
    net = start(7, 3, seed=(0, 1), router=0.8)
    net = net._replace(a=net.a * torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
    sample, rule = DATA.draw(40, seed=(0, 1)), Together(lr=0.02, lr_second=0.03, lr_router=0.04, longest=1e6)
    free = IndexExperts(*(part.clone().requires_grad_() for part in net))
    loss = (sample.y - free.predict(sample.x)).square().mean(-1).sum() / 2
    dw, da, dr = torch.autograd.grad(loss, free)
    dw = dw / net.a.abs()[..., None]
    w = net.w - 0.02 * (dw - (dw * net.w).sum(-1, keepdim=True) * net.w)
    found = rule.step(net, sample)
    torch.testing.assert_close(found.w, w / w.norm(dim=-1, keepdim=True))
    torch.testing.assert_close(found.a, net.a - 0.03 * da)
    torch.testing.assert_close(found.r, net.r - 0.04 * dr)


def test_a_long_gradient_is_cut():
    net, sample = start(7, 2, seed=0), DATA.draw(20, seed=0)
    moved = Together(lr=1e-3, longest=1e-2).step(net, sample).w - net.w
    assert moved.norm(dim=-1).max() <= 1e-5 * (1 + 1e-6)


def test_a_router_at_zero_is_one_network():
    net, x = start(7, 3, seed=0), DATA.draw(9, seed=0).x
    whole = (net.a[..., None] * hermite.polynomial(3, net.w @ x.T)).sum((0, 1)) / 2
    torch.testing.assert_close(net.predict(x), whole)
    assert net.cosine() == 0 and start(7, 3, seed=0, router=2.0).r.norm() == pytest.approx(2)


def test_the_share_learned():
    sample = DATA.draw(500, seed=0)
    assert learned(0.4 * sample.shared, sample).item() == pytest.approx(0.4)


def test_cases_are_what_they_say():
    tiny = expert_clusters.experiment.setting("tiny")
    found = expert_clusters.experiment.measure(tiny)
    still = found.router.sel(case=["one network", "router at random"])
    np.testing.assert_array_equal(still.isel(step=0), still.isel(step=-1))
    assert (still.sel(case="one network") == 0).all() and (still.sel(case="router at random") > 0).all()
    assert (found.router.isel(step=-1).sel(case="router trained") > 0).all()
    assert tiny.data("no local parts", 8).local == 0 and tiny.data("router trained", 8).local == 1


def test_experts_learn_what_one_network_cannot():
    setting = Setting(seed=(0,), step=(0, 900))
    end = expert_clusters.experiment.measure(setting).learned.squeeze().isel(step=-1)
    assert end.sel(case="router trained") > 0.4 and abs(end.sel(case="one network")) < 0.03


def test_one_cluster_shows_what_both_hide():
    setting = single_neurons.Setting(seed=(0, 1), step=(0, 400))
    found = single_neurons.experiment.measure(setting)
    first, last = found.isel(step=0), found.isel(step=-1)
    np.testing.assert_allclose(first.shared, 0.4)
    np.testing.assert_allclose(first.local, 0.2)
    assert (last.shared.sel(sees=["one cluster", "spectral half"]) > 0.98).all()
    assert (last.shared.sel(sees="everything") < 0.3).all()


def test_the_top_component_points_along_v_whatever_sign_it_comes_with(monkeypatch):
    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda a: SimpleNamespace(eigenvectors=-eigh(a).eigenvectors))
    axis = single_neurons.half(IndexClusters(8, 2.0).draw(2000, seed=(0, 1)))
    assert axis.shape == (2, 8) and (axis[:, 0] > 0.98).all()


def test_the_leak_of_two_activations():
    setting = leaks.experiment.setting(d=(16,), seed=(0, 1, 2, 3))
    found = leaks.experiment.measure(setting).squeeze()
    mean = found.leak.mean("seed")
    expected = quartic_leak(2.0, found.lean.mean().item(), 0.4)
    assert mean.sel(activation="quartic") == pytest.approx(expected, rel=0.25)
    assert abs(mean.sel(activation="cubic")) < 0.25 * expected


def test_a_relu_network_learns_something_of_the_shared_part():
    setting = relu_rival.Setting(d=(8,), width=(64,), seed=(0,), steps=1200, batch=200)
    assert relu_rival.experiment.measure(setting).learned.item() > 0.2


def test_starts_that_do_not_exist():
    with pytest.raises(ValueError, match="^to_local must leave a start"):
        single_neurons.Setting(to_local=0.7, to_shared=0.5)
    with pytest.raises(ValueError, match="^d must be at least 5"):
        single_neurons.Setting(d=4)
