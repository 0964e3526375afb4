"""Gradient descent that stops: every member of an ensemble is kept at the step at which its margin reaches a level."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook.lectures.benign_overfitting.leaky_relu.single_patch import Params, SinglePatchTraining

_REFRESH = 64  # steps after which pre-activations are computed afresh, so that rounding does not add up


class Stop(NamedTuple):
    """Where the members of an ensemble stand when their smallest margin first reaches a level."""

    step: Int[Tensor, "*E"]  # -1 if the limit came first
    params: Params  # at that step, or at the limit


class _Descent:
    """The members that are still moving: coefficients and pre-activations, kept sample by sample, shape (E, n, k)."""

    def __init__(self, problem: SinglePatchTraining, lr: Float[Tensor, " E"]):
        self.whole, self.problem, self.lr = problem, problem.select(torch.arange(len(lr), device=lr.device)), lr
        self.place = torch.arange(len(lr), device=lr.device)
        self.c = self.problem.start()["x"].mT.contiguous()
        self.refresh()

    def refresh(self) -> None:
        """Pre-activations from the coefficients."""
        self.z = self.problem.preactivations({"x": self.c.mT}).mT.contiguous()
        self.look()

    def look(self) -> None:
        """Outputs, and the smallest margin of each member."""
        self.f = self.problem.respond_all(self.z.mT)
        self.margin = (self.problem.observed * self.f).amin(-1)

    def keep(self, stay: Tensor) -> None:
        """Let the other members leave."""
        self.place, self.c, self.lr = self.place[stay], self.c[stay], self.lr[stay]
        self.problem = self.whole.select(self.place)
        self.refresh()

    def step(self) -> None:
        """One step. Under the hinge loss few samples have a slope, and only their rows of the coefficients move."""
        slope_of_loss = self.problem.loss.slope(self.f, self.problem.observed) * (self.lr / self.f.shape[-1])[:, None]
        active = int((slope_of_loss != 0).sum(-1).max())
        where = slope_of_loss.abs().topk(active, dim=-1).indices  # (E, active), padded with samples of slope zero
        members, n, k = self.z.shape
        rows = (where + n * torch.arange(members, device=where.device)[:, None]).flatten()
        z = self.z.view(-1, k).index_select(0, rows).view(members, active, k)
        slope = self.problem.slope(z.mT, where[:, None, :].expand(-1, k, -1)).mT
        move = -(slope * self.problem.a) * slope_of_loss.gather(-1, where)[..., None]
        self.c.view(-1, k).index_add_(0, rows, move.reshape(-1, k))
        reach = self.problem.gram.x_x.reshape(-1, n).index_select(0, rows).view(members, active, n)
        self.z.baddbmm_(reach.mT, move)
        self.look()


def descend(
    problem: SinglePatchTraining, lr: float | Float[Tensor, "*E"], levels: tuple[float, ...] = (0.0, 1.0),
    limit: int = 100_000,
) -> list[Stop]:
    r"""Gradient descent on the mean loss until :math:`\min_i \tilde y_i f(x_i)` reaches each level; one `Stop` a level.

    Level 0 is reached when it is exceeded: every label is fitted. Level 1 is reached when it is equalled: the hinge
    loss is zero. Steps and weights are those of `fit` with `GradientDescent`, up to rounding; members that have
    reached the last level leave the computation.

    Raises ValueError if the levels do not increase.
    """
    if any(low >= high for low, high in zip(levels, levels[1:], strict=False)):
        raise ValueError(f"levels must increase, such as (0.0, 1.0); got {levels}")
    shape, like = problem.members, problem.gram.w_w
    moving = _Descent(problem, torch.as_tensor(lr, dtype=like.dtype, device=like.device).expand(shape).reshape(-1))
    kept = [moving.c.clone() for _ in levels]
    step = torch.full((len(levels), len(moving.lr)), -1, device=like.device)
    for now in range(limit + 1):
        arrived = _reached(moving.margin, levels) & (step[:, moving.place] < 0)
        if now % _REFRESH == 0 or arrived.any():
            moving.refresh()
            arrived = _reached(moving.margin, levels) & (step[:, moving.place] < 0)
            for k, new in enumerate(arrived):
                kept[k][moving.place[new]], step[k, moving.place[new]] = moving.c[new], now
            if arrived[-1].any():
                moving.keep(~arrived[-1])
        if not len(moving.place) or now == limit:
            break
        moving.step()
    for k in range(len(levels)):
        late = step[k, moving.place] < 0
        kept[k][moving.place[late]] = moving.c[late]
    return [Stop(s.reshape(shape), {"x": p.mT.reshape(*shape, *like.shape[-1:], -1)})
            for s, p in zip(step, kept, strict=True)]


def _reached(margin: Tensor, levels: tuple[float, ...]) -> Tensor:
    """Which members have reached which level; shape (levels, members)."""
    return torch.stack([margin > level if level == 0 else margin >= level for level in levels])
