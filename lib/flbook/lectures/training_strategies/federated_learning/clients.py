"""Federated averaging: clients take steps of their own, and every so often go on from the mean of their weights."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from flbook.domains import Checked, Count, NonNegative
from flbook.training.problem import Params, Problem, Rule


@dataclass(frozen=True)
class FederatedAveraging(Checked):
    r"""FedAvg: every E steps each client's parameters become the mean :math:`\sum_k s_k w_k` over all clients.

    The last ensemble axis numbers the clients; each trains on the loss of its own samples, by a rule whose memory stays
    with it. With E = 1, gradient descent and shares :math:`s_k = n_k / n` this is gradient descent on the pooled data.

    Parameters
    ----------
    rule
        Of the local steps.
    every
        E, local steps between two averages.
    shares
        :math:`s_k`, one a client, which sum to 1; None is the plain mean.

    Raises
    ------
    ValueError
        If `rule` is no optimizer, there is no client, or shares are not those of the clients.

    Source: McMahan et al. (2017), Algorithm 1, with every client in every round.

    Examples
    --------
    >>> from flbook import GradientDescent, SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1, 2))  # three clients with data of their own
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(5, 5, 5)), sample.x, sample.observed)
    >>> params = fit(problem, FederatedAveraging(GradientDescent(0.1), every=5), 10).params
    >>> bool((params["w"] == params["w"][0]).all())
    True
    """

    rule: Any
    every: Count = 1
    shares: tuple[NonNegative, ...] | None = None

    def __post_init__(self):
        if not isinstance(self.rule, Rule):
            raise ValueError(f"rule must be an optimizer; got {self.rule!r}")
        super().__post_init__()
        if self.shares is not None and abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares of the clients must sum to 1; got {sum(self.shares):g}")

    @property
    def linear(self) -> bool:
        """As the rule is: a mean stays in the span of all clients' gradients."""
        return self.rule.linear

    @property
    def decays(self) -> bool:
        """As the rule does."""
        return self.rule.decays

    def check(self, problem: Problem) -> None:
        """Refuse a problem without clients, and what the rule refuses."""
        clients = problem.ensemble[-1:]
        if not clients or 0 in clients:
            raise ValueError("the last ensemble axis must number the clients; the problem has none")
        if self.shares is not None and len(self.shares) != clients[0]:
            raise ValueError(f"shares must name one number for each of the {clients[0]} clients; "
                             f"got {len(self.shares)}")
        self.rule.check(problem)

    def start(self, params: Params) -> tuple[int, Any, Tensor | None]:
        """No step taken, what each client remembers, and the shares, once, where the parameters are."""
        like, shares = next(iter(params.values())), self.shares
        there = None if shares is None else torch.tensor(shares, dtype=like.dtype, device=like.device)
        return 0, self.rule.start(params), there

    def step(self, problem: Problem, params: Params, state: tuple) -> tuple[Params, tuple]:
        """One local step of every client, and after every E-th their mean."""
        taken, memory, shares = state
        params, memory = self.rule.step(problem, params, memory)
        if (taken + 1) % self.every == 0:
            axis = len(problem.ensemble) - 1
            params = {name: _mean(p, axis, shares).expand_as(p).clone() for name, p in params.items()}
        return params, (taken + 1, memory, shares)


def _mean(p: Tensor, axis: int, shares: Tensor | None) -> Tensor:
    """Over the clients, the axis kept."""
    if shares is None:
        return p.mean(axis, keepdim=True)
    return (p * shares.reshape(-1, *[1] * (p.ndim - axis - 1))).sum(axis, keepdim=True)
