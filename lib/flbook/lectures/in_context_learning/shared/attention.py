r"""Linear attention on prompts: softmax attention without its softmax, merged to one matrix or in layers."""

import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.shapes import Context

Features = Callable[[Tensor], Tensor]


class LinearAttention(nn.Module):
    r"""One layer, keys and queries merged to one matrix.

    .. math:: \hat y_q = \frac1n\sum_{i=1}^n y_i\,\phi(x_i)^\top\Gamma\,\phi(x_q)

    Its parameter is ``gamma``, of shape ``(*E, k, k)``; it comes with those of `features`. It warns on a prompt of
    another length than that of training, with the floor of the risk: what stays of it on infinitely long prompts, for
    tasks of covariance I.

    Parameters
    ----------
    gamma
        :math:`\Gamma` at the start, shape ``(*E, k, k)``; k = d without features.
    n
        The prompt length that gamma was trained at, if it was.
    features
        :math:`\phi`: a network, which is then trained too, or any map of points ``(*E, n, d)`` to ``(*E, n, k)``.

    Raises
    ------
    ValueError
        If n is no whole number of at least 1, a context is empty, or gamma does not fit its (features of) inputs.

    Source: Ahn et al. (2024), Section 2; Wu et al. (2024).

    Examples
    --------
    >>> context = Context(torch.eye(2), torch.tensor([3.0, 5.0]))
    >>> LinearAttention(2 * torch.eye(2))(context, torch.eye(2)).tolist()
    [3.0, 5.0]
    """

    @checked_arguments
    def __init__(self, gamma: Float[Tensor, "*E k k"], n: Count | None = None, features: Features | None = None):
        super().__init__()
        self.gamma = nn.Parameter(gamma.clone())
        self.n, self.features = n, features

    def forward(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        x, y = context
        _check_context(context)
        if self.features is not None:
            x, query = self.features(x), self.features(query)  # (*E, n, k), (*E, q, k)
        if x.shape[-1] != self.gamma.shape[-1]:
            raise ValueError(f"inputs of shape {tuple(x.shape)} do not fit a gamma of shape {tuple(self.gamma.shape)}")
        if self.n is not None and self.n != x.shape[-2]:
            self._warn(x)
        summary = torch.einsum("...n,...nd->...d", y, x) / x.shape[-2]  # (*E, k): all that is kept of the context
        return torch.einsum("...d,...de,...qe->...q", summary, self.gamma, query)  # (*E, q)

    def _warn(self, x: Tensor) -> None:
        """Say the risk at infinite length, the squared norm of (I - Lambda Gamma) Lambda^1/2, Lambda of this prompt."""
        flat = x.detach().reshape(-1, x.shape[-1]).double()
        covariance = flat.T @ flat / len(flat)
        missing = torch.eye(len(covariance)).to(covariance) - covariance @ self.gamma.detach().to(covariance)
        floor = float(torch.einsum("...de,...ef,...df->...", missing, covariance, missing).mean())
        warnings.warn(f"gamma was trained on prompts of n = {self.n} examples and is shown n = {x.shape[-2]}: longer "
                      f"prompts do not bring its risk below {floor:.4g} (tasks of covariance I)", stacklevel=3)


class LinearTransformer(nn.Module):
    r"""Layers of linear attention on tokens :math:`z_i = (x_i, y_i)` and :math:`z_q = (x_q, 0)`.

    .. math:: z_j \leftarrow z_j + \frac1n\,P_l \sum_{i} z_i\,\langle z_i, Q_l z_j\rangle, \qquad
              \hat y_q = -[z_q]_{d+1}

    P merges values and projection (:math:`W_{PV}`), Q merges keys and queries (:math:`W_{KQ}`). Parameters: ``p`` and
    ``q`` of shape ``(*E, L, d + 1, d + 1)``.

    Parameters
    ----------
    d
        Coordinates of an input.
    layers
        L.
    start
        Standard deviation of the Gaussian entries of P and Q at the start.
    masked
        Does the sum run over the n examples alone? Otherwise over the query's token too.
    seed
        A tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, a context is empty, or its inputs do not fit.

    Source: Ahn et al. (2023), Section 2; von Oswald et al. (2023), for the minus sign of the read-out.

    Examples
    --------
    >>> context = Context(torch.eye(2), torch.tensor([3.0, 5.0]))
    >>> LinearTransformer.descent(2 * torch.eye(2)[None])(context, torch.eye(2)).tolist()
    [3.0, 5.0]
    """

    @checked_arguments
    def __init__(self, d: Count, layers: Count = 1, start: NonNegative = 0.01, masked: bool = True, seed: Seeds = 0,
                 dtype: torch.dtype = torch.float32):
        super().__init__()
        shape = (layers, d + 1, d + 1)
        self.p = nn.Parameter(start * rng.normal(shape, seed, "values").to(dtype))
        self.q = nn.Parameter(start * rng.normal(shape, seed, "keys and queries").to(dtype))
        self.masked = masked

    @classmethod
    def descent(cls, gamma: Float[Tensor, "*E L d d"], bend: Float[Tensor, "*E L d d"] | None = None,
                ) -> "LinearTransformer":
        r"""Layers that take steps :math:`\beta \leftarrow \beta + \Gamma_l^\top\frac1n\sum_i r_i x_i` on residuals r.

        bend: matrices B; the inputs move by :math:`x \leftarrow x - B_l S_l\Gamma_l x`, the correction called GD++.
        """
        model = cls(gamma.shape[-1], gamma.shape[-3], dtype=gamma.dtype)
        model.p, model.q = (nn.Parameter(part) for part in layers(gamma, bend))
        return model

    def forward(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries: every token attends to every other, the cost grows as the square of n."""
        x, y = context
        _check_context(context)
        n, ensemble = x.shape[-2], torch.broadcast_shapes(x.shape[:-2], query.shape[:-2])
        if x.shape[-1] + 1 != self.p.shape[-1]:
            raise ValueError(f"inputs of shape {tuple(x.shape)} do not fit layers of shape {tuple(self.p.shape)}")
        examples = torch.cat([x, y[..., None]], -1).expand(*ensemble, n, -1)[..., None, :, :]  # (*E, 1, n, d + 1)
        asking = torch.cat([query, torch.zeros_like(query[..., :1])], -1)
        asking = asking.expand(*ensemble, *asking.shape[-2:])[..., None, :]  # (*E, q, 1, d + 1)
        tokens = torch.cat([examples.expand(*asking.shape[:-2], n, -1), asking], -2)  # (*E, q, n + 1, d + 1)
        mask = torch.ones(n + 1, dtype=tokens.dtype, device=tokens.device)  # who is attended to
        mask[n] = 0.0 if self.masked else 1.0
        for layer in range(self.p.shape[-3]):
            p, q = (part[..., layer, :, :][..., None, :, :] for part in (self.p, self.q))  # (*E, 1, d + 1, d + 1)
            attention = torch.einsum("...ik,...kl,...jl->...ji", tokens, q, tokens) * mask  # (*E, q, n + 1, n + 1)
            tokens = tokens + torch.einsum("...ji,...il,...kl->...jk", attention, tokens, p) / n
        return -tokens[..., n, -1]  # (*E, q)


def layers(gamma: Float[Tensor, "*E L d d"], bend: Float[Tensor, "*E L d d"] | None = None) -> tuple[Tensor, Tensor]:
    r"""The P and Q, of shape ``(*E, L, d + 1, d + 1)``, of layers that descend: P = diag(B, 1), Q = -diag(Gamma, 0)."""
    p, q = (torch.nn.functional.pad(part, (0, 1, 0, 1))
            for part in (torch.zeros_like(gamma) if bend is None else bend, -gamma))
    p[..., -1, -1] = 1.0
    return p, q


def _check_context(context: Context) -> None:
    if context.x.shape[-2] < 1 or context.x.shape[:-1] != context.y.shape:
        raise ValueError(f"a context needs at least one example and a label for each; got inputs of shape "
                         f"{tuple(context.x.shape)} and labels of shape {tuple(context.y.shape)}")
