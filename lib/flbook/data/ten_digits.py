"""Handwritten digits of all ten classes, split into training and test pictures."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng


class Split(NamedTuple):
    """Pictures and their classes, training and test apart."""

    x: Float[Tensor, "*E n 1 rows columns"]  # training pictures, one grey channel
    y: Int[Tensor, "*E n"]  # classes 0 to 9
    x_test: Float[Tensor, "*E t 1 rows columns"]
    y_test: Int[Tensor, "*E t"]


def ten_digits(n: int = 1000, seed: int | tuple[int, ...] = 0) -> Split:
    """The 1797 handwritten digits that come with scikit-learn, 8 x 8 pixels, float64: n to train on, the rest to test.

    All pixels are shifted and divided by one number each, such that the whole set has mean 0 and variance 1. Which
    pictures are for training is drawn at random; a tuple of seeds gives one leading ensemble axis.

    Source: Alpaydin and Kaynak (1998), the test set of the optical recognition data, as in scikit-learn's load_digits.
    """
    pixels, classes = _all()
    if not 1 <= n < len(classes):
        raise ValueError(f"n must lie between 1 and {len(classes) - 1}, so that some of {len(classes)} pictures are "
                         f"left to test on; got {n}")
    order = rng.over_seeds(lambda one: torch.randperm(len(classes), generator=rng.generator(one, "images")), seed)
    train, test = order.split((n, len(classes) - n), dim=-1)
    return Split(pixels[train], classes[train], pixels[test], classes[test])


@lru_cache
def _all() -> tuple[Tensor, Tensor]:
    """Every picture, shifted and scaled, and its class; nobody writes into them."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = torch.from_numpy(found.images)[:, None]
    return (pixels - pixels.mean()) / pixels.std(correction=0), torch.from_numpy(found.target).long()
