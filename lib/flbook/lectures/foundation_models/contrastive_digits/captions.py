"""Captions: the label of a picture in one-hot words, with or without the colour."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import CLASSES


def caption(label: Int[Tensor, "*E n"], colour: Int[Tensor, "*E n"], colours: bool) -> Float[Tensor, "*E n words"]:
    """The ten words of the class, and behind them, if `colours`, the ten of the colour."""
    words = [torch.nn.functional.one_hot(one, CLASSES) for one in ((label, colour) if colours else (label,))]
    return torch.cat(words, -1).float()


def every_caption(colours: bool) -> Float[Tensor, "captions words"]:
    """All ten, or all hundred: caption k speaks of class k, or of class k // 10 in the colour k % 10."""
    label = torch.arange(CLASSES)
    if not colours:
        return caption(label, label, False)
    return caption(label.repeat_interleave(CLASSES), label.repeat(CLASSES), True)
