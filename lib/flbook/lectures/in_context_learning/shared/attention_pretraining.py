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

from flbook.domains import Positive, checked_arguments
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.lectures.in_context_learning.shared.relu_layer import ReLULayer
from flbook.shapes import Context


class Example(NamedTuple):
    """Prompts with one query each, and the label observed there."""

    context: Context
    query: Float[Tensor, "*E d"]
    label: Float[Tensor, "*E"]


def first_gradient(layer: ReLULayer, batches: Iterable[Example]) -> Float[Tensor, "m d"]:
    r"""The direction of the first gradient step of every neuron, from :math:`\Gamma = \mathrm{diag}(\gamma_j)`.

    .. math:: g_j = \nabla_{w_j} \frac1T\sum_t y_{q,t}\, c_{t,j}\, \phi_j(x_{q,t})

    With :math:`\gamma_j = \pm\gamma` and small :math:`\gamma` minus the gradient of the loss is :math:`2\gamma_j g_j`:
    the sign changes nothing (biases are drawn afterwards, symmetric), and the step size is one number for all
    neurons. The term of the loss without labels of queries is of order :math:`\gamma^2`.

    Parameters
    ----------
    layer
        The m neurons.
    batches
        Prompts with one query each, in as many parts as memory asks for.

    Returns
    -------
    Tensor, shape (m, d)
        The mean over all prompts.
    """
    total, count = torch.zeros_like(layer.w), 0
    for context, query, label in batches:
        x, y = context
        key, query_z = (points @ layer.w.T + layer.b for points in (x, query))
        c = torch.einsum("tn,tnm->tm", y, key.relu()) / y.shape[-1]
        total += torch.einsum("tm,td->md", label[:, None] * c * (query_z > 0), query)
        weight = label[:, None] / y.shape[-1] * query_z.relu()
        active = (key > 0).to(x.dtype).mul_(y[..., None]).mul_(weight[:, None, :])
        total += active.flatten(0, 1).T @ x.flatten(0, 1)
        count += len(label)
    return total / count


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


@checked_arguments
def dual_ridge(prompts: Summaries, lam: Positive | Tensor) -> Float[Tensor, " T"]:
    r"""Stage two without Gamma: :math:`\alpha = (K + T\lambda I)^{-1}y` with :math:`K = (CC^\top)\circ(QQ^\top)`.

    .. math:: \hat\Gamma = \sum_t\alpha_t c_t q_t^\top
              = \arg\min_\Gamma \frac1T\sum_t (y_t - \langle c_t, \Gamma q_t\rangle)^2 + \lambda\|\Gamma\|_F^2

    The m^2 features :math:`c_t q_t^\top` enter through their T x T inner products only.

    Parameters
    ----------
    prompts
        The T prompts of stage two.
    lam
        :math:`\lambda`, in the units of the squared features.

    Raises
    ------
    ValueError
        If lam is not positive.
    """
    kernel = (prompts.c @ prompts.c.T).mul_(prompts.q @ prompts.q.T)
    kernel.diagonal().add_(len(kernel) * lam)
    return torch.cholesky_solve(prompts.y[:, None], torch.linalg.cholesky(kernel))[:, 0]


def unit_of_ridge(prompts: Summaries) -> Float[Tensor, ""]:
    """The mean square of the m^2 features, summed: a ridge of this size shrinks everything by half or more."""
    return (prompts.c.square().sum(-1) * prompts.q.square().sum(-1)).mean()


def gamma(prompts: Summaries, alpha: Float[Tensor, " T"]) -> Float[Tensor, "m m"]:
    r"""The matrix :math:`\sum_t\alpha_t c_t q_t^\top`, where m is small enough to hold it."""
    return (alpha[:, None] * prompts.c).T @ prompts.q


def trained(layer: ReLULayer, prompts: Summaries, lam: float | Tensor) -> LinearAttention:
    """Attention after stage two, in float64, with a ridge of `lam` in units of `unit_of_ridge`."""
    layer = ReLULayer(layer.w.double(), layer.b.double())
    matrix = gamma(prompts, dual_ridge(prompts, lam * unit_of_ridge(prompts) / len(prompts.y)))
    return LinearAttention(matrix, features=layer).requires_grad_(False)


def dual_prediction(prompts: Summaries, alpha: Float[Tensor, " T"]) -> Callable[[Tensor, Tensor], Tensor]:
    r"""Predictions :math:`\sum_t\alpha_t\langle c, c_t\rangle\langle q, q_t\rangle` of (c, q), Gamma never formed."""
    def predict(c: Float[Tensor, "*E m"], q: Float[Tensor, "*E m"]) -> Float[Tensor, "*E"]:
        return ((c @ prompts.c.T) * (q @ prompts.q.T)) @ alpha

    return predict
