"""Outputs on fresh noise, summed up in blocks of members: the whole array at once gives the same."""

import pytest
import torch

from flbook import rng
from flbook.dynamics import fresh
from flbook.dynamics.fresh import outputs_on_noise
from flbook.models import relu


def whole(respond, root, a, standard, bias=0.0):
    """The definition, with everything in one array."""
    z = torch.einsum("pg,...gk->...pk", standard.to(root), root).to(a)
    return torch.einsum("...pk,...k->...p", respond(z + bias), a.expand(*root.shape[:-2], -1))


@pytest.mark.parametrize("block", [1, 7 * 4 * 2, 2**20], ids=["one by one", "two members", "all"])
@pytest.mark.parametrize("members", [(), (5,), (2, 3)], ids=str)
def test_blocks_are_the_whole(monkeypatch, members, block):
    monkeypatch.setitem(fresh._BLOCK, "cpu", block)
    root, a = rng.normal((*members, 4, 4), 0, "root"), rng.normal((*members, 4), 0, "a")
    standard, bias = rng.normal((7, 4), 0, "points"), rng.normal((*members, 4), 0, "bias")
    for weights in (a, a.reshape(-1, 4)[0]):  # each member its own, or one for all
        found = outputs_on_noise(relu, root, weights, standard)
        torch.testing.assert_close(found, whole(relu, root, weights, standard), rtol=1e-13, atol=1e-13)
    found = outputs_on_noise(relu, root, a, standard, bias)
    torch.testing.assert_close(found, whole(relu, root, a, standard, bias[..., None, :]), rtol=1e-13, atol=1e-13)


def test_a_rival_may_ask_for_more_pre_activations_than_it_has_filters():
    root, standard = rng.normal((3, 6, 6), 0, "root"), rng.normal((5, 6), 0, "points")

    def products(z):
        now, before = z.chunk(2, -1)
        return now * before

    found = outputs_on_noise(products, root, torch.tensor([1.0, 2.0, -1.0]).double(), standard)
    expected = whole(products, root, torch.tensor([1.0, 2.0, -1.0]).double(), standard)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)


def test_the_result_is_of_the_kind_of_the_output_weights():
    root, standard = rng.normal((3, 2, 2), 0, "root"), rng.normal((5, 2), 0, "points")
    assert outputs_on_noise(relu, root, torch.ones(2), standard.float()).dtype == torch.float32


@pytest.mark.parametrize("device, numbers", [("cpu", 2**20), ("meta", 2**27)])
def test_a_block_holds_as_many_members_as_fit(device, numbers):
    """What a processor's cache holds; more on a device that wants large batches."""
    points, k, seen = 1000, 7, []
    fit = numbers // (points * k)

    def respond(z):
        seen.append(len(z))
        return z

    root, a, standard = (torch.ones(*shape, device=device) for shape in ((2 * fit + 5, 3, k), (k,), (points, 3)))
    assert outputs_on_noise(respond, root, a, standard).shape == (2 * fit + 5, points)
    assert seen == [fit, fit, 5]
