r"""Gradient flow of a linear readout of fixed features, in closed form: no training loop.

The denoiser is :math:`-B\varphi` with features :math:`\varphi` of a noisy sample, its loss :math:`\frac1d
E\|B\varphi+\epsilon\|^2`, and :math:`dB/ds = -(BU + V^\top)` with :math:`U = E\varphi\varphi^\top` and :math:`V =
E\varphi\epsilon^\top`. In the eigenbasis of U, with eigenvalues :math:`l_k` and rows :math:`c_k` of V,

.. math:: B^\top = -g(l)\,c, \qquad g = \frac{1 - e^{-ls}}l .
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook.fits import first_crossing


@dataclass(frozen=True)
class Relaxation:
    """Two moments of the training samples, and two of new ones, in the eigenbasis of the first.

    Parameters
    ----------
    rates
        Eigenvalues l of U.
    c
        V in their basis.
    quadratic
        U of new samples in the basis, entry by entry times :math:`c c^T`.
    linear
        Inner products of the rows of V, of training and of new samples.
    """

    rates: Float[Tensor, "*E k"]
    c: Float[Tensor, "*E k d"]
    quadratic: Float[Tensor, "*E k k"]
    linear: Float[Tensor, "*E k"]

    @classmethod
    def of(cls, u: Float[Tensor, "*E p p"], v: Float[Tensor, "*E p d"], u_new: Float[Tensor, "*E p p"],
           v_new: Float[Tensor, "*E p d"]) -> "Relaxation":  # fmt: skip
        """From the moments."""
        rates, basis = torch.linalg.eigh(u)
        c, c_new = basis.mT @ v, basis.mT @ v_new
        # rounding leaves eigenvalues a little below zero
        return cls(rates.clamp_min(1e-12 * float(rates.max())), c, (basis.mT @ u_new @ basis) * (c @ c.mT),
                   (c * c_new).sum(-1))  # fmt: skip

    def after(self, left: Float[Tensor, "*E S k"]) -> tuple[Float[Tensor, "*E S"], Float[Tensor, "*E S"]]:
        r"""Training and test loss where a share `left` of each mode is still to be learned: :math:`e^{-ls}`, say."""
        square = self.c.square().sum(-1) / self.rates
        train = 1 - ((1 - left**2) * square[..., None, :]).sum(-1) / self.c.shape[-1]
        return train, self._test((1 - left) / self.rates[..., None, :])

    def losses(self, s: Tensor) -> tuple[Float[Tensor, "*E S"], Float[Tensor, "*E S"]]:
        """Training and test loss at times s, by gradient flow."""
        return self.after(torch.exp(-self.rates[..., None, :] * s[:, None]))

    def steps(self, count: Tensor, lr: float) -> tuple[Float[Tensor, "*E S"], Float[Tensor, "*E S"]]:
        """Training and test loss after so many gradient steps of size lr."""
        if lr * float(self.rates.max()) >= 2:
            raise ValueError(f"lr must be below {2 / float(self.rates.max()):.3g}, or descent diverges; got {lr:g}")
        return self.after((1 - lr * self.rates[..., None, :]) ** count[:, None])

    def ridge(self, penalty: Tensor) -> Float[Tensor, "*E S"]:
        """Test loss of ridge regression on the same features."""
        return self._test(1 / (self.rates[..., None, :] + penalty[:, None]))

    def _test(self, g: Float[Tensor, "*E S k"]) -> Float[Tensor, "*E S"]:
        return 1 + (((g @ self.quadratic) * g).sum(-1) - 2 * (g * self.linear[..., None, :]).sum(-1)) / self.c.shape[-1]


def when(curve: Tensor, s: Tensor, level: Tensor) -> Tensor:
    """The time at which each curve first crosses its level, (E,): straight lines in log s."""
    above = (curve - level[..., None]).cpu().numpy()
    return torch.from_numpy(first_crossing(above, np.log(s.cpu().numpy()), 0.0)).exp()


def landmarks(train: Float[Tensor, "E S"], test: Float[Tensor, "E S"], s: Tensor,
              floor: float | None = None) -> dict[str, Tensor]:  # fmt: skip
    """Of loss curves: when half is learned, when the gap is half its end, when the test loss is 10 % above its best.

    What can be learned is from 1 down to `floor`, the loss of the best denoiser, or to the best loss of the run.
    """
    best, place = test.min(-1)
    goal = best if floor is None else torch.full_like(best, floor)
    gap = test - train
    after = torch.arange(len(s), device=s.device) >= place[..., None]
    return {
        "learned": when(test, s, (1 + goal) / 2),
        "half_gap": when(gap, s, gap[..., -1] / 2),
        "risen": when(torch.where(after, test, best[..., None]), s, 1.1 * best),
        "best": best,
        "end": test[..., -1],
    }
