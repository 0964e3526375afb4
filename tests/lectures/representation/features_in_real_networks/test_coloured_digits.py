"""Coloured digits: the red one is the label, the others are independent of it, and no handwriting is in both halves."""

import pytest
import torch

from flbook.data.ten_digits import ten_digits
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits


def test_the_red_digit_is_the_label():
    data = ColouredDigits(n=50).draw(seed=2)
    assert data.x.shape == (50, 3, 8, 8) and data.digits.shape == (50, 3)
    assert torch.equal(data.y, data.digits[:, 0])
    split = ten_digits(1000, seed=2)
    for colour in range(3):  # every channel is one of the training digits, of the class that is noted
        apart = torch.cdist(data.x[:, colour].flatten(1), split.x[:, 0].flatten(1))
        assert (apart.amin(1) < 1e-6).all()
        assert torch.equal(split.y[apart.argmin(1)], data.digits[:, colour])


def test_the_others_have_nothing_to_do_with_it():
    digits = ColouredDigits(n=20000).draw(0).digits
    for other in (1, 2):
        assert (digits[:, 0] == digits[:, other]).double().mean() == pytest.approx(0.1, abs=4 * 0.0022)


def test_test_pictures_show_other_handwriting():
    data = ColouredDigits(n=100)
    train, test = data.draw(5), data.draw_test(80, 5)
    assert test.x.shape == (80, 3, 8, 8)
    assert torch.cdist(train.x.flatten(0, 1).flatten(1), test.x.flatten(0, 1).flatten(1)).min() > 0
