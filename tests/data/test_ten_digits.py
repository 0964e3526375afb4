"""All ten digits: what is split, that nothing is in both halves, that a seed is a seed."""

import pytest
import torch

from flbook.data.ten_digits import ten_digits


def test_a_split_leaves_nothing_out_and_nothing_twice():
    data = ten_digits(1000, seed=3)
    assert data.x.shape == (1000, 1, 8, 8) and data.x_test.shape == (797, 1, 8, 8)
    assert set(data.y.tolist()) == set(data.y_test.tolist()) == set(range(10))
    every = torch.cat([data.x, data.x_test])
    assert abs(every.mean()) < 1e-12 and every.var(correction=0) == pytest.approx(1)
    whole = ten_digits(1, seed=0)
    rows = torch.cat([whole.x, whole.x_test]).flatten(1)
    torch.testing.assert_close(every.flatten(1).square().sum(1).sort().values, rows.square().sum(1).sort().values)
    assert torch.cdist(data.x.flatten(1), data.x_test.flatten(1)).min() > 0


@pytest.mark.parametrize("n", [0, 1797])
def test_a_split_needs_both_halves(n):
    with pytest.raises(ValueError, match=rf"^n must be a whole number in \[1, 1796\]; got {n}$"):
        ten_digits(n)


def test_brightness_is_the_same_pictures_between_0_and_1():
    bright, standard = ten_digits(900, seed=2, standard=False), ten_digits(900, seed=2)
    assert bright.x.min() == bright.x_test.min() == 0 and bright.x.max() == bright.x_test.max() == 1
    slope = (standard.x[0].max() - standard.x[0].min()) / (bright.x[0].max() - bright.x[0].min())
    torch.testing.assert_close(standard.x - standard.x.min(), slope * bright.x)
    assert torch.equal(bright.y_test, standard.y_test)
