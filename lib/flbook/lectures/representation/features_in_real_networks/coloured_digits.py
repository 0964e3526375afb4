"""Three handwritten digits in one picture, one a colour channel; only the red one has a say in the label."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Checked, Count

COLOURS = ("red", "green", "blue")


class Coloured(NamedTuple):
    """Pictures, and the hidden truth that only their red channel has to do with the label."""

    x: Float[Tensor, "*E n 3 8 8"]  # pictures, channels red, green, blue
    y: Int[Tensor, "*E n"]  # class of the red digit, 0 to 9
    digits: Int[Tensor, "*E n 3"]  # classes of all three


@dataclass(frozen=True)
class ColouredDigits(Checked):
    """Pictures of 8 x 8 pixels with an independent digit in each colour channel; the label is the red one's class.

    Digits of training pictures are drawn from 1000 of the 1797 images that come with scikit-learn, those of test
    pictures from the other 797. So a test picture shows nobody's handwriting that training saw. What a network has to
    find, and what it may then forget, is known: 64 of 192 pixels decide.
    """

    n: Count = 400  # training pictures
    images: Count = 1000  # digits that training pictures are put together from

    def draw(self, seed: int | tuple[int, ...] = 0) -> Coloured:
        """Training pictures in float64; a tuple of seeds gives one leading ensemble axis."""
        return self._draw(self.n, seed, unseen=False)

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> Coloured:
        """Pictures put together from digits that `draw` with this seed leaves out."""
        return self._draw(points, seed, unseen=True)

    def _draw(self, count: int, seed: int | tuple[int, ...], unseen: bool) -> Coloured:
        if isinstance(seed, tuple | list | range):
            parts = zip(*(self._draw(count, one, unseen) for one in seed), strict=True)
            return Coloured(*(torch.stack(part) for part in parts))
        split = ten_digits(self.images, seed)
        pixels, classes = (split.x_test, split.y_test) if unseen else (split.x, split.y)
        generator = rng.generator(seed, "test colours" if unseen else "colours")
        chosen = torch.randint(len(classes), (count, 3), generator=generator)
        return Coloured(pixels[chosen][:, :, 0], classes[chosen[:, 0]], classes[chosen])
