"""Batches: the same problem, some of its samples a step."""

from typing import Any

import torch
from torch import Tensor

from flbook import rng
from flbook.training.problem import Problem


class Batches:
    """A problem in batches: a pass over a fresh shuffle of its samples, then another; what a pass leaves is dropped.

    Outputs, loss and measures are those of all samples; ``at(step)`` is the problem of one batch, a function of
    (seed, step), the same places for every member of the ensemble. In weights or in coefficients alike.

    Raises ValueError if `size`, the samples of a batch, does not lie between 1 and n.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> batches = Batches(Training(TwoLayerCNN(d=100), sample.x, sample.observed), size=5, seed=0)
    >>> batches.at(0).x.shape, batches.x.shape
    (torch.Size([5, 2, 100]), torch.Size([20, 2, 100]))
    """

    def __init__(self, problem: Problem, size: int = 100, seed: int = 0):
        n = problem.observed.shape[-1]
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= n:
            raise ValueError(f"size must lie between 1 and n = {n}, samples of a batch; got {size!r}")
        self.problem, self.size, self.n = problem, size, n
        self._shuffler, self._passes = rng.generator(seed, "batches"), []

    def places(self, step: int) -> Tensor:
        """Which samples the batch of a step takes."""
        number, within = divmod(step, self.n // self.size)
        while len(self._passes) <= number:  # shuffles come out of one stream in order; each is drawn once and kept
            self._passes.append(torch.randperm(self.n, generator=self._shuffler).to(self.problem.observed.device))
        return self._passes[number][within * self.size : (within + 1) * self.size]

    def at(self, step: int) -> Problem:
        """The problem of this step's batch."""
        return self.problem.batch(self.places(step))

    def __getattr__(self, name: str) -> Any:
        """Everything else is asked of all samples."""
        if name == "problem":  # not there yet: while being copied, say
            raise AttributeError(name)
        return getattr(self.problem, name)
