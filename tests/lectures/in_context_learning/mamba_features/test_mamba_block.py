"""Blocks made by hand against the formulas that they stand for."""

import torch
from torch.nn.functional import silu, softplus

from flbook.lectures.in_context_learning.mamba_features.mamba_block import average_of_gates, square_reader
from flbook.lectures.in_context_learning.shared.mamba import Mamba
from flbook.shapes import Context

N, D = 12, 3


def prompt():
    normal = torch.Generator().manual_seed(3)
    shapes = ((2, N, D), (2, N), (2, 5, D))
    x, y, query = (torch.randn(shape, generator=normal, dtype=torch.float64) for shape in shapes)
    return Context(x, y), query


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-11)


def test_a_mixture_of_silu_gates():
    (x, y), query = prompt()
    gamma = torch.randn(D, D, dtype=torch.float64)
    slopes, biases, mixture = [1.0, -2.0], [0.5, -1.0], [1.0, 3.0]
    gate = silu(y + 0.5) + 3 * silu(-2 * y - 1)
    alpha = 0.5 ** (1 / N)
    omega = (1 - alpha) * alpha ** torch.arange(N, 0, -1, dtype=torch.float64)
    expected = torch.einsum("eqd,dc,l,el,elc->eq", query, gamma, omega, gate, x)
    same(average_of_gates(gamma, slopes, biases, mixture, N)(Context(x, y), query), expected)


def weights(y, slope, bias, a):
    held = a * softplus(slope * y + bias)
    later = held.flip(-1).cumsum(-1).flip(-1) - held
    return -torch.expm1(-held) / a * torch.exp(-later), torch.exp(-a * softplus(torch.tensor(bias, dtype=y.dtype)))


def test_the_selective_gate_on_the_label():
    (x, y), query = prompt()
    gamma = torch.randn(D, D, dtype=torch.float64)
    omega, last = weights(y, 2.0, -1.0, 0.3)
    expected = last * torch.einsum("eqd,dc,el,el,elc->eq", query, gamma, omega, y, x)
    same(Mamba.gated(gamma, 2.0, -1.0, 0.3)(Context(x, y), query), expected)
    sigmoid, _ = weights(y, 2.0, -1.0, 1.0)
    same(sigmoid[:, -1], torch.sigmoid(2 * y[:, -1] - 1))


def test_the_state_as_a_matrix_read_twice():
    (x, y), query = prompt()
    omega, _ = weights(y, -4.0, -1.0, 0.05)
    matrix = torch.einsum("el,elc,eld->ecd", omega, x, x)
    expected = torch.einsum("eqc,ecd,eqd->eq", query, matrix, query)
    same(square_reader(D, -4.0, -1.0, 0.05)(Context(x, y), query), expected)
