"""Randomness: a draw depends on seed, role and FLBOOK_SEED, and on nothing else."""

import numpy as np
import pytest
import torch

from flbook import rng


def test_a_draw_depends_on_seed_and_role_only():
    one = rng.normal((3, 2), 5, "noise")
    torch.rand(7)  # torch's own stream is not touched, and does not matter
    assert torch.equal(one, rng.normal((3, 2), 5, "noise"))
    assert not torch.equal(one, rng.normal((3, 2), 6, "noise"))
    assert not torch.equal(one, rng.normal((3, 2), 5, "weights"))
    assert one.dtype == torch.float64 and one.device.type == "cpu"


def test_seeds_are_one_leading_axis_and_do_not_see_each_other():
    many = rng.normal((4,), (3, 9, 1), "noise")
    assert many.shape == (3, 4)
    for row, seed in zip(many, (3, 9, 1), strict=True):
        assert torch.equal(row, rng.normal((4,), seed, "noise"))
    assert torch.equal(rng.normal((4,), (1,), "noise")[0], many[2])


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("seed", [-1, 1.5, "a", True, None])
def test_a_seed_is_a_whole_number(seed):
    for draw in (lambda: rng.normal((2,), seed, "noise"), lambda: rng.normal((2,), (0, seed), "noise"),
                 lambda: rng.numpy_generator(seed, "noise"), lambda: rng.over_seeds(torch.tensor, seed)):
        with pytest.raises(ValueError, match=f"^seed must be a whole number of at least 0; got {seed!r}$"):
            draw()


@pytest.mark.usefixtures("without_type_checks")
def test_a_seed_of_numpy_is_a_seed():
    assert torch.equal(rng.normal((3,), np.int64(5), "noise"), rng.normal((3,), 5, "noise"))


def test_the_global_generator_is_left_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    rng.normal((5,), 0, "noise")
    assert torch.equal(torch.rand(3), expected)


def test_entropy_has_63_bits_and_no_accidental_neighbours():
    values = {rng.entropy(seed, role) for seed in range(200) for role in ("noise", "weights", "noise1")}
    assert len(values) == 600
    assert all(0 <= v < 2**63 for v in values) and max(values).bit_length() == 63


def test_fresh_seed_is_hashed_in_not_added(monkeypatch):
    usual = [rng.entropy(seed, "noise") for seed in range(50)]
    monkeypatch.setenv("FLBOOK_SEED", "1")
    fresh = [rng.entropy(seed, "noise") for seed in range(50)]
    monkeypatch.setenv("FLBOOK_SEED", "2")
    other = [rng.entropy(seed, "noise") for seed in range(50)]
    assert len({*usual, *fresh, *other}) == 150, "a fresh seed must not bring back another seed's numbers"


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "²"])
def test_a_fresh_seed_that_is_no_whole_number_is_refused(text, monkeypatch):
    monkeypatch.setenv("FLBOOK_SEED", text)
    with pytest.raises(ValueError, match=f"^FLBOOK_SEED must be a whole number of at least 0.*; got '{text}'$"):
        rng.normal((5,), 0, "noise")


def test_numpy_draws_have_their_own_stream():
    a, b = (rng.numpy_generator(4, "chi squared").random(3) for _ in range(2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, rng.numpy_generator(5, "chi squared").random(3))


@pytest.mark.parametrize("moment, expected", [(1, 0), (2, 1), (4, 3)])
def test_normal_numbers_are_standard(moment, expected):
    draws = rng.normal((1000,), tuple(range(100)), "noise").flatten()
    assert abs((draws**moment).mean().item() - expected) < 4 * (100 if moment == 4 else 2) ** 0.5 / 1e5**0.5
