r"""Ancestral sampling: from pure noise back to samples, one step of the learned posterior after the other.

.. math:: x_s = a\,\hat x_0(x_t) + b\,x_t + \sqrt{\tilde\beta}\,z, \qquad
          \hat x_0(x) = \frac{x - \sqrt{1 - \bar\alpha_t}\,\hat\epsilon(x, t)}{\sqrt{\bar\alpha_t}}

with the factors of `NoiseSchedule.posterior`. The last step adds no noise. Fewer steps skip times.

Source: Ho et al. (2020), Algorithm 2, with the smaller of its two variances.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule


@checked_arguments
def reverse_path(predict: Callable[[Tensor, int], Tensor], schedule: NoiseSchedule, shape: tuple[Count, ...],
                 seed: Seeds = 0, times: Sequence[int] | None = None) -> Iterator[tuple[int, Tensor]]:
    """Pairs (t, samples at t), from pure noise at T to t = 0.

    Parameters
    ----------
    predict
        ``predict(x, t)`` names the noise.
    shape
        Of the samples of one seed.
    times
        Falling, from T on; every step if None. Then comes 0.

    Examples
    --------
    >>> path = list(reverse_path(lambda x, t: x, NoiseSchedule(), (5, 2), times=(1000, 500)))
    >>> [t for t, x in path]
    [1000, 500, 0]
    """
    times = [*(range(schedule.steps, 0, -1) if times is None else times), 0]
    if times[0] != schedule.steps or any(s >= t for t, s in zip(times[:-1], times[1:], strict=True)):
        raise ValueError(f"times must fall from {schedule.steps} to numbers above 0; got {times[:-1]}")
    x = rng.normal(tuple(shape), seed, "pure noise", dtype=torch.float32)
    yield times[0], x
    for t, s in zip(times[:-1], times[1:], strict=True):
        kept = schedule.kept(t)
        clean = (x - math.sqrt(1 - kept) * predict(x, t)) / math.sqrt(kept)
        own, seen, variance = schedule.posterior(t, s)
        x = own * clean + seen * x
        if s:
            x = x + math.sqrt(variance) * rng.normal(tuple(shape), seed, f"reverse {t}", dtype=torch.float32)
        yield s, x
