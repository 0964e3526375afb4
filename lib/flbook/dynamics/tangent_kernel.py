r"""The tangent kernel: which samples a gradient step at one sample moves, and what training with it frozen does.

.. math:: \Theta_t(x, x') = \eta\, \nabla_w f(w_t, x) \cdot \nabla_w f(w_t, x'), \qquad
          f_{t+1} \approx f_t - \tfrac1n \Theta_t (f_t - y)

While it moves, features are learned. Where it stays, training is regression with the kernel of the random start.

Source: Jacot, Gabriel and Hongler (2018); Chizat, Oyallon and Bach (2019), Section 2.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Natural, Positive, checked_arguments
from flbook.models.two_layer import TwoLayer
from flbook.training.network import Training, sample_gradients
from flbook.training.problem import Params


def tangent_kernel(
    problem: Training, params: Params, x: Tensor, other: Tensor | None = None
) -> Float[Tensor, "*E n p"]:
    r""":math:`\nabla_w f(x) \cdot \nabla_w f(x')` of any network, by one backward pass a sample; small n only.

    One pass serves all members of an ensemble, whose samples are their own. `flbook.observe.ntk` asks one network, a
    function of its parameters, in chunks of samples.

    Parameters
    ----------
    problem, params
        The network and its weights.
    x, other
        n and p samples, in the form that the network takes; `other` is `x` if None.

    Returns
    -------
    Tensor
        Shape ``(*E, n, p)``.

    Examples
    --------
    >>> from flbook.training.losses import squared
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> problem = Training(TwoLayer(d=3, width=4), x, x[0], squared)
    >>> tangent_kernel(problem, problem.start(), x).shape
    torch.Size([3, 3])
    """
    rows = [sample_gradients(problem, params, samples) for samples in (x, x if other is None else other)]
    return torch.einsum("...nk,...pk->...np", *rows)


def neuron_kernel(
    model: TwoLayer,
    w: Float[Tensor, "*E N d"],
    x: Float[Tensor, "*#E n d"],
    other: Float[Tensor, "*#E p d"] | None = None,
) -> Float[Tensor, "*E n p"]:
    r"""The same for a two-layer network in the step size of `TwoLayer.step`, in closed form: an average over neurons.

    .. math:: \Theta(x, x') = \langle x, x'\rangle\, \frac1N \sum_{i=1}^N \sigma'(\langle w_i, x\rangle)
              \sigma'(\langle w_i, x'\rangle)

    The output scale c has dropped out: two networks of the same neurons have the same kernel at any scale.

    Parameters
    ----------
    model
        Its activation is used.
    w
        The neurons, shape ``(*E, N, d)``.
    x, other
        Samples, shapes ``(*#E, n, d)`` and ``(*#E, p, d)``; `other` is `x` if None.

    Returns
    -------
    Tensor
        Shape ``(*E, n, p)``.
    """
    other = x if other is None else other
    slopes = [model.activation.slope(torch.einsum("...nd,...kd->...nk", samples, w)) for samples in (x, other)]
    average = torch.einsum("...nk,...pk->...np", *slopes) / w.shape[-2]
    return average * torch.einsum("...nd,...pd->...np", x, other)


@checked_arguments
def kernel_descent(
    kernel: Float[Tensor, "*E n n"],
    cross: Float[Tensor, "*E p n"],
    y: Float[Tensor, "*#E n"],
    steps: Natural,
    lr: Positive = 1.0,
) -> Float[Tensor, "*E p"]:
    r"""Outputs at p places after gradient descent on the squared loss with the kernel frozen, started at 0.

    .. math:: f_T(x) = \Theta(x, X)\, \Theta^{-1} \big[I - (I - \tfrac{\eta}{n}\Theta)^T\big]\, y

    in closed form, from the eigenvalues of the kernel on the training samples.

    Parameters
    ----------
    kernel, cross
        :math:`\Theta(X, X)` and :math:`\Theta(x, X)`, shapes ``(*E, n, n)`` and ``(*E, p, n)``.
    y
        Labels, shape ``(*#E, n)``.
    steps, lr
        T and :math:`\eta`.

    Returns
    -------
    Tensor
        Outputs, shape ``(*E, p)``.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or lr so large that descent diverges.

    Examples
    --------
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> kernel_descent(eye, eye, torch.tensor([1.0, 2.0]).double(), steps=1, lr=1.0).tolist()
    [0.5, 1.0]
    """
    n = kernel.shape[-1]
    values, vectors = torch.linalg.eigh(kernel)
    rate = lr * values.clamp_min(0) / n
    if bool((rate >= 2).any()):
        raise ValueError(f"lr must be below {2 * n / values.max().item():.3g}, 2 n over the largest eigenvalue of the "
                         f"kernel, or descent diverges; got {lr:g}")
    # (1 - (1 - r)^T) / r is a sum of T powers, finite where r is 0
    kept = torch.where(rate > 1e-12, (1 - (1 - rate) ** steps) / rate.clamp_min(1e-12), steps) * lr / n
    weights = torch.einsum("...k,...nk->...n", kept * torch.einsum("...n,...nk->...k", y, vectors), vectors)
    return torch.einsum("...n,...pn->...p", weights, cross)


def kernel_ridge(
    kernel: Float[Tensor, "*E n n"],
    cross: Float[Tensor, "*E p n"],
    y: Float[Tensor, "*#E n"],
    ridge: Float[Tensor, " k"],
) -> Float[Tensor, "*E k p"]:
    r"""Predictions :math:`\Theta(x, X)(\Theta + \lambda I)^{-1} y` of kernel ridge regression, one row a ridge.

    Parameters
    ----------
    kernel, cross
        :math:`\Theta(X, X)` and :math:`\Theta(x, X)`, shapes ``(*E, n, n)`` and ``(*E, p, n)``.
    y
        Labels, shape ``(*#E, n)``.
    ridge
        k values of :math:`\lambda`, on the kernel's device or on the CPU.

    Returns
    -------
    Tensor
        Shape ``(*E, k, p)``.

    Raises
    ------
    ValueError
        If a ridge is not positive.
    """
    if not bool((ridge > 0).all()):
        raise ValueError(f"ridge must be positive; got {ridge.min().item():g}")
    values, vectors = torch.linalg.eigh(kernel)
    scores = torch.einsum("...n,...nk->...k", y, vectors)
    shrunk = scores[..., None, :] / (values[..., None, :] + ridge.to(kernel)[:, None])
    weights = torch.einsum("...nk,...lk->...ln", vectors, shrunk)
    return torch.einsum("...pn,...ln->...lp", cross, weights)


def relative_change(now: Float[Tensor, "*E a b"], before: Float[Tensor, "*#E a b"]) -> Float[Tensor, "*E"]:
    r""":math:`\|A - B\|_F / \|B\|_F` of two matrices: how far weights, or a kernel, have moved.

    Parameters
    ----------
    now, before
        A and B, shapes ``(*E, a, b)`` and ``(*#E, a, b)``.

    Returns
    -------
    Tensor
        Shape ``*E``.
    """
    return (now - before).square().sum((-2, -1)).sqrt() / before.square().sum((-2, -1)).sqrt()
