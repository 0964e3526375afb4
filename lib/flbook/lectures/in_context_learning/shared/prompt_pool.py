"""A fixed set of pretraining prompts: training meets them again and again, as in empirical risk minimisation."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from flbook import rng
from flbook.data.prompts import Prompts, map_tensors
from flbook.domains import Checked, Natural


@dataclass(frozen=True)
class PromptPool(Checked):
    """So many prompts for every seed, of which each step takes some, in single precision.

    Parameters
    ----------
    data
        Anything with ``draw(batch, seed, step, device, dtype)`` that returns `Prompts`, hashable.
    size
        Prompts of the pool; 0: fresh prompts at every step.

    Raises
    ------
    ValueError
        If the size is no whole number of at least 0.

    Examples
    --------
    >>> from flbook.data import LinearPrompts
    >>> PromptPool(LinearPrompts(n=4, d=2), size=10).draw(3, seed=(0, 1)).query.shape
    torch.Size([2, 3, 1, 2])
    """

    data: Any
    size: Natural

    def draw(self, batch: int, seed: tuple[int, ...], step: int = 0, device="cpu") -> Prompts:
        """The prompts of one step, (*seeds, batch, n, d); a pure function of (seed, step)."""
        if not self.size:
            return self.data.draw(batch, seed, 1 + step, device, torch.float32)
        places = rng.over_seeds(lambda one: torch.randint(
            self.size, (batch,), generator=rng.generator(one, f"prompts of the pool, step {step}")), tuple(seed))
        return taken(_whole(self, tuple(seed), str(device)), places.to(device))


def taken(prompts: Prompts, places: Tensor) -> Prompts:
    """The prompts at these places, (*seeds, batch)."""
    rows = torch.arange(len(places), device=places.device)[:, None]
    return map_tensors(prompts, lambda part: part[rows, places])


@lru_cache(maxsize=1)  # a training loop takes from one pool at every step
def _whole(pool: PromptPool, seed: tuple[int, ...], device: str) -> Prompts:
    return pool.data.draw(pool.size, seed, 0, device, torch.float32)
