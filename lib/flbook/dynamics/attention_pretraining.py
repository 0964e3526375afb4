r"""Two stages of pretraining of linear attention over neurons: one gradient step on W, then ridge regression for Gamma.

The model is :math:`f = \langle c, \Gamma\phi(x_q)\rangle`, :math:`c = \frac1n\sum_i y_i\phi(x_i)`,
:math:`\phi(x) = \max(Wx + b, 0)`; the loss the mean of :math:`(y_q - f)^2` over prompts, without a factor 1/2.

Source: Oko et al. (2024), Algorithm 1.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.models.attention import LinearAttention
from flbook.models.relu_layer import ReLULayer
from flbook.shapes import Context


class Example(NamedTuple):
    """Prompts with one query each, and the label observed there."""

    context: Context
    query: Float[Tensor, "*E d"]
    label: Float[Tensor, "*E"]


def first_pull(layer: ReLULayer, batches: Iterable[Example]) -> Float[Tensor, "m d"]:
    r"""The direction of the first gradient step of every neuron, from :math:`\Gamma = \mathrm{diag}(\gamma_j)`.

    .. math:: g_j = \nabla_{w_j} \frac1T\sum_t y_{q,t}\, c_{t,j}\, \phi_j(x_{q,t})

    With :math:`\gamma_j = \pm\gamma` and small :math:`\gamma` minus the gradient of the loss is :math:`2\gamma_j g_j`:
    the sign changes nothing (biases are drawn afterwards, symmetric), and the step size is one number for all
    neurons. The term of the loss without labels of queries is of order :math:`\gamma^2`.
    """
    pull, count = torch.zeros_like(layer.w), 0
    for context, query, label in batches:
        x, y = context
        key, asked = (points @ layer.w.T + layer.b for points in (x, query))
        c = torch.einsum("tn,tnm->tm", y, key.relu()) / y.shape[-1]
        pull += torch.einsum("tm,td->md", label[:, None] * c * (asked > 0), query)
        weight = label[:, None] / y.shape[-1] * asked.relu()
        active = (key > 0).to(x.dtype).mul_(y[..., None]).mul_(weight[:, None, :])
        pull += active.flatten(0, 1).T @ x.flatten(0, 1)
        count += len(label)
    return pull / count


class Summaries(NamedTuple):
    """What stage two sees of T prompts."""

    c: Float[Tensor, "T m"]  # summaries of the contexts
    q: Float[Tensor, "T m"]  # neurons at the queries
    y: Float[Tensor, " T"]  # labels there


def summarise(layers: Iterable[ReLULayer], batches: Iterable[Example]) -> list[Summaries]:
    """Summaries of the same prompts under several layers, in float64."""
    layers, parts = list(layers), []
    for context, query, label in batches:
        parts.append([Summaries(layer.summary(context), layer(query), label) for layer in layers])
    return [Summaries(*(torch.cat(column).double() for column in zip(*own, strict=True)))
            for own in zip(*parts, strict=True)]


def dual_ridge(seen: Summaries, lam: float) -> Float[Tensor, " T"]:
    r"""Stage two without Gamma: :math:`\alpha = (K + T\lambda I)^{-1}y` with :math:`K = (CC^\top)\circ(QQ^\top)`.

    .. math:: \hat\Gamma = \sum_t\alpha_t c_t q_t^\top
              = \arg\min_\Gamma \frac1T\sum_t (y_t - \langle c_t, \Gamma q_t\rangle)^2 + \lambda\|\Gamma\|_F^2

    The m^2 features :math:`c_t q_t^\top` enter through their T x T inner products only.

    Raises ValueError if lam is not positive.
    """
    kernel = (seen.c @ seen.c.T).mul_(seen.q @ seen.q.T)
    if not lam > 0:
        raise ValueError(f"lam must be positive, a ridge; got {lam}")
    kernel.diagonal().add_(len(kernel) * lam)
    return torch.cholesky_solve(seen.y[:, None], torch.linalg.cholesky(kernel))[:, 0]


def unit_of_ridge(seen: Summaries) -> float:
    """The mean square of the m^2 features, summed: a ridge of this size shrinks everything by half or more."""
    return float((seen.c.square().sum(-1) * seen.q.square().sum(-1)).mean())


def gamma(seen: Summaries, alpha: Float[Tensor, " T"]) -> Float[Tensor, "m m"]:
    r"""The matrix :math:`\sum_t\alpha_t c_t q_t^\top`, where m is small enough to hold it."""
    return (alpha[:, None] * seen.c).T @ seen.q


def trained(layer: ReLULayer, seen: Summaries, lam: float) -> LinearAttention:
    """Attention after stage two, in float64, with a ridge of `lam` in units of `unit_of_ridge`."""
    layer = ReLULayer(layer.w.double(), layer.b.double())
    matrix = gamma(seen, dual_ridge(seen, lam * unit_of_ridge(seen) / len(seen.y)))
    return LinearAttention(matrix, features=layer).requires_grad_(False)


def dual_prediction(seen: Summaries, alpha: Float[Tensor, " T"]) -> Callable[[Tensor, Tensor], Tensor]:
    r"""Predictions :math:`\sum_t\alpha_t\langle c, c_t\rangle\langle q, q_t\rangle` of (c, q), Gamma never formed."""
    def predict(c: Float[Tensor, "*E m"], q: Float[Tensor, "*E m"]) -> Float[Tensor, "*E"]:
        return ((c @ seen.c.T) * (q @ seen.q.T)) @ alpha

    return predict
