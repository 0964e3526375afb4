"""Handwritten digits of all ten classes, split into training and test pictures."""

from functools import lru_cache
from typing import Annotated, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Range, require


class Split(NamedTuple):
    """Pictures and their classes, training and test apart."""

    x: Float[Tensor, "*E n 1 rows columns"]  # training pictures, one grey channel
    y: Int[Tensor, "*E n"]  # classes 0 to 9
    x_test: Float[Tensor, "*E t 1 rows columns"]
    y_test: Int[Tensor, "*E t"]


def ten_digits(n: int = 1000, seed: int | tuple[int, ...] = 0, standard: bool = True) -> Split:
    """The 1797 handwritten digits that come with scikit-learn, 8 x 8 pixels, float64: n to train on, the rest to test.

    All pixels are shifted and divided by one number each, such that the whole set has mean 0 and variance 1; or, if not
    `standard`, a pixel is a brightness from 0 to 1.

    Parameters
    ----------
    n
        Training pictures, from 1 to 1796.
    seed
        Of which pictures are for training; a tuple of seeds gives one leading ensemble axis.
    standard
        Mean 0 and variance 1, or brightness?

    Returns
    -------
    Split
        Pictures of shapes ``(*E, n, 1, 8, 8)`` and ``(*E, 1797 - n, 1, 8, 8)``, and their classes.

    Raises
    ------
    ValueError
        If no picture is left to train or to test on.

    Source: Alpaydin and Kaynak (1998), the test set of the optical recognition data, as in scikit-learn's load_digits.

    Examples
    --------
    >>> split = ten_digits(n=1000)
    >>> split.x.shape, split.x_test.shape
    (torch.Size([1000, 1, 8, 8]), torch.Size([797, 1, 8, 8]))
    """
    pixels, classes = pictures()
    pixels = (pixels - pixels.mean()) / pixels.std(correction=0) if standard else pixels / 16
    require("n", n, Annotated[int, Range(1, len(classes) - 1)])
    order = rng.over_seeds(lambda one: torch.randperm(len(classes), generator=rng.generator(one, "images")), seed)
    train, test = order.split((n, len(classes) - n), dim=-1)
    return Split(pixels[train], classes[train], pixels[test], classes[test])


@lru_cache
def pictures() -> tuple[Tensor, Tensor]:
    """Every picture, pixels from 0 to 16, and its class; nobody writes into them.

    Returns
    -------
    tuple[Tensor, Tensor]
        Shapes ``(1797, 1, 8, 8)``, in float64, and ``(1797,)``, whole numbers.
    """
    from sklearn.datasets import load_digits
    from sklearn.utils import Bunch

    found = cast(Bunch, load_digits())
    pixels = torch.from_numpy(found.images)[:, None]
    return pixels, torch.from_numpy(found.target).long()
