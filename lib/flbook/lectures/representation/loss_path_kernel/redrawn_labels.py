"""Images whose labels are partly redrawn at random: what is left to learn shrinks, what is left to memorise grows."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data import ten_digits
from flbook.data.images import Images
from flbook.domains import Checked, Count


class Redrawn(NamedTuple):
    """Flattened images; their labels carry an axis of portions, since all portions share the images."""

    x: Float[Tensor, "*E n d"]
    y: Float[Tensor, "portions *E n"]  # with that portion of them redrawn
    clean: Float[Tensor, "*E n"]


def even_or_odd() -> Images:
    """The 1797 handwritten digits that come with scikit-learn, 8 x 8 pixels: +1 for even ones, -1 for odd ones."""
    pixels, digit = ten_digits.pictures()
    return Images(pixels[:, 0].double() / 16, 1.0 - 2.0 * (digit % 2).double())


@dataclass(frozen=True, eq=False)
class RedrawnLabels(Checked):
    """A training sample of n images, and all others to test on; a portion of the labels of both is drawn anew.

    A redrawn label is +1 or -1 with equal chances, so half of them stay right. A larger portion redraws the same labels
    and more. Images are flattened, the mean image is taken away, and their mean square length is the dimension d.

    Source: Zhang et al. (2017); Chen et al. (2023), Section 6.
    """

    images: Images
    n: Count = 60

    def __post_init__(self):
        super().__post_init__()
        if self.n >= len(self.images.y):
            raise ValueError(f"n must be at most {len(self.images.y) - 1}, so that an image is left to test on; "
                             f"got {self.n}")

    @property
    def d(self) -> int:
        """Brightness values of an image."""
        return math.prod(self.images.pixels.shape[1:])

    @cached_property
    def x(self) -> Float[Tensor, "N d"]:
        """All images, centred and scaled, in float64."""
        centred = self.images.pixels.double().flatten(1)
        centred = centred - centred.mean(0)
        return centred * (self.d / centred.square().sum(-1).mean()).sqrt()

    def picture(self, x: Float[Tensor, "*E d"]) -> Float[Tensor, "*E rows columns"]:
        """Brightness values of images that `x` holds centred and scaled, in the shape of a picture."""
        pixels = self.images.pixels.double().flatten(1)
        size = (self.d / (pixels - pixels.mean(0)).square().sum(-1).mean()).sqrt()
        return (x / size + pixels.mean(0)).unflatten(-1, self.images.pixels.shape[1:])

    def draw(self, portions: tuple[float, ...], seed: int | tuple[int, ...] = 0) -> Redrawn:
        """A training sample; a tuple of seeds gives one ensemble axis behind the portions."""
        return self._draw(portions, seed, unseen=False)

    def draw_test(self, portions: tuple[float, ...], seed: int | tuple[int, ...] = 0) -> Redrawn:
        """Every image that `draw` leaves out, its labels redrawn with the same portion."""
        return self._draw(portions, seed, unseen=True)

    def _draw(self, portions: tuple[float, ...], seed: int | tuple[int, ...], unseen: bool) -> Redrawn:
        if not all(0 <= q <= 1 for q in portions):
            raise ValueError(f"portions must lie in [0, 1]; got {tuple(portions)}")
        if isinstance(seed, tuple | list | range):
            parts = zip(*(self._draw(portions, int(one), unseen) for one in seed), strict=True)
            x, y, clean = (torch.stack(part) for part in parts)
            return Redrawn(x, y.movedim(1, 0), clean)
        order = torch.randperm(len(self.x), generator=rng.generator(seed, "images"))
        places = order[self.n :] if unseen else order[: self.n]
        clean = self.images.y[places].double()
        coins = rng.normal((len(places),), seed, "test labels" if unseen else "labels").sign()
        rank = torch.arange(len(places))  # the order is random, so its first ones are a random part
        y = torch.stack([torch.where(rank < round(q * len(places)), coins, clean) for q in portions])
        return Redrawn(self.x[places], y, clean)
