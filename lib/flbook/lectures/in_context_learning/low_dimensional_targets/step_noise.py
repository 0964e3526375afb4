r"""How many prompts the first step needs: where its mean, the signal, is as long as its noise.

Over T prompts of n examples the step of a neuron is :math:`\bar g` plus noise of squared length
:math:`E\|g - \bar g\|^2/T`, with g of a single prompt. Both are equal at :math:`T_c = E\|g\|^2/\|\bar g\|^2 - 1`, exact
here for links :math:`h_Q` of one even degree and neurons without biases. Derived in the lecture.
"""

import math

import numpy as np
import torch

from flbook.domains import Count, Natural, checked_arguments
from flbook.lectures.in_context_learning.low_dimensional_targets.alignment import relu_coefficient
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.lectures.in_context_learning.shared.single_index_prompts import IndexPrompts, SingleIndexPrompts


def power(d, r, k: int):
    r"""Mean of the k-th power of the share of a uniform unit vector of d coordinates that lies in r of them.

    .. math:: M_k = \prod_{i<k}\frac{r + 2i}{d + 2i}
    """
    return math.prod((r + 2 * i) / (np.asarray(d, float) + 2 * i) for i in range(k))


def signal(d, r: int, degree: int = 2):
    r"""Squared length of the mean step, averaged over unit neurons; a is the `relu_coefficient` of degree Q.

    .. math:: E\|\bar g\|^2 = e^2a^4\Big(4Q^2M_{2Q-1} - 4(Q^2 - 1)M_{2Q}\Big), \qquad
              e = E_\beta\langle v, \beta\rangle^{2Q} = \prod_{i<Q}\frac{1 + 2i}{r + 2i} \quad (v \in S, \|v\| = 1)
    """
    share = power(r, 1, degree) ** 2 * relu_coefficient(degree) ** 4
    return 4 * share * (degree**2 * power(d, r, 2 * degree - 1) - (degree**2 - 1) * power(d, r, 2 * degree))


def single_square(d, n, degree: int = 2):
    r""":math:`E\|g\|^2` of a single prompt of n examples, averaged over unit neurons.

    With :math:`u = \langle w, \beta\rangle`, :math:`\alpha = \frac12(d + 2Q)` and :math:`\bar E` the mean over u:

    .. math:: E\|g\|^2 = \tfrac1n\bar E\big[\alpha(1 + 2Qu^2) + \tfrac12 + 2Q(Q + 1)u^2\big]
              + \big(1 - \tfrac1n\big)a^2\bar E\big[\alpha u^{2Q} + \tfrac12(1 + 2Qu^2)
              (Q^2u^{2Q-2} - (Q^2 - 1)u^{2Q}) + (2Q^2 + 1)u^{2Q} - 2Q(Q - 1)u^{2Q+2}\big]
    """
    q, half = degree, (np.asarray(d, float) + 2 * degree) / 2
    low, middle, high = (power(d, 1, k) for k in (q - 1, q, q + 1))
    noise = half * (1 + 2 * q * power(d, 1, 1)) + 0.5 + 2 * q * (q + 1) * power(d, 1, 1)
    turn = (q**2 * low + (2 * q**3 - q**2 + 1) * middle - 2 * q * (q**2 - 1) * high) / 2
    tasks = half * middle + turn + (2 * q**2 + 1) * middle - 2 * q * (q - 1) * high
    return noise / n + (1 - 1 / n) * relu_coefficient(q) ** 2 * tasks


def prompts_needed(d, n, r: int = 2, degree: int = 2):
    r"""The number of prompts :math:`T_c` at which signal and noise of the step are equally long."""
    return single_square(d, n, degree) / signal(d, r, degree) - 1


@checked_arguments
def measured(d: Count, n: Count, seed: Natural, r: Count = 2, degree: Count = 2, count: Count = 200,
             m: Count = 16, part: Count = 200_000) -> float:
    r"""The same number with the noise of `count` drawn prompts; at most `part` inputs are held at once."""
    w = ReLULayer.draw(m, d, seed, dtype=torch.float32).w
    prompts = SingleIndexPrompts(n=n, d=d, r=r, link=(0.0,) * degree + (1.0,))
    size, total = max(1, min(count, part // n)), 0.0
    for step in range(-(-count // size)):
        drawn = prompts.draw(min(size, count - step * size), seed, step, dtype=torch.float32)
        total += single_steps(w, drawn).square().sum((0, 2)).mean().item() / count
    return total / float(signal(d, r, degree)) - 1


def single_steps(w: torch.Tensor, prompts: IndexPrompts) -> torch.Tensor:
    r"""The step of every neuron from every prompt alone, :math:`y_q\nabla_w(c\,\phi(x_q))`, shape ``(t, m, d)``."""
    (x, y), query, label = prompts.context, prompts.query[:, 0], prompts.observed[:, 0]
    key, own = x @ w.T, query @ w.T
    c = torch.einsum("tn,tnm->tm", y, key.relu()) / y.shape[-1]
    pull = torch.einsum("tnm,tnd->tmd", y[..., None] * (key > 0), x) / y.shape[-1]
    turn = (c * (own > 0))[..., None] * query[:, None]
    return label[:, None, None] * (turn + own.relu()[..., None] * pull)
