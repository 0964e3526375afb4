r"""SiLU channels of a Mamba block whose gate is trained: behind a readout that knows the link.

.. math:: T(y) = \sum_k v_k\,\mathrm{silu}(w_k y + b_k), \quad s = \sum_l\alpha^{n-l}\,T(y_l)\,x_l, \quad
          \hat y = c\,h_3\big(\langle s/\|s\|, x_q\rangle\big), \quad L = \tfrac12\,\mathrm{mean}\,(\hat y - y_q)^2
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize, silu

from flbook import hermite, rng
from flbook.lectures.in_context_learning.mamba_features import LINK
from flbook.lectures.in_context_learning.mamba_features import gates as law
from flbook.lectures.in_context_learning.shared import forgetting
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.shapes import Context

Gate = dict[str, Tensor]  # w, b and v of the channels, shape (*E, K), and the readout's scale c, shape (*E,)


def random_gate(channels: int, seeds: tuple[int, ...]) -> Gate:
    """Slopes and biases of standard deviation 2, weights of 1 over the number of channels, and a scale of 0."""
    draw = {name: rng.normal((channels,), seeds, f"gate {name}") for name in "wbv"}
    sizes = {"w": 2.0, "b": 2.0, "v": 1 / channels}
    readout = {"c": torch.zeros(len(seeds), dtype=torch.float64)}
    return {name: sizes[name] * value.double() for name, value in draw.items()} | readout


def loss(gate: Gate, context: Context, query: Float[Tensor, "*E T q d"], target: Float[Tensor, "*E T q"]) -> Tensor:
    """Half the mean squared error at the queries of T prompts, shape ``*E``."""
    x, y = context
    w, b, v = (gate[name][..., None, None, :] for name in "wbv")
    written = (silu(y[..., None] * w + b) * v).sum(-1)
    weight = float(forgetting.decay(y.shape[-1])) ** torch.arange(y.shape[-1] - 1, -1, -1).to(y)
    state = torch.einsum("...l,...ld->...d", written * weight, x)
    along = torch.einsum("...d,...qd->...q", normalize(state, dim=-1), query)
    answer = gate["c"][..., None, None] * hermite.polynomial(3, along)
    return (answer - target).square().mean((-2, -1)) / 2


def train(
    gate: Gate, context: Context, query: Float[Tensor, "*E T q d"], target: Float[Tensor, "*E T q"], steps: int,
    lr: float,
) -> Gate:
    """The gate after so many steps of Adam on all prompts; members do not see each other."""
    params = {name: value.clone().requires_grad_() for name, value in gate.items()}
    optimizer = torch.optim.Adam(params.values(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(params, context, query, target).sum().backward()
        optimizer.step()
    return {name: value.detach() for name, value in params.items()}


def trained(seeds: tuple[int, ...], n: int = 128, d: int = 8, channels: int = 8, prompts: int = 48, queries: int = 16,
            steps: int = 200, lr: float = 0.05) -> Gate:
    """Gates trained from random starts, each on prompts of its own."""
    data = SingleIndexPrompts(n=n, d=d, r=d, link=LINK.coefficients, queries=queries).draw(prompts, seeds)
    return train(random_gate(channels, seeds), data.context, data.query, data.target, steps, lr)


def written(gate: Gate, member: int, y: np.ndarray) -> np.ndarray:
    """T of one member at labels y."""
    w, b, v = (gate[name][member].numpy() for name in "wbv")
    return law.silu(np.asarray(y)[..., None] * w + b) @ v


def strengths(gate: Gate) -> Sequence[float]:
    r"""The strength :math:`c_1^2/E\,T^2` of every member's gate for labels :math:`h_3`."""
    return [hermite.strength(lambda y, m=m: written(gate, m, y), LINK, 1) for m in range(len(gate["c"]))]
