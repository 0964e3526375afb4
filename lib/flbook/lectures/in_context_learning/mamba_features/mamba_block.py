r"""A whole Mamba block, SiLU before the scan and a SiLU gate behind it, and two blocks made by hand."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, silu

from flbook.domains import Count, Positive, checked_arguments
from flbook.lectures.in_context_learning.shared.mamba import SelectiveLayer, tokens
from flbook.shapes import Context

_BIAS = 1.0  # of a gate that is to be constant


class MambaBlock(nn.Module):
    r"""One block over the tokens :math:`t_l = (x_l, y_l, 1)`, the query's being :math:`(x_q, 0, 0)`.

    .. math:: u_l = \mathrm{silu}(W_\mathrm{in}t_l), \qquad o = \text{selective layer}(u), \qquad
              \hat y = \sum_c v_c\,o_{q,c}\,\mathrm{silu}(W_z t_q + b_z)_c, \qquad
              \mathrm{silu}(z) = \frac{z}{1 + e^{-z}}

    Without the short convolution.

    Parameters
    ----------
    w_in, w_z
        Shape ``(p, d + 2)``.
    layer
        Over p channels.
    v, b_z
        Shape ``(p,)``.

    Source: Gu and Dao (2023), section 3.4.
    """

    def __init__(self, w_in: Float[Tensor, "p k"], layer: SelectiveLayer, w_z: Float[Tensor, "p k"],
                 b_z: Float[Tensor, " p"], v: Float[Tensor, " p"]):
        super().__init__()
        self.layer = layer
        for name, value in {"w_in": w_in, "w_z": w_z, "b_z": b_z, "v": v}.items():
            self.register_buffer(name, value)  # made by hand, not trained

    def channels(self, t: Float[Tensor, "*E l k"]) -> Float[Tensor, "*E l p"]:
        """What the selective layer reads."""
        return silu(torch.einsum("pk,...lk->...lp", self.w_in, t))

    @torch.no_grad()
    def forward(self, context: Context, query: Float[Tensor, "*E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries, each as if it came alone after the examples."""
        asked = pad(query, (0, 2))
        state = self.layer.last_state(self.channels(tokens(context, marked=True)))
        out = self.layer.read(state, self.channels(asked))
        gate = silu(torch.einsum("pk,...qk->...qp", self.w_z, asked) + self.b_z)
        return torch.einsum("p,...qp,...qp->...q", self.v, out, gate)


@checked_arguments
def average_of_gates(gamma: Float[Tensor, "d d"], slopes: Sequence[float], biases: Sequence[float],
                     mixture: Sequence[float], n: Count) -> MambaBlock:
    r"""The block that predicts :math:`x_q^\top\Gamma\sum_l\omega_l T(y_l)x_l` with
    :math:`T(y) = \sum_j v_j\,\mathrm{silu}(w_j y + b_j)`.

    The inputs pass the first nonlinearity unharmed because :math:`\mathrm{silu}(z) - \mathrm{silu}(-z) = z`. The decay
    is :math:`2^{-1/n}`.

    Parameters
    ----------
    gamma
        :math:`\Gamma`.
    slopes, biases, mixture
        w, b and v: a number for each gate, which takes one channel.
    n
        Examples of a prompt.
    """
    d, count = len(gamma), len(slopes)
    eye, like = torch.eye(d, dtype=gamma.dtype), {"dtype": gamma.dtype}
    rows = torch.stack([torch.tensor(slopes, **like), torch.tensor(biases, **like)], -1)
    w_in = torch.cat([pad(eye, (0, 2)), pad(-eye, (0, 2)), pad(rows, (d, 0))])
    layer = SelectiveLayer(2 * d + count, d, dtype=gamma.dtype)
    layer.w_b.data.copy_(pad(torch.cat([eye, -eye], -1), (0, count)))
    layer.w_c.data.copy_(pad(torch.cat([gamma.T, -gamma.T], -1), (0, count)))
    layer.b_delta.data.fill_(math.log(math.expm1(math.log(2) / n)))
    read = torch.cat([torch.zeros(2 * d, **like), torch.tensor(mixture, **like)])
    constant = torch.full((2 * d + count,), _BIAS, **like)
    return MambaBlock(w_in, layer, torch.zeros_like(w_in), constant, read / silu(constant))


@checked_arguments
def square_reader(d: Count, slope: float, bias: float, a: Positive, dtype: torch.dtype = torch.float64) -> MambaBlock:
    r"""The block that computes :math:`x_q^\top H x_q`, :math:`H = \sum_l\omega_l\,x_l x_l^\top`, the weights set by
    the labels: :math:`\omega_l = \frac{1 - e^{-a\Delta_l}}{a}e^{-a\sum_{m>l}\Delta_m}`,
    :math:`\Delta = \log(1 + e^{wy + b})`.

    The state holds the matrix H; the gate behind the scan multiplies the query in a second time. The query is held
    for no time, so it writes nothing: it carries no mark.
    """
    eye, far = torch.eye(d, dtype=dtype), 60.0  # softplus(-60) is nothing
    inputs = torch.cat([pad(eye, (0, 2)), pad(-eye, (0, 2))])
    label = torch.zeros(4, d + 2, dtype=dtype)
    label[0, d], label[1, d], label[2, d + 1], label[3, d + 1] = 1.0, -1.0, 1.0, -1.0
    w_in = torch.cat([inputs, inputs, label])
    signed = torch.cat([eye, -eye], -1)
    layer = SelectiveLayer(4 * d + 4, d, a=a, dtype=dtype)
    layer.w_b.data.copy_(pad(signed, (0, 2 * d + 4)))
    layer.w_c.data.copy_(pad(signed, (0, 2 * d + 4)))
    layer.w_delta.data[-4:] = torch.tensor([slope, -slope, bias + far, -bias - far], dtype=dtype)
    layer.b_delta.data.fill_(-far)
    w_z = pad(torch.cat([pad(eye, (0, 2))] * 2 + [pad(-eye, (0, 2))] * 2), (0, 0, 0, 4))
    sign = torch.ones(d, dtype=dtype)
    v = torch.cat([sign, -sign, -sign, sign, torch.zeros(4, dtype=dtype)])
    return MambaBlock(w_in, layer, w_z, torch.zeros(4 * d + 4, dtype=dtype), v)
