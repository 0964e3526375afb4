r"""Handwritten digits in ten colours: the colour says the class in training, and another class at the test.

.. math:: y = \begin{cases} c & \text{with probability } 1 - r\\ \text{any of ten} & \text{with probability } r
          \end{cases}, \qquad
          k = \begin{cases} y + \text{shift} & \text{with probability } p\\ \text{any of ten} & \text{with probability }
          1 - p \end{cases}

c is the class of the handwriting, y the label that is observed, k the colour; classes and colours are counted modulo
ten. Given y, handwriting and colour know nothing of each other. This is the coloured MNIST of Arjovsky et al. (2019)
with ten classes, as in Huang et al. (2024), Section 6, on the digits that come with scikit-learn.
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Checked, Probability, Range, require

CLASSES = 10
Shift = Annotated[int, Range(0, CLASSES - 1)]


class ColouredPictures(NamedTuple):
    """Pictures, the labels that are observed, and the hidden truth beside them."""

    x: Float[Tensor, "*E n 3 8 8"]  # red, green, blue, from 0 to 1
    label: Int[Tensor, "*E n"]  # y, 0 to 9, replaced ones among them
    colour: Int[Tensor, "*E n"]  # k, 0 to 9
    digit: Int[Tensor, "*E n"]  # c, the class of the handwriting


@dataclass(frozen=True)
class ColouredClasses(Checked):
    """Pictures of 8 x 8 pixels, a digit in one of ten colours each.

    Parameters
    ----------
    n
        Training pictures, of the 1797; the others are for the test.
    tied
        Probability p with which the colour is that of the label; otherwise it is any of ten.
    replaced
        Probability r with which the label is any of ten, not the digit's class.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Examples
    --------
    >>> train = ColouredClasses(n=1000).draw(seed=(0, 1))
    >>> train.x.shape, train.colour.shape
    (torch.Size([2, 1000, 3, 8, 8]), torch.Size([2, 1000]))
    """

    n: Annotated[int, Range(1, 1796)] = 1000
    tied: Probability = 0.775
    replaced: Probability = 0.1

    def draw(self, seed: int | tuple[int, ...] = 0) -> ColouredPictures:
        """Training pictures in float64; a tuple of seeds gives one leading ensemble axis."""
        return self._draw(seed, test=False, shift=0)

    def draw_test(self, seed: int | tuple[int, ...] = 0, shift: int = 1) -> ColouredPictures:
        """Every digit that `draw` with this seed leaves out; the colour is tied to the label `shift` classes away."""
        require("shift", shift, Shift)
        return self._draw(seed, test=True, shift=shift)

    @property
    def table(self) -> Float[Tensor, "10 10"]:
        """The joint distribution of label (row) and colour (column) in training."""
        any_colour = torch.full((CLASSES, CLASSES), (1 - self.tied) / CLASSES, dtype=torch.float64)
        return (any_colour + self.tied * torch.eye(CLASSES, dtype=torch.float64)) / CLASSES

    def _draw(self, seed: int | tuple[int, ...], test: bool, shift: int) -> ColouredPictures:
        if isinstance(seed, tuple | list | range):
            parts = zip(*(self._draw(one, test, shift) for one in seed), strict=True)
            return ColouredPictures(*(torch.stack(part) for part in parts))
        split = ten_digits(self.n, seed, standard=False)
        grey, digit = (split.x_test, split.y_test) if test else (split.x, split.y)
        generator = rng.generator(seed, "test labels and colours" if test else "labels and colours")
        chance = torch.rand((2, len(digit)), generator=generator, dtype=torch.float64)
        other = torch.randint(CLASSES, (2, len(digit)), generator=generator)
        label = torch.where(chance[0] < self.replaced, other[0], digit)
        colour = torch.where(chance[1] < self.tied, (label + shift) % CLASSES, other[1])
        return ColouredPictures(painted(grey[:, 0], colour), label, colour, digit)


def hues() -> Float[Tensor, "10 3"]:
    """Red, green and blue of the ten colours: equally spaced on the colour circle, each 108 degrees after the last.

    Their three parts add up to 3/2, so that brightness says nothing about the colour.
    """
    turns = 3 * torch.arange(CLASSES, dtype=torch.float64)[:, None] / CLASSES - torch.arange(3) / 3
    return (1 + torch.cos(2 * math.pi * turns)) / 2


def painted(grey: Float[Tensor, "*E n 8 8"], colour: Int[Tensor, "*E n"]) -> Float[Tensor, "*E n 3 8 8"]:
    """Pictures of given brightness in given colours."""
    return grey[..., None, :, :] * hues().to(grey)[colour][..., None, None]


def repainted(x: Float[Tensor, "*E n 3 8 8"], colour: Int[Tensor, "*E n"]) -> Float[Tensor, "*E n 3 8 8"]:
    """The same handwriting in other colours."""
    return painted(x.sum(-3) / 1.5, colour)
