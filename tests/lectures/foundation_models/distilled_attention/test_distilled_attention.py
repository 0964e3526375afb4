"""Ways to share a budget: each spends it whole, the numbers are what it says, and the networks are those stored."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.foundation_models import distilled_attention
from flbook.lectures.foundation_models.distilled_attention import (
    Setting,
    dof,
    layer_costs,
    more_networks,
    other_networks,
)
from flbook.lectures.foundation_models.distilled_attention.linear_layers import linear_layer
from flbook.lectures.foundation_models.distilled_attention.linear_layers import test_nats as nats
from flbook.lectures.foundation_models.distilled_attention.pixel_training import opened
from flbook.lectures.foundation_models.distilled_attention.sharing import cheapest, shared

TINY = distilled_attention.experiment.setting("tiny")


@pytest.mark.parametrize("budget", [1, 2, 7, 16, 33])
def test_shares_spend_the_budget_whole(budget):
    for weights in ([86.0, 289.0, 331.0, 499.0], [1.0, 1e6, 1.0], [3.0, 3.0, 3.0, 1e-9], [1e-6, 1.0, 1.0]):
        for found in (shared(np.array(weights), budget), cheapest(np.array(weights), budget)):
            assert found.sum() == budget * len(weights) and found.min() >= 1
            assert (np.diff(found[np.argsort(weights)]) >= -1).all()


def test_the_cheapest_whole_numbers_are_those_of_all_that_sum_to_the_budget():
    constants = np.array([0.3, 0.01, 2.0])
    every = [(a, b, 12 - a - b) for a in range(1, 11) for b in range(1, 12 - a)]
    best = min(every, key=lambda given: sum(constants / given))
    assert tuple(cheapest(constants, 4)) == best
    real = 4 * 3 * np.sqrt(constants) / np.sqrt(constants).sum()
    assert np.abs(real - best).max() < 1.01
    assert np.sqrt(constants).sum() ** 2 / 12 <= (constants / best).sum()


def test_the_rule_is_the_best_exactly_if_costs_are_squares():
    needs, budget = np.array([100.0, 200.0, 500.0]), 800

    def cost(constants, given):
        return (constants / given).sum()

    squares = needs**2
    assert cost(squares, shared(needs, budget)) == pytest.approx(np.sqrt(squares).sum() ** 2 / 2400, rel=1e-4)
    equal = np.full(3, budget)
    assert cost(needs, shared(needs, budget)) == pytest.approx(cost(needs, equal), rel=1e-4)
    assert cost(needs, shared(np.sqrt(needs), budget)) < 0.95 * cost(needs, equal)


def test_every_way_to_share_on_the_stored_result():
    found = distilled_attention.experiment.stored().isel(network=0)
    assert (found.features.sum("layer") == 4 * found.budget).all()
    assert (found.features.sel(rule="equal") == found.budget).all()
    rule, turned = (np.sort(found.features.sel(rule=way), -1) for way in ("rule", "reversed"))
    assert (rule == turned).all()
    needs = dof().max(-1)
    assert (np.argsort(found.features.sel(rule="reversed", budget=16)) == np.argsort(-needs)).all()
    constants = layer_costs.constants(layer_costs.experiment.stored())
    assert np.abs(found.features.sel(rule="measured", budget=16) - cheapest(constants[0], 16)).max() <= 2
    assert np.abs(found.features.sel(rule="rule") - np.stack([shared(needs, b) for b in (8, 16, 32)])).max() == 0


@pytest.mark.parametrize("kept, way, budget, number", [
    (distilled_attention, "equal", 8, 0), (distilled_attention, "reversed", 16, 0),
    (distilled_attention, "shuffled", 8, 0), (other_networks, "rule", 16, 2),
])
def test_cells_of_the_stored_results_again(kept, way, budget, number):
    setting = Setting(rule=(way,), budget=(budget,), network=(number,), seed=(1, 4))
    again = distilled_attention.experiment.measure(setting)
    cell = {"rule": [way], "budget": [budget], "network": [number]}
    stored = kept.experiment.stored().sel(cell)
    np.testing.assert_allclose(again.nats, stored.nats.sel(seed=[1, 4]), rtol=1e-3)
    np.testing.assert_array_equal(again.features, stored.features)
    np.testing.assert_allclose(again.softmax, stored.softmax, rtol=1e-5)


def test_every_way_to_share_now():
    needs, larger = dof(0, TINY.lam, 60).max(-1), dof(0, 2.0**-4, 60).max(-1)
    expected = {"equal": np.full(4, 16), "rule": shared(needs, 16), "rule, larger λ": shared(larger, 16),
                "root": shared(np.sqrt(needs), 16)}
    for way, given in expected.items():
        assert distilled_attention.shares(TINY, way, 16).tolist() == given.tolist(), way
    turned = distilled_attention.shares(TINY, "reversed", 16)
    assert sorted(turned) == sorted(expected["rule"]) and turned[needs.argmax()] == turned.min() < turned.max()


def test_degrees_of_freedom_by_hand():
    tokens = torch.cat(distilled_attention.attended(0)[1])[:, 1].flatten(0, 1).double().numpy()
    from flbook.lectures.foundation_models.shared.degrees_of_freedom import drawn_tokens

    some = drawn_tokens(tokens, 60)
    gram = np.exp(some @ some.T / 4) / 60
    by_hand = np.trace(gram @ np.linalg.inv(gram + 0.5 * np.eye(60)))
    assert dof(0, 0.5, 60)[1, 1] == pytest.approx(by_hand, rel=1e-4)


def test_shuffled_numbers_are_those_of_the_rule_in_an_order_of_each_seed(monkeypatch):
    given = []

    def seen(how, layer, features, network, seed, device):
        given.append((seed, layer, features))
        return linear_layer(how, layer, features, network, seed, device)

    monkeypatch.setattr(distilled_attention, "linear_layer", seen)
    setting = replace(TINY, seed=(0, 1, 2, 3))
    loss = distilled_attention.shuffled(setting, [1, 2, 3, 4])
    orders = [[features for seed, _, features in given if seed == (one,)] for one in setting.seed]
    assert loss.shape == (4,) and all(sorted(order) == [1, 2, 3, 4] for order in orders)
    assert len(set(map(tuple, orders))) > 1
    whole = distilled_attention.distilled(replace(setting, seed=(2,)), orders[2])
    torch.testing.assert_close(nats(whole, setting.pictures), loss[2:3])


def test_the_networks_are_the_stored_ones_and_differ():
    losses = [nats(opened(number)).item() for number in range(3)]
    np.testing.assert_allclose(losses, other_networks.experiment.stored().softmax, rtol=1e-5)
    assert max(losses) < 1.34 and len(set(losses)) == 3
    with pytest.raises(ValueError, match="^network must be below 3"):
        opened(3)


def test_other_networks_is_the_same_experiment():
    tiny = other_networks.experiment.setting("tiny")
    same = replace(TINY, rule=tiny.rule, budget=(16,), network=(2,))
    found = other_networks.experiment.measure(tiny).nats.sel(network=[2])
    np.testing.assert_allclose(found, distilled_attention.experiment.measure(same).nats, rtol=1e-4)


def test_more_networks_are_others_and_share_whole_budgets():
    tiny = more_networks.experiment.setting("tiny")
    found = more_networks.experiment.measure(tiny)
    assert (found.features.sum("layer") == 4 * tiny.budget).all() and found.dof.shape == (2, 4)
    assert (found.features.sel(rule="equal") == tiny.budget).all()
    losses = [nats(opened(number, tiny.training), tiny.pictures).item() for number in tiny.network]
    np.testing.assert_allclose(found.softmax, losses, rtol=1e-5)
    assert losses[0] != losses[1]


def test_more_networks_as_stored():
    found = more_networks.experiment.stored()
    assert (found.softmax < 1.34).all() and (found.nats > found.softmax).all()
    given = [shared(needs, 16) for needs in found.dof.values]
    np.testing.assert_array_equal(found.features.sel(rule="rule"), given)
