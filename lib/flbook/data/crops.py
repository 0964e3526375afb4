r"""Pictures of two classes that every machine has: crops of scikit-learn's two photographs, or its digits.

A crop is 16 x 16 pixels of the Chinese temple (+1) or of the flower (-1), at a random place. Training crops lie in the
columns 0 to 351, held-out ones in 352 to 431, test crops in 432 to 639: no pixel is shared. Every crop is standardised,

.. math:: x = \frac{c - \bar c}{\mathrm{sd}(c) + 0.02},

with the mean and the standard deviation of this crop alone, so neither brightness nor contrast can tell the class; a
grey crop is the mean of the colours before that. Digits: those below five (+1) against the others (-1), 8 x 8 pixels.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.images import cifar10
from flbook.data.signal_noise import flipped_labels
from flbook.data.ten_digits import pictures
from flbook.domains import Checked, Count, FlipProbability, Range

Kind = Literal["colour crops", "grey crops", "digits", "CIFAR-10"]
KINDS: tuple[str, ...] = get_args(Kind)
EDGE = 16
COLUMNS = {"train": (0, 352), "held out": (352, 432), "test": (432, 640)}


class CropSample(NamedTuple):
    """Pictures and their labels."""

    x: Float[Tensor, "*E n c h w"]  # pictures: channels, rows, columns
    observed: Float[Tensor, "*E n"]  # labels that training sees
    y: Float[Tensor, "*E n"]  # true labels


@dataclass(frozen=True)
class TwoClassPictures(Checked):
    """Pictures of two classes, as many of either, of which exactly round(p n) are observed with the wrong label.

    Attributes
    ----------
    kind
        "colour crops", "grey crops", "digits", or "CIFAR-10" (cats against dogs, downloaded on first use).
    n
        Training pictures.
    flip_prob
        Share p of flipped labels.
    held_out, fresh
        Pictures to choose hyperparameters and the stopping time on, and pictures to test on.
    """

    kind: Kind = "colour crops"
    n: Annotated[int, Range(2, 4000)] = 200
    flip_prob: FlipProbability = 0.2
    held_out: Count = 300
    fresh: Count = 600

    def __post_init__(self):
        super().__post_init__()
        if self.kind == "digits" and self.n + self.held_out + self.fresh > 1797:
            raise ValueError(f"n + held_out + fresh must be at most 1797, the digits that there are; got "
                             f"{self.n + self.held_out + self.fresh}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of a picture.

        Returns
        -------
        tuple[int, int, int]
            Three whole numbers.
        """
        return {"colour crops": (3, EDGE, EDGE), "grey crops": (1, EDGE, EDGE), "digits": (1, 8, 8),
                "CIFAR-10": (3, 32, 32)}[self.kind]  # fmt: skip

    def draw(self, seed: int | tuple[int, ...] = 0) -> CropSample:
        """The training sample; classes take turns, and the first round(p n) samples are flipped.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        CropSample
            The n pictures, ``x`` of shape ``(*E, n, c, h, w)``.
        """
        y, observed = flipped_labels(self.n, self.flip_prob, seed)
        return CropSample(self._pictures("train", self.n, seed), observed, y)

    def draw_held_out(self, seed: int | tuple[int, ...] = 0) -> CropSample:
        """Pictures with true labels that are neither trained nor tested on.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        CropSample
            As many as `held_out`.
        """
        return self._unseen("held out", self.held_out, seed)

    def draw_test(self, seed: int | tuple[int, ...] = 0) -> CropSample:
        """Fresh pictures with true labels.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        CropSample
            As many as `fresh`.
        """
        return self._unseen("test", self.fresh, seed)

    def _unseen(self, role: str, count: int, seed: int | tuple[int, ...]) -> CropSample:
        y = flipped_labels(count, 0.0, seed)[0]
        return CropSample(self._pictures(role, count, seed), y, y)

    def _pictures(self, role: str, count: int, seed: int | tuple[int, ...]) -> Tensor:
        """Pictures of both classes in turn."""
        if self.kind in ("digits", "CIFAR-10"):
            return rng.over_seeds(lambda one: self._stored(role, count, one), seed)
        x = rng.over_seeds(lambda one: crops(role, count, one), seed)
        return standardised(x.mean(-3, keepdim=True) if self.kind == "grey crops" else x)

    def _stored(self, role: str, count: int, seed: int) -> Tensor:
        """Pictures of a stored set: its classes are shuffled by the seed, and each role takes its own part of them."""
        first = {"train": 0, "held out": self.n, "test": self.n + self.held_out}[role]
        if self.kind == "CIFAR-10" and role == "test":
            first = 0
        sides = stored(self.kind, self.kind == "CIFAR-10" and role == "test")
        generator = rng.generator(seed, "pictures")
        orders = [torch.randperm(len(side), generator=generator) for side in sides]
        places = range(first, first + count)
        return torch.stack([sides[i % 2][orders[i % 2][i // 2]] for i in places]).double()


@lru_cache
def photographs() -> Float[Tensor, "2 3 rows columns"]:
    """Scikit-learn's two sample photographs, brightness from 0 to 1: the temple, the flower.

    Returns
    -------
    Tensor
        Shape ``(2, 3, 427, 640)``, in float64.
    """
    from sklearn.datasets import load_sample_images

    return torch.stack([torch.tensor(one).permute(2, 0, 1).double() / 255 for one in load_sample_images().images])


def crops(role: str, count: int, seed: int) -> Float[Tensor, "count 3 16 16"]:
    """Crops of the temple and of the flower in turn, at random places of this role's columns.

    Parameters
    ----------
    role
        "train", "held out" or "test".
    count
        Number of crops.
    seed
        Of the places.

    Returns
    -------
    Tensor
        Shape ``(count, 3, 16, 16)``.
    """
    whole, (left, right) = photographs(), COLUMNS[role]
    generator = rng.generator(seed, f"crops, {role}")
    rows = torch.randint(whole.shape[-2] - EDGE + 1, (count,), generator=generator).tolist()
    columns = torch.randint(left, right - EDGE + 1, (count,), generator=generator).tolist()
    return torch.stack([whole[i % 2, :, r : r + EDGE, c : c + EDGE]
                        for i, (r, c) in enumerate(zip(rows, columns, strict=True))])


def standardised(x: Float[Tensor, "*E n c h w"]) -> Float[Tensor, "*E n c h w"]:
    """Each picture less its mean, over its standard deviation and a fiftieth of the brightness range.

    Parameters
    ----------
    x
        Pictures, shape ``(*E, n, c, h, w)``.

    Returns
    -------
    Tensor
        Of the same shape.
    """
    axes = (-3, -2, -1)
    return (x - x.mean(axes, keepdim=True)) / (x.std(axes, keepdim=True, correction=0) + 0.02)


@lru_cache
def stored(kind: str, test: bool = False) -> tuple[Tensor, Tensor]:
    """The pictures of either class of a stored set, standardised as a whole.

    Parameters
    ----------
    kind
        "digits" or "CIFAR-10".
    test
        Of CIFAR-10, the test set?

    Returns
    -------
    tuple[Tensor, Tensor]
        Pictures of the class +1 and of the class -1, shapes ``(N, c, h, w)``.
    """
    if kind == "digits":
        x, digit = pictures()
        x, first = (x - x.mean()) / x.std(correction=0), digit < 5
    else:
        found = cifar10(("cat", "dog"), train=not test)
        x, first = (found.pixels.float() - 0.47) / 0.25, found.y > 0
    return x[first], x[~first]
