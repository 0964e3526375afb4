r"""What linear attention takes from a prompt on a Fourier basis, drawn from its exact law without one label per example.

Given its inputs and its function, the averages :math:`\hat b_j = \frac1n\sum_i y_i f_j(x_i)` of a prompt are Gaussian, with mean
:math:`\hat G\beta` and covariance :math:`\sigma_y^2\hat G/n`. The Gram matrix :math:`\hat G` of the inputs follows from their sums
:math:`\frac1n\sum_i e^{2\pi i m x_i}`, one for each sum or difference of two frequencies.
"""  # noqa: E501

import math

import torch
from jaxtyping import Float
from torch import Tensor


def empirical_gram(x: Float[Tensor, "*E n"], frequency: Tensor, keep: int) -> Float[Tensor, "*E N J"]:
    r"""Inner products :math:`\hat G_{jl} = \frac1n\sum_i f_j(x_i) f_l(x_i)` of the first `keep` functions with all.

    frequency: J whole numbers, those of `FourierBasis`: 0 the constant, r > 0 the cosine, r < 0 the sine of -r.
    """
    turns = frequency.abs()
    means, power = [], torch.ones_like(x, dtype=torch.promote_types(x.dtype, torch.complex64))
    step = torch.polar(torch.ones_like(x), 2 * math.pi * x)
    for _ in range(int(turns.max() + turns[:keep].max()) + 1):
        means.append(power.mean(-1))
        power *= step
    mean = torch.stack(means, -1)

    # f is sqrt(2) Re(phase e^(2 pi i r x)), the constant 1/sqrt(2) of that
    phase = torch.ones(len(frequency)).to(mean).masked_fill(frequency < 0, -1j).masked_fill(frequency == 0, 2**-0.5)
    kept, own = turns[:keep, None], phase[:keep, None]
    apart = mean[..., (kept - turns).abs()]
    apart = torch.where(kept < turns, apart.conj(), apart)
    return (apart * own * phase.conj() + mean[..., kept + turns] * own * phase).real


def averages(
    gram: Float[Tensor, "*E N J"], task: Float[Tensor, "*E J"], unit: Float[Tensor, "*E N"], spread: float
) -> Float[Tensor, "*E N"]:
    r""":math:`\hat b = \hat G\beta + \frac{\sigma_y}{\sqrt n}\hat G_{NN}^{1/2}\xi`.

    unit: standard normal numbers. spread: :math:`\sigma_y/\sqrt n`. A root exists for fewer inputs than functions, too.
    """
    inner = gram[..., : gram.shape[-2]]
    root = torch.linalg.cholesky(inner + 1e-12 * torch.eye(inner.shape[-1]).to(inner))
    return torch.einsum("...nj,...j->...n", gram, task) + spread * torch.einsum("...nk,...k->...n", root, unit)
