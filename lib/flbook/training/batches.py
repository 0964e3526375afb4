"""Batches: the same problem, some of its samples a step."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural
from flbook.training.problem import Problem, WrappedProblem, of_step


@dataclass
class Batches(WrappedProblem, Checked):
    """A problem in batches: a pass over a fresh shuffle of its samples, then another; what a pass leaves is dropped.

    Outputs, loss and measures are those of all samples; ``at(step)`` is the problem of one batch, a function of
    (seed, step), the same places for every member of the ensemble. In weights or in coefficients alike.

    Attributes
    ----------
    problem
        The problem of all n samples.
    size
        Samples of a batch, from 1 to n.
    seed
        Of the shuffles.
    given
        Batches of one's own in their place: of each step the places among the n samples, shape ``(steps, size)``.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> batches = Batches(Training(TwoLayerCNN(d=100), sample.x, sample.observed), size=5, seed=0)
    >>> batches.at(0).x.shape, batches.x.shape
    (torch.Size([5, 2, 100]), torch.Size([20, 2, 100]))
    """

    problem: Problem
    size: Count = 100
    seed: Natural = 0
    given: Tensor | None = None

    def __post_init__(self):
        super().__post_init__()
        self.n = self.problem.observed.shape[-1]
        if self.size > self.n:
            raise ValueError(f"size must lie between 1 and n = {self.n}, samples of a batch; got {self.size}")
        if self.given is not None:
            check_places(self.given, self.size, self.n)
        self._shuffler, self._passes = rng.generator(self.seed, "batches"), []

    def places(self, step: int) -> Tensor:
        """Which samples the batch of a step takes.

        Parameters
        ----------
        step
            Number of the step, counted from 0.

        Returns
        -------
        Tensor
            Places among the n samples, shape ``(size,)``.
        """
        if self.given is not None:
            return of_step("given", self.given, step).to(self.problem.observed.device)
        number, within = divmod(step, self.n // self.size)
        while len(self._passes) <= number:  # shuffles come out of one stream in order; each is drawn once and kept
            self._passes.append(torch.randperm(self.n, generator=self._shuffler).to(self.problem.observed.device))
        return self._passes[number][within * self.size : (within + 1) * self.size]

    def at(self, step: int) -> Problem:
        """The problem of this step's batch.

        Parameters
        ----------
        step
            Number of the step, counted from 0.

        Returns
        -------
        Problem
            A problem whose loss is that of `size` samples.
        """
        return self.problem.batch(self.places(step))

    def linear(self) -> "Batches":
        """The problem's rival without an activation, in the same batches.

        Returns
        -------
        Batches
            Batches of the same size and seed.
        """
        return replace(self, problem=self.problem.linear())

    def lazy(self) -> "Batches":
        """The problem's lazy rival, in the same batches.

        Returns
        -------
        Batches
            Batches of the same size and seed.
        """
        return replace(self, problem=self.problem.lazy())

    def frozen(self) -> "Batches":
        """The problem's frozen rival, in the same batches.

        Returns
        -------
        Batches
            Batches of the same size and seed.
        """
        return replace(self, problem=self.problem.frozen())


def check_places(given: Tensor, size: int, n: int) -> None:
    """Refuse given batches that are not places among the samples.

    Parameters
    ----------
    given
        Places, shape ``(steps, size)``.
    size, n
        Samples of a batch, and of all.

    Raises
    ------
    ValueError
        If they have another shape, or are no whole numbers from 0 to n - 1.
    """
    if given.ndim != 2 or given.shape[-1] != size:
        raise ValueError(f"given must have the shape (steps, {size}), the places of each step's batch; got "
                         f"{tuple(given.shape)}")
    if given.is_floating_point() or bool(((given < 0) | (given >= n)).any()):
        raise ValueError(f"given must hold places, whole numbers from 0 to {n - 1}; got {given.dtype} from "
                         f"{given.min().item():g} to {given.max().item():g}")
