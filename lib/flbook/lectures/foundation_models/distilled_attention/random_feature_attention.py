r"""Linear attention with positive random features: softmax attention's kernel as an average over M features.

.. math:: e^{\langle x, y\rangle/\sqrt k} = \mathbb E_{z\sim N(0, I)}\,\phi(x; z)\,\phi(y; z), \qquad
          \phi(x; z) = \exp\big(\langle z, x\rangle/k^{1/4} - \|x\|^2/(2\sqrt k)\big)

With features, a sum over all earlier tokens is a running sum of M numbers for each coordinate of the values. So a
token costs the same however many stand before it.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, Seeds, checked_arguments

_CHUNK = 16  # tokens that are handled by one matrix product


def exponents(x: Float[Tensor, "*B n k"], z: Float[Tensor, "*C M k"]) -> Float[Tensor, "*D n M"]:
    r"""Logarithms of positive features: :math:`\langle z, x\rangle/k^{1/4} - \|x\|^2/(2\sqrt k)`.

    Examples
    --------
    >>> x, z = rng.normal((2, 3), 0, "points"), rng.normal((400_000, 3), 0, "features")
    >>> phi = exponents(x, z).exp()
    >>> kernel = (x[0] @ x[1] / 3**0.5).exp()
    >>> bool(((phi[0] * phi[1]).mean() / kernel - 1).abs() < 0.02)
    True
    """
    k = x.shape[-1]
    if z.shape[-1] != k:
        raise ValueError(f"features must have k = {k} coordinates, as queries and keys have; got {z.shape[-1]}")
    return x @ z.mT / k**0.25 - x.square().sum(-1, keepdim=True) / (2 * k**0.5)


def causal_average(query: Float[Tensor, "*B L M"], key: Float[Tensor, "*B L M"], value: Float[Tensor, "*C L v"],
                   chunk: int = _CHUNK) -> Float[Tensor, "*B L v"]:
    r"""Averages of the values up to each token, of weights :math:`\langle\phi(q_t), \phi(k_i)\rangle`.

    .. math:: o_t = \frac{\phi(q_t)^\top S_t}{\phi(q_t)^\top s_t}, \qquad
              S_t = S_{t-1} + \phi(k_t) v_t^\top, \quad s_t = s_{t-1} + \phi(k_t)

    query, key: their features. What came before a chunk of tokens is one state of M times (v + 1) numbers: the cost is
    linear in the length L.
    """
    value = torch.cat([value, torch.ones_like(value[..., :1])], -1)  # the last column sums the weights
    state, found = 0.0, []
    for start in range(0, query.shape[-2], chunk):
        q, k, v = (part[..., start : start + chunk, :] for part in (query, key, value))
        inside = (q @ k.mT).tril() @ v  # (*B, chunk, v + 1)
        found.append(inside + q @ state if start else inside)
        state = state + k.mT @ v  # (*B, M, v + 1)
    total = torch.cat(found, -2)
    return total[..., :-1] / total[..., -1:].clamp(min=torch.finfo(total.dtype).tiny)


class RandomFeatureAttention(nn.Module):
    r"""Causal linear attention in all heads of a layer; called like `flbook.models.transformer.softmax_attention`.

    .. math:: \hat K(q, k) = \sum_{m=1}^M \alpha_m\,\phi(q; z_m)\,\phi(k; z_m)

    Its parameters are ``z``, (*E, h, M, k), and ``log_weight``, the logarithms of :math:`\alpha`, (*E, h, M). A factor
    of all weights of a head changes nothing, since weights of a token are divided by their sum.

    Parameters
    ----------
    z
        Features at the start. Leading axes are those of an ensemble, which lead queries and keys too, of length 1 there
        if all members look at the same.
    log_weight
        0 if None, which is plain Monte Carlo for Gaussian z.

    Raises
    ------
    ValueError
        If features have other coordinates than queries and keys.

    Source: Choromanski et al. (2021), Lemma 1.

    Examples
    --------
    >>> attention = RandomFeatureAttention.draw(features=8, heads=2, k=4, seed=(0, 1, 2))
    >>> x = torch.zeros(1, 5, 2, 10, 4)  # 5 sequences of 10 tokens, the same for 3 draws of features
    >>> attention(x, x, x).shape
    torch.Size([3, 5, 2, 10, 4])
    """

    def __init__(self, z: Float[Tensor, "*E h M k"], log_weight: Float[Tensor, "*E h M"] | None = None):
        super().__init__()
        self.z = nn.Parameter(z)
        self.log_weight = nn.Parameter(torch.zeros_like(z[..., 0]) if log_weight is None else log_weight)

    @classmethod
    @checked_arguments
    def draw(cls, features: Count, heads: Count, k: Count, seed: Seeds = 0,
             role: str = "features") -> "RandomFeatureAttention":
        """Gaussian features, so many in each head; the first of more features are those of fewer."""
        return cls(rng.normal((features, heads, k), seed, role).transpose(-2, -3).float())

    def forward(self, query: Float[Tensor, "*B h L k"], key: Float[Tensor, "*B h L k"],
                value: Float[Tensor, "*B h L v"]) -> Float[Tensor, "*C h L v"]:
        """Each token's average of the values up to its own."""
        return causal_average(*self.features(query, key), value)

    def features(self, query: Float[Tensor, "*B h L k"],
                 key: Float[Tensor, "*B h L k"]) -> tuple[Float[Tensor, "*C h L M"], Float[Tensor, "*C h L M"]]:
        """Features of queries and keys, the weights with the keys, each scaled so that the largest are 1.

        A factor of a query, or one of all keys of a head, cancels in the averages.
        """
        z, log_weight = self.z[..., None, :, :, :], self.log_weight[..., None, :, None, :]  # an axis for sequences
        q, k = exponents(query, z), exponents(key, z) + log_weight
        return (q - q.detach().amax(-1, keepdim=True)).exp(), (k - k.detach().amax((-2, -1), keepdim=True)).exp()

    def rows(self, query: Float[Tensor, "*B h L k"], key: Float[Tensor, "*B h L k"]) -> Float[Tensor, "*C h L L"]:
        """The weights themselves, a row for each token; their cost is quadratic in the length."""
        q, k = self.features(query, key)
        weight = (q @ k.mT).tril()
        return weight / weight.sum(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny)
