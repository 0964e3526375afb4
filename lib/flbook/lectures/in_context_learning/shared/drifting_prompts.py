"""Linear prompts whose task moves while they are read."""

import math
from dataclasses import dataclass

import torch

from flbook import rng
from flbook.data.prompts import Prompts, check_batch
from flbook.domains import Checked, Count, NonNegative, Probability
from flbook.shapes import Context


@dataclass(frozen=True)
class DriftingPrompts(Checked):
    r"""Linear regression with a task that forgets itself.

    .. math:: y_l = \langle\beta_l, x_l\rangle + \varepsilon_l, \qquad
              \beta_{l+1} = \rho\beta_l + \sqrt{1 - \rho^2}\,\xi_l, \qquad x_l, \beta_1, \xi_l \sim N(0, I_d)

    The task is standard normal at every moment. The query comes after the last example and asks for
    :math:`\beta_{n+1}`. memory: :math:`\rho`; at 1 the task stays as in `flbook.data.prompts.LinearPrompts`.
    """

    n: Count = 100  # examples of a prompt
    d: Count = 4  # dimension
    memory: Probability = 0.95  # rho, the correlation of a task with the next
    noise: NonNegative = 0.0  # sigma_y
    queries: Count = 1  # queries on one context, all of them at the same moment

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0) -> Prompts:
        """One batch of prompts, a pure function of (seed, step); a tuple of seeds gives one leading axis."""
        check_batch(batch)

        def normal(what: str, *shape: int):
            return rng.normal((batch, *shape), seed, f"drifting prompts {what}, step {step}")

        x, moves = normal("inputs", self.n + self.queries, self.d), normal("moves", self.n + 1, self.d)
        task, tasks = moves[..., 0, :], []
        for move in moves[..., 1:, :].unbind(-2):
            tasks.append(task)
            task = self.memory * task + math.sqrt(1 - self.memory**2) * move
        y = torch.einsum("...nd,...nd->...n", x[..., : self.n, :], torch.stack(tasks, -2))
        if self.noise:
            y = y + self.noise * normal("noise", self.n)
        query = x[..., self.n :, :]
        return Prompts(Context(x[..., : self.n, :], y), query, torch.einsum("...d,...qd->...q", task, query), task)
