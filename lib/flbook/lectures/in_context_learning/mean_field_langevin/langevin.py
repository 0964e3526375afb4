r"""Mean-field Langevin dynamics: neurons follow the gradient of what all of them predict, with noise in every step.

For the objective :math:`\mathcal{L}(\mu) = F(\mu) + \lambda\,\mathrm{Ent}(\mu)` over distributions of neurons,

.. math:: F(\mu) = \frac1n\sum_i \ell(f_\mu(x_i), y_i) + \frac{\lambda'}2 E_\mu\|\theta\|^2, \qquad
          \mathrm{Ent}(\mu) = E_\mu \log\mu,

N particles take Euler steps of the diffusion whose law descends it.

Source: Nitanda, Wu and Suzuki (2022); Chizat (2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import rng
from flbook.shapes import per_member
from flbook.training.problem import Params, Problem

BLOCK = 32  # steps whose noise is drawn at once


class Noise:
    """Standard normal noise step by step; each seed has a stream of its own, so an ensemble's members do not mix."""

    def __init__(
        self, shape: Sequence[int], seeds: Sequence[int], like: Tensor, spread: Tensor, given: Tensor | None
    ):
        """shape: of one step's noise, the axis of the seeds first; blocks of steps are drawn together on the CPU.

        spread: what a step multiplies its noise with, on the device.
        given: the noise of the first steps, in place of drawn noise; or None.
        """
        self.shape, self.like, self.spread = tuple(shape), like, spread
        self.generators = [rng.generator(seed, "Langevin noise") for seed in seeds]
        self.block = [] if given is None else list(given.to(like).unbind(0))[::-1]

    def next(self) -> Tensor:
        """The noise of the next step."""
        if not self.block:
            size, kind = (BLOCK, *self.shape[1:]), self.like.dtype
            drawn = [torch.randn(size, generator=one, dtype=kind) for one in self.generators]
            self.block = list(torch.stack(drawn, 1).to(self.like.device).unbind(0))[::-1]
        return self.block.pop()


@dataclass(frozen=True)
class Langevin:
    r"""One Euler step of the mean-field Langevin dynamics for every neuron.

    .. math:: \theta_j \leftarrow \theta_j - \eta\big(N\nabla_{\theta_j} L(\theta) + \lambda'\theta_j\big)
              + \sqrt{2\lambda\eta}\,\xi_j

    The factor N belongs there: the potential that a neuron feels is the first variation of F, and moving one of N
    particles moves the mean by 1/N only. With :math:`\lambda = 0` this is gradient descent with weight decay.

    An optimizer for `flbook.training.fit.fit` on networks of `Neurons`.
    """

    linear = False  # noise leaves every span
    decays = False

    lr: float  # the step eta, in the time of the flow
    lam: float | Tensor  # the temperature lambda, one number, or a tensor of the CPU that broadcasts to the ensemble
    decay: float  # lambda' of the L2 term
    seeds: tuple[int, ...] = (0,)  # a stream of noise each
    axis: int = 0  # the ensemble axis that numbers the seeds; axes before it share the noise, those after do not
    given: Tensor | None = None  # standard normal noise of the first steps, shape (steps, *E, N, p); then it is drawn

    def __post_init__(self):
        if not (self.lr > 0 and self.decay >= 0 and bool((torch.as_tensor(self.lam) >= 0).all())):
            raise ValueError(f"lr must be positive, lam and decay not negative; got lr={self.lr}, lam={self.lam}, "
                             f"decay={self.decay}")

    def check(self, problem: Problem) -> None:
        """There is no problem that it could not take."""

    def start(self, params: Params) -> Noise:
        """The streams of noise."""
        theta = params["theta"]
        shape = theta.shape[self.axis :]
        members = (shape if len(shape) > 2 else (1, *shape))[0]
        if members != len(self.seeds):
            raise ValueError(f"seeds must name one stream for each of the {members} members along axis {self.axis} of "
                             f"the ensemble; got {len(self.seeds)}")
        heat = 2 * self.lr * torch.as_tensor(self.lam, dtype=theta.dtype)
        spread = per_member(heat.sqrt().to(theta.device), theta)
        whole = (members, *shape[-2:]) if len(shape) <= 2 else shape
        return Noise(whole, self.seeds, theta, spread, self.given)

    def step(self, problem: Problem, params: Params, state: Noise) -> tuple[Params, Noise]:
        """One step."""
        theta = params["theta"]
        force = theta.shape[-2] * problem.gradient(params)["theta"] + self.decay * theta
        noise = state.spread * state.next().reshape(theta.shape[self.axis :])
        return {"theta": theta - self.lr * force + noise}, state
