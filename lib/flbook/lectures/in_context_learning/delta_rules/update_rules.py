r"""Six ways to write an example into a memory of d numbers, as one loop.

A memory :math:`\hat\beta` reads examples in turn, forgets by a gate :math:`\alpha_l` and writes with a step
:math:`\eta_l`,

.. math:: \hat\beta_l = \alpha_l\hat\beta_{l-1} + \eta_l\,\big(y_l - \kappa\,\langle\alpha_l\hat\beta_{l-1},
          x_l\rangle\big)\,x_l, \qquad \hat y = \langle\alpha_q\hat\beta_n, x_q\rangle,

the label (:math:`\kappa = 0`) or its residual (:math:`\kappa = 1`). What is trained are two or three scalars: the step
s, the gate's bias b, and for Mamba its slope w,

.. math:: \alpha_l = e^{-\log(1 + e^{b + w y_l})}, \qquad \eta_l \in \Big\{s,\ s\,(1 - \alpha_l),\
          \frac s{1 + s|x_l|^2}\Big\} .

Sources: Schlag, Irie and Schmidhuber (2021), the delta rule as attention; Widrow and Hoff (1960), its step s; Gu and
Dao (2023), Mamba's times. Derived in the lecture as steps on losses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from flbook.shapes import Context


class Switches(NamedTuple):
    """What a rule does: writes residuals; forgets; lets the label set the time; takes implicit steps."""

    residual: bool = False
    gated: bool = False
    timed: bool = False
    implicit: bool = False


RULES = {
    "attention": Switches(),
    "gated_attention": Switches(gated=True),
    "mamba": Switches(gated=True, timed=True),
    "delta": Switches(residual=True),
    "normalised": Switches(residual=True, implicit=True),
    "gated_delta": Switches(residual=True, gated=True, implicit=True),
}


class UpdateRules:
    """Memories by some of `RULES`, which lead every tensor.

    Parameters
    ----------
    names
        Of the rules.
    device
        Where they compute.

    Examples
    --------
    >>> rules = UpdateRules(["attention", "delta"])
    >>> theta = torch.zeros(2, 1, 3, dtype=torch.float64)  # two rules, one seed; log step, bias and slope of the gate
    >>> x, y = torch.eye(2, dtype=torch.float64).expand(1, 5, 2, 2), torch.ones(1, 5, 2, dtype=torch.float64)
    >>> rules.memory(theta, Context(x, y)).shape  # five prompts
    torch.Size([2, 1, 5, 2])
    """

    def __init__(self, names: Sequence[str], device="cpu"):
        table = torch.tensor([RULES[name] for name in names], dtype=torch.bool, device=device).reshape(-1, 4)
        self.residual, self.gated, self.timed, self.implicit = (column[:, None, None, None] for column in table.T)

    def memory(self, theta: Float[Tensor, "r s 3"], context: Context) -> Float[Tensor, "r s t d"]:
        """What the query reads, the gate at the query included: the prediction of the task.

        theta: log step, bias and slope of the gate. context: prompts of every seed, inputs (s, t, n, d).
        """
        step, bias, slope = (part[..., None, None] for part in theta.unbind(-1))
        step, bias = step.exp(), torch.where(self.gated, bias, -torch.inf)
        x, y = context
        held = softplus(bias + torch.where(self.timed, slope, 0.0) * y)  # every token's time, then its step
        eta = torch.where(self.timed, -step * torch.expm1(-held), step) / (
            1 + self.implicit * step * x.square().sum(-1))
        alpha, label, error = torch.exp(-held)[..., None], eta * y, -eta * self.residual
        state = torch.zeros_like(x[..., 0, :]).expand(len(theta), *y.shape[:-1], -1)
        for i in range(y.shape[-1]):
            state = alpha[..., i, :] * state
            written = torch.addcmul(label[..., i], error[..., i], (state * x[..., i, :]).sum(-1))
            state = torch.addcmul(state, written[..., None], x[..., i, :])
        return torch.exp(-softplus(bias)) * state
