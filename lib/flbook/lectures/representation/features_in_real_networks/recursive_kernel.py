r"""The recursive feature machine: a kernel machine that learns the metric in which it measures distance.

.. math:: K_M(x, x') = \exp\Big(-\frac{(x-x')^\top M (x-x')}{2L^2}\Big), \qquad
          M \leftarrow \frac1n\sum_i \nabla f(x_i)\,\nabla f(x_i)^\top

It starts with M = I, fits f by kernel ridge regression, replaces M by the average gradient outer product of f, and
repeats. No network, no gradient descent.

Source: Radhakrishnan et al. (2024). Differs from it: a Gaussian in place of a Laplace kernel; after every round M is
scaled to trace d, and the bandwidth L is the median M-distance of two training inputs.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class KernelRound(NamedTuple):
    """One round of the recursion."""

    metric: Float[Tensor, "*E d d"]  # M, of the kernel that was fitted
    outputs: Float[Tensor, "*E t"]  # f on the test inputs
    product: Float[Tensor, "*E d d"]  # average gradient outer product of f, scaled to trace d


def squared_distances(
    x: Float[Tensor, "*E n d"], other: Float[Tensor, "*E t d"], metric: Float[Tensor, "*E d d"]
) -> Float[Tensor, "*E n t"]:
    """Of every input to every other, in a metric."""
    xm, om = x @ metric, other @ metric
    lengths = (xm * x).sum(-1)[..., :, None] + (om * other).sum(-1)[..., None, :]
    return (lengths - 2 * xm @ other.mT).clamp(min=0)


def kernel_rounds(
    x: Float[Tensor, "*E n d"], y: Float[Tensor, "*E n"], x_test: Float[Tensor, "*E t d"], rounds: int = 4,
    ridge: float = 1e-3, width: float = 1.0,
) -> list[KernelRound]:
    """Fit `rounds` times; the first fit is an ordinary kernel machine. width: bandwidth in median distances."""
    n, d = x.shape[-2:]
    eye = torch.eye(n, dtype=x.dtype, device=x.device)
    metric, found = torch.eye(d, dtype=x.dtype, device=x.device).expand(*x.shape[:-2], d, d), []
    for _ in range(rounds):
        square = squared_distances(x, x, metric)
        scale = width**2 * square.flatten(-2).median(-1).values[..., None, None]
        kernel = torch.exp(-square / (2 * scale))
        a = torch.linalg.solve(kernel + ridge * eye, y[..., None])  # (*E, n, 1)
        outputs = torch.exp(-squared_distances(x_test, x, metric) / (2 * scale)) @ a
        slopes = (kernel @ (a * x) - (kernel @ a) * x) @ metric / scale  # gradient of f at every training input
        product = slopes.mT @ slopes
        product = d * product / product.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        found.append(KernelRound(metric, outputs[..., 0], product))
        metric = product
    return found
