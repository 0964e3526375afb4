r"""The forward process: how much of a sample is left after t steps of noise.

.. math:: x_t = \sqrt{\bar\alpha_t}\,x_0 + \sqrt{1 - \bar\alpha_t}\,\epsilon, \qquad
          \bar\alpha_t = \prod_{s \le t} (1 - \beta_s), \quad \epsilon \sim N(0, I)

Steps are counted from 1, as in Ho et al. (2020): t = 0 is the clean sample. Code that counts from 0 calls the first
noisy sample t = 0, and is one step off.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Checked, Count, Range

Open = Annotated[float, Range(0, 1, "()")]


@dataclass(frozen=True)
class NoiseSchedule(Checked):
    r"""Noise that is added in T steps, :math:`\beta_t` rising in equal steps from `first` to `last`.

    Source: Ho et al. (2020), Section 4, whose numbers are the defaults.

    Examples
    --------
    >>> schedule = NoiseSchedule()
    >>> f"{schedule.kept(1000):.4e}, {schedule.kept(500):.5f}, {schedule.half()}"
    '4.0358e-05, 0.07859, 260'
    """

    steps: Count = 1000
    first: Open = 1e-4
    last: Open = 0.02

    @cached_property
    def alpha_bar(self) -> np.ndarray:
        r""":math:`\bar\alpha_0 = 1, \bar\alpha_1, \dots, \bar\alpha_T`, shape ``(T + 1,)``."""
        return np.cumprod(np.concatenate([[1.0], 1 - np.linspace(self.first, self.last, self.steps)]))

    def kept(self, t: int) -> float:
        r""":math:`\bar\alpha_t`. Raises ValueError if t is no whole number from 0 to T."""
        if isinstance(t, bool) or t != int(t) or not 0 <= t <= self.steps:
            raise ValueError(f"t must be a whole number from 0 to {self.steps}, the steps of the schedule; got {t}")
        return float(self.alpha_bar[int(t)])

    def half(self) -> int:
        r"""The first step at which :math:`\bar\alpha_t < 1/2`: noise outweighs a sample of variance 1 from there on."""
        return int((self.alpha_bar < 0.5).argmax())

    def noised(self, x: Float[Tensor, "..."], t: Tensor, noise: Float[Tensor, "..."]) -> Tensor:
        """Samples after t steps, t of shape ``(*E, n)`` or one number, with this noise."""
        kept = torch.as_tensor(self.alpha_bar, dtype=x.dtype).to(x.device)[t]
        kept = kept.reshape(*kept.shape, *[1] * (x.ndim - kept.ndim)) if kept.ndim else kept
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    def posterior(self, t: int, s: int) -> tuple[float, float, float]:
        r"""The law of :math:`x_s` given :math:`x_0` and :math:`x_t`, s < t: factors of both in its mean, and variance.

        For s = t - 1 it is that of Ho et al. (2020), equations (6) and (7); other s skip steps. At s = 0 it is
        :math:`x_0` itself.
        """
        after, before = self.kept(t), self.kept(s)
        if s >= t:
            raise ValueError(f"s must be below t = {t}, since time runs backwards; got {s}")
        alpha = after / before  # what the steps from s to t keep
        own, seen = before**0.5 * (1 - alpha) / (1 - after), alpha**0.5 * (1 - before) / (1 - after)
        return own, seen, (1 - alpha) * (1 - before) / (1 - after)
