r"""Task diversity: how many pretraining tasks does it take until a model treats every task as new?

Three models have three answers. The Bayes rule of a pool of M tasks looks a task up while M is small against the
exponential of the information in the prompt (`pool_information`). Transformers are measured (`pretraining_pools`).
Linear attention, fitted without a ridge, changes at M = d tasks, and has a peak of double descent at d^2 prompts, by Lu
et al. (2024): that is the experiment of this file, on fresh tasks, by exact minimisation. Its risks are mean squared
errors without a factor 1/2, and count the noise of the query's label, as the theory does; all others do not.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from flbook import devices
from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators import ridge
from flbook.lectures.in_context_learning.shared.attention_risk import attention_risk
from flbook.lectures.in_context_learning.shared.moments import Drawn, draw_moments
from flbook.lectures.in_context_learning.task_diversity.pool_risk import icl_risk
from flbook.runs import Experiment, Grid, axis

RIDGELESS = 1e-10  # the ridge of what is called ridgeless, in units of the features' mean square
SMALLEST = 1e-200  # that a mean square counts as: a ridge is above 0


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the sweep depends on; tuples are the axes.

    In the book: the number of tasks, at two prompts for each pair of coordinates.
    """

    d: tuple[Count, ...] = axis([20], "dimension d")
    kappa: tuple[Positive, ...] = axis([0.25, 0.5, 1.0, 2.0, 5.0], "tasks over dimension κ")
    tau: tuple[Positive, ...] = axis([2.0], "prompts over dimension squared τ")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    alpha: Positive = 4.0  # examples of a prompt over d
    rho: NonNegative = 0.1  # variance of the label noise

    def check(self) -> None:
        """Refuse empty pools, and the pole at which the risk is infinite."""
        for kappa in self.kappa:
            if round(kappa * min(self.d)) < 1:
                raise ValueError(f"kappa must leave at least one task; got {kappa} at d = {min(self.d)}")
        if 1 in self.tau:
            raise ValueError("tau must differ from 1, where the risk is infinite")


experiment = Experiment(
    Setting, version=1, loops=("d", "kappa", "tau", "seed"), chunk={"kappa": 1, "tau": 1}, stored="longer",
    gives={
        "risk": ("risk on fresh tasks", "1"),
        "limit": ("risk, all sizes large", "1", ("d", "kappa", "tau")),
    },
    presets={
        "tiny": ("Five dimensions, fewer tasks than that and more, fewer prompts than entries and more", dict(
            d=(5,), kappa=(0.5, 2.0), tau=(0.5, 3.0), seed=(0, 1, 2))),
        "descent": ("Number of prompts, at five tasks a dimension", dict(
            kappa=(5.0,), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0))),
        "longer": ("Prompts and tasks at the dimension where the theory should hold", dict(
            d=(40,), kappa=(0.5, 5.0), tau=(0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, float]:
    """Fit by least squares of least norm: the exact risk on fresh tasks, and the theory."""
    examples, where = round(s.alpha * s.d), devices.device(device)
    gamma = fitted(s.d, examples, round(s.kappa * s.d), round(s.tau * s.d * s.d), s.rho, s.seed, where)
    return {"risk": exact_risk(gamma, examples, s.rho), "limit": icl_risk(s.tau, s.alpha, s.kappa, s.rho)}


run = experiment.run


def features(drawn: Drawn, query: torch.Tensor) -> torch.Tensor:
    r"""What the entries of Gamma are multiplied with, one row of d (d + 1) numbers a prompt.

    .. math:: x_q \otimes \Big[\frac d\ell\sum_i y_i x_i,\ \frac1\ell\sum_i y_i^2\Big]
    """
    d = drawn.task.shape[-2]
    last = drawn.moments[..., -1, :]
    summary = torch.cat([d * last[..., :d, :], last[..., d:, :]], -2)
    return torch.einsum("...bd,...eb->...bde", query, summary).flatten(-2)


def exact_risk(gamma: np.ndarray, examples: int, rho: float) -> float:
    r"""Risk of a fitted d x (d + 1) matrix on fresh Gaussian tasks, query noise included: no test data.

    The column that meets :math:`\frac1\ell\sum y^2` is uncorrelated with all else, and adds its own length.
    """
    d = len(gamma)
    linear = attention_risk(d * gamma[:, :d].T, examples, np.eye(d) / d, rho**0.5)
    square = (1 + 2 / examples) * ((1 + rho) ** 2 + 2 / d)
    return linear + float((gamma[:, d] ** 2).sum()) / d * square + rho


def fitted(d: int, examples: int, tasks: int, prompts: int, rho: float, seed: int, device) -> np.ndarray:
    """The matrix of least norm that minimises the squared error over the prompts of a pretraining set."""
    law = LinearPrompts(n=examples, d=d, noise=rho**0.5, covariance=(1 / d,) * d, pool=TaskPool(tasks, seed))
    drawn = Drawn(*(part.to(device) for part in draw_moments(law, prompts, seed)))
    query = replace(law, n=1).draw(prompts, seed, -1, device)  # fresh inputs; the task is that of the moments
    labels = torch.einsum("bd,db->b", query.query[:, 0], drawn.task) + query.observed[:, 0] - query.target[:, 0]
    rows = features(drawn, query.query[:, 0])
    scale = max(float(rows.square().mean()), SMALLEST) * rows.shape[-1]
    return ridge(rows, labels, RIDGELESS * scale).reshape(d, d + 1).cpu().numpy()
