"""Pictures of two classes with some labels flipped: a training sample, and all the other pictures to test on."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.images import Images
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Checked, Count, FlipProbability


class PictureSample(NamedTuple):
    """Data of `FlippedImages`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n c h w"]  # pictures: channels, rows, columns
    observed: Float[Tensor, "*E n"]  # labels that training sees
    y: Float[Tensor, "*E n"]  # true labels


@dataclass(frozen=True, eq=False)
class FlippedImages(Checked):
    """Pictures of two classes, equally many of either, of which exactly round(p n) are observed with the wrong label.

    Each channel is shifted and scaled to mean 0 and variance 1 over all pictures of `images`.
    """

    images: Images
    n: Count = 200  # training samples
    flip_prob: FlipProbability = 0.2  # p

    def __post_init__(self):
        super().__post_init__()
        smallest = min(int((self.images.y == sign).sum()) for sign in (1, -1))
        most = 2 * smallest - 1
        if not 2 <= self.n <= most:
            raise ValueError(f"n must lie between 2 and {most}, since the smaller class has {smallest} pictures; got "
                             f"{self.n}")

    def draw(self, seed: int | tuple[int, ...] = 0) -> PictureSample:
        """A training sample in float64; classes take turns, and the first round(p n) samples are flipped."""
        y, observed = flipped_labels(self.n, self.flip_prob, seed)
        places = rng.over_seeds(lambda one: self._split(one)[0], seed)
        return PictureSample(self._standard(self.images.pixels)[places], observed, y)

    def draw_test(self, seed: int | tuple[int, ...] = 0) -> PictureSample:
        """Every picture that `draw` with this seed leaves out, with their true labels."""
        places = rng.over_seeds(lambda one: self._split(one)[1], seed)
        y = self.images.y[places]
        return PictureSample(self._standard(self.images.pixels)[places], y, y)

    def _split(self, seed: int) -> tuple[Tensor, Tensor]:
        generator = rng.generator(seed, "pictures")
        sides = [torch.nonzero(self.images.y == sign)[:, 0] for sign in (1, -1)]
        sides = [side[torch.randperm(len(side), generator=generator)] for side in sides]
        train = torch.stack([sides[i % 2][i // 2] for i in range(self.n)])
        return train, torch.cat([sides[0][(self.n + 1) // 2 :], sides[1][self.n // 2 :]])

    def _standard(self, pixels: Tensor) -> Float[Tensor, "N c h w"]:
        """Pictures with a channel axis, each channel standardised by the moments of `images`."""
        def coloured(pictures):
            return pictures[:, None] if pictures.ndim == 3 else pictures

        every = coloured(self.images.pixels)
        mean, std = every.mean((0, 2, 3), keepdim=True), every.std((0, 2, 3), keepdim=True)
        return (coloured(pixels) - mean) / std
