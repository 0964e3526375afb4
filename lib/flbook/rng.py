"""Randomness: a draw depends on (seed, role) only.

So the same noise serves every signal strength of a phase diagram, a cell keeps its value when the grid around it
changes, and a GPU sees what the CPU drew. (Only endless streams, the prompts of a pretraining, are drawn where they are
used.) ``FLBOOK_SEED``, when set, is hashed into every seed: the whole book can be run again on numbers that nobody has
looked at.
"""

import hashlib
import os

import numpy as np

from flbook.domains import Natural, require


def fresh_seed() -> str:
    """``FLBOOK_SEED``, or "" where it is not set. Raises ValueError if it is no whole number of at least 0.

    Returns
    -------
    str
        The variable's text.
    """
    text = os.environ.get("FLBOOK_SEED", "")
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"FLBOOK_SEED must be a whole number of at least 0, or not set; got {text!r}")
    return text


def entropy(seed: int, role: str) -> int:
    """63 bits that depend on the seed, the role and ``FLBOOK_SEED``. Raises ValueError as `over_seeds` does.

    Parameters
    ----------
    seed
        A whole number of at least 0.
    role
        Name of what is drawn.

    Returns
    -------
    int
        A number of at least 0.
    """
    text = f"{fresh_seed()}|{_whole(seed)}|{role}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, role: str, device="cpu"):
    """A torch generator for one role.

    Parameters
    ----------
    seed
        A whole number.
    role
        What is drawn, such as ``"noise"`` or ``"weights"``.
    device
        Where it draws. A GPU's numbers are as good as the CPU's, and others.

    Returns
    -------
    torch.Generator
        A generator in its first state.

    Examples
    --------
    >>> import torch
    >>> one, same = (torch.rand(3, generator=generator(0, "noise")) for _ in range(2))
    >>> torch.equal(one, same)
    True
    """
    import torch

    return torch.Generator(device).manual_seed(entropy(seed, role))


def numpy_generator(seed: int, role: str) -> np.random.Generator:
    """The same for draws that numpy or scipy make.

    Parameters
    ----------
    seed
        A whole number of at least 0.
    role
        Name of what is drawn.

    Returns
    -------
    Generator
        A generator in its first state.
    """
    return np.random.default_rng(entropy(seed, role))


def over_seeds(draw, seed):
    """``draw(seed)`` for one seed; for a tuple (list, range) of seeds the draws stacked along a new first axis.

    Parameters
    ----------
    draw
        A function of one seed that returns a tensor.
    seed
        A whole number of at least 0, or a tuple, list or range of them.

    Returns
    -------
    Tensor
        Draws, shape ``(*seeds, ...)``.

    Raises
    ------
    ValueError
        If a seed is no whole number of at least 0.
    """
    import torch

    if isinstance(seed, tuple | list | range):
        return torch.stack([draw(_whole(one)) for one in seed])
    return draw(_whole(seed))


def normal(shape: tuple[int, ...], seed: int | tuple[int, ...], role: str, device="cpu", dtype=None):
    """Standard normal numbers.

    Parameters
    ----------
    shape
        Of the draw of one seed.
    seed
        A whole number, or a tuple of them.
    role
        What is drawn.
    device
        Where they are drawn, see `generator`.
    dtype
        float64 unless said otherwise.

    Returns
    -------
    Tensor
        Shape ``(*seeds, *shape)``: one leading axis if `seed` is a tuple.

    Examples
    --------
    >>> normal((4, 2), (0, 1, 2), "noise").shape
    torch.Size([3, 4, 2])
    """
    import torch

    like = {"dtype": dtype or torch.float64, "device": device}
    return over_seeds(lambda one: torch.randn(shape, generator=generator(one, role, device), **like), seed)


def _whole(seed) -> int:
    """A seed as a plain integer; anything else is refused."""
    require("seed", seed, Natural)
    return int(seed)
