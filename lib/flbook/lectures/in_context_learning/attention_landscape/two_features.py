r"""Two true and two learned features of an angle: their landscape at any length of the prompt is in closed form.

The input x is uniform on the circle, :math:`f = (\cos x, \cos 2x)`, and learned features are combinations of
:math:`\sqrt2\cos jx`, j = 1 ... 4, the rows of H. A feature at a point of the unit disk has these two coordinates of
the true ones; what is missing to length 1 is :math:`\cos 4x` for the first and :math:`\cos 3x` for the second.
"""

import torch
from torch import Tensor

from flbook.lectures.in_context_learning.attention_landscape import short_prompts

X = torch.arange(16).double() * torch.pi / 8  # means over 16 angles are exact up to degree 15, and L^n has 12
BASIS = 2**0.5 * torch.stack([torch.cos(j * X) for j in (1, 2, 3, 4)], -1)
F = BASIS[:, :2] / 2**0.5


def features(dots: Tensor) -> Tensor:
    """The rows of H for two points of the disk, (2, 2) to (2, 4)."""
    rest = (1 - dots.square().sum(-1)).clamp_min(0).sqrt()
    return torch.cat([dots, torch.diag(rest).flip(-1)], -1)


def loss(H: Tensor, n: float) -> Tensor:
    """L^n of the features H."""
    return short_prompts.loss(BASIS @ H.mT, F, n)


def flow(H: Tensor, n: float, dt: float = 0.05, steps: int = 800) -> tuple[Tensor, Tensor]:
    """Gradient flow by the midpoint rule, in shorter steps where the loss would rise: losses (t,), H (t, 2, 4)."""
    losses, path = [], []
    (now, slope), size = _landscape(H, n), dt
    for _ in range(steps + 1):
        losses.append(now)
        path.append(H)
        left = dt
        while left > 1e-9 * dt:
            step = min(size, left)
            after = H - step * _landscape(H - step / 2 * slope, n)[1]
            then, its = _landscape(after, n)
            falls = bool(then <= now + 1e-9)
            if falls or step < dt / 32:
                H, now, slope, left = after, then, its, left - step
            size = min(2 * step if falls else max(step / 2, dt / 64), dt)
    return torch.stack(losses), torch.stack(path)


def _landscape(H: Tensor, n: float) -> tuple[Tensor, Tensor]:
    """The loss and its gradient."""
    H = H.detach().requires_grad_()
    value = loss(H, n)
    return value.detach(), torch.autograd.grad(value, H)[0]
