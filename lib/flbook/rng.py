"""Randomness: a draw depends on (seed, role) only.

So the same noise serves every signal strength of a phase diagram, a cell keeps its value when the grid around it
changes, and a GPU sees what the CPU drew. (Only endless streams, the prompts of a pretraining, are drawn where they are
used.) ``FLBOOK_SEED``, when set, is hashed into every seed: the whole book can be
run again on numbers that nobody has looked at.
"""

import hashlib
import os

import numpy as np


def entropy(seed: int, role: str) -> int:
    """64 bits that depend on the seed, the role and ``FLBOOK_SEED``."""
    text = f"{os.environ.get('FLBOOK_SEED', '')}|{int(seed)}|{role}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, role: str, device="cpu"):
    """A torch generator for one role, such as ``"noise"`` or ``"weights"``.

    device: where it draws. A GPU's numbers are as good as the CPU's, and others.
    """
    import torch

    return torch.Generator(device).manual_seed(entropy(seed, role))


def numpy_generator(seed: int, role: str) -> np.random.Generator:
    """The same for draws that numpy or scipy make."""
    return np.random.default_rng(entropy(seed, role))


def over_seeds(draw, seed):
    """``draw(seed)`` for one seed; for a tuple (list, range) of seeds the draws stacked along a new first axis."""
    import torch

    if isinstance(seed, tuple | list | range):
        return torch.stack([draw(int(one)) for one in seed])
    return draw(int(seed))


def normal(shape: tuple[int, ...], seed: int | tuple[int, ...], role: str, device="cpu", dtype=None):
    """Standard normal numbers, shape ``(*seeds, *shape)``: one leading axis if `seed` is a tuple.

    dtype: float64 unless said otherwise. device: where they are drawn, see `generator`.
    """
    import torch

    like = {"dtype": dtype or torch.float64, "device": device}
    return over_seeds(lambda one: torch.randn(shape, generator=generator(one, role, device), **like), seed)
