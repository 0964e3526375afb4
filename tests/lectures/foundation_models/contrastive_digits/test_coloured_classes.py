"""Digits whose colour says their label: the law of labels and colours, the pictures, the other palette at the test."""

from dataclasses import replace

import pytest
import torch

from flbook.data.ten_digits import ten_digits
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import (
    ColouredClasses,
    hues,
    painted,
    repainted,
)

SEEDS = tuple(range(20))
DATA = ColouredClasses(n=900)


def shares(pictures, shift=0):
    """How often the label is the digit's class, and the colour the label's."""
    tied = pictures.colour == (pictures.label + shift) % 10
    return (pictures.label == pictures.digit).double().mean(), tied.double().mean()


@pytest.mark.parametrize("shift", [None, 0, 1, 7])
def test_labels_and_colours_follow_their_law(shift):
    drawn = DATA.draw(SEEDS) if shift is None else DATA.draw_test(SEEDS, shift)
    right, tied = shares(drawn, shift or 0)
    n = drawn.label.numel()
    assert right.item() == pytest.approx(0.91, abs=4 * (0.91 * 0.09 / n) ** 0.5)
    assert tied.item() == pytest.approx(0.7975, abs=4 * (0.7975 * 0.2025 / n) ** 0.5)


def test_given_the_label_the_colour_knows_nothing_of_the_digit():
    data = replace(DATA, replaced=0.5, tied=0.6)
    drawn = data.draw(tuple(range(60)))
    wrong = drawn.label != drawn.digit
    of_label = (drawn.colour == drawn.label)[wrong].double().mean()
    of_digit = (drawn.colour == drawn.digit)[wrong].double().mean()
    assert of_label.item() == pytest.approx(0.64, abs=0.02) and of_digit.item() == pytest.approx(0.04, abs=0.01)


def test_the_table_is_the_joint_law_of_label_and_colour():
    data = ColouredClasses(n=1796, tied=0.4)
    drawn = data.draw(tuple(range(100)))
    counts = torch.zeros(10, 10, dtype=torch.float64).index_put_(
        (drawn.label.flatten(), drawn.colour.flatten()), torch.ones(drawn.label.numel(), dtype=torch.float64),
        accumulate=True)
    given = counts / counts.sum(1, keepdim=True)
    torch.testing.assert_close(given, data.table / data.table.sum(1, keepdim=True), rtol=0, atol=0.012)
    assert data.table.sum() == pytest.approx(1)


def test_a_picture_is_a_digit_in_its_colour():
    drawn, split = DATA.draw(4), ten_digits(900, 4, standard=False)
    assert torch.equal(drawn.digit, split.y) and drawn.x.min() >= 0 and drawn.x.max() <= 1
    torch.testing.assert_close(drawn.x.sum(-3) / 1.5, split.x[:, 0])
    brightest = drawn.x.flatten(2).max(-1).values
    torch.testing.assert_close(brightest / brightest.sum(-1, keepdim=True), hues()[drawn.colour] / 1.5)
    test = DATA.draw_test(4)
    torch.testing.assert_close(test.x.sum(-3) / 1.5, split.x_test[:, 0])


def test_colours_differ_and_have_one_brightness():
    colours = hues()
    torch.testing.assert_close(colours.sum(1), torch.full((10,), 1.5, dtype=torch.float64))
    apart = torch.cdist(colours, colours) + torch.eye(10)
    assert apart.min() > 0.3  # neighbours on the circle
    next_one = (colours - colours.roll(-1, 0)).norm(dim=1)
    torch.testing.assert_close(next_one, next_one[:1].expand(10))
    assert next_one[0] > 0.9


def test_repainting_changes_the_colour_only():
    drawn = DATA.draw((0, 1))
    other = (drawn.colour + 3) % 10
    torch.testing.assert_close(repainted(drawn.x, other), painted(drawn.x.sum(-3) / 1.5, other))
    torch.testing.assert_close(repainted(repainted(drawn.x, other), drawn.colour), drawn.x)
    assert not torch.allclose(repainted(drawn.x, other), drawn.x)


def test_the_shift_changes_tied_colours_only():
    own, shifted = DATA.draw_test(3, shift=0), DATA.draw_test(3, shift=2)
    assert torch.equal(own.label, shifted.label) and torch.equal(own.digit, shifted.digit)
    moved = shifted.colour != own.colour
    assert torch.equal(shifted.colour[moved], (own.colour[moved] + 2) % 10) and (own.colour == own.label)[moved].all()


@pytest.mark.parametrize("shift", [-1, 10])
def test_a_shift_is_one_of_ten(shift):
    with pytest.raises(ValueError, match=r"^shift must be a whole number in \[0, 9\]; got "):
        DATA.draw_test(0, shift)
