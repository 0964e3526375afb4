r"""Linear attention on prompts: softmax attention without its softmax, merged to one matrix or in layers."""

import warnings
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.shapes import Context

Features = Callable[[Tensor], Tensor]


class FeatureMap(nn.Module):
    r"""A small network :math:`\phi: R^d \to R^k` in front of attention, applied to examples and queries alike.

    widths: d, the hidden layers, k. Between the layers stands `activation`, after the last one nothing. Parameters
    start Gaussian, of variance one over the width below, biases at zero; a tuple of seeds is a leading axis.
    """

    def __init__(self, widths: tuple[int, ...], activation: Features = torch.relu, seed: int | tuple[int, ...] = 0,
                 dtype: torch.dtype = torch.float32):
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(f"widths must name at least input and output, each at least 1; got {widths}")
        pairs = list(zip(widths, widths[1:], strict=False))
        weights = [rng.normal((b, a), seed, f"feature layer {k}").to(dtype) / a**0.5 for k, (a, b) in enumerate(pairs)]
        self.weights = nn.ParameterList(nn.Parameter(w) for w in weights)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros_like(w[..., 0])) for w in weights)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*#E n d"]) -> Float[Tensor, "*E n k"]:
        """Features of n inputs."""
        for layer, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.einsum("...nd,...kd->...nk", self.activation(x) if layer else x, w) + b[..., None, :]
        return x


class LinearAttention(nn.Module):
    r"""One layer, keys and queries merged to one matrix.

    .. math:: \hat y_q = \frac1n\sum_{i=1}^n y_i\,\phi(x_i)^\top\Gamma\,\phi(x_q)

    The parameter ``gamma`` has shape ``(*E, k, k)``, k = d without features.

    gamma: its value at the start. n: the prompt length that gamma was trained at, if it was. features: a network, which
    is then trained too, or any map of points (*E, n, d) to (*E, n, k). covariance: that of the
    (features of the) inputs; if None, the warning below takes the second moment of the prompt itself.

    Warns if gamma was trained at another length than that of the prompt, with the floor of the risk: what is left of
    it on infinitely long prompts, for tasks of covariance I.
    Source: Ahn et al. (2024), Section 2; Wu et al. (2024).
    """

    def __init__(self, gamma: Float[Tensor, "*E k k"], n: int | None = None, features: Features | None = None,
                 covariance: Float[Tensor, "k k"] | None = None):
        super().__init__()
        if n is not None and n < 1:
            raise ValueError(f"n must be at least 1, the examples of a prompt; got {n}")
        self.gamma = nn.Parameter(gamma.clone())
        self.n, self.features, self.covariance = n, features, covariance

    def floor(self, covariance: Float[Tensor, "*#E k k"]) -> Float[Tensor, "*E"]:
        r"""The risk at :math:`n = \infty` for tasks of covariance I: the squared norm of (I - Lambda Gamma) Lambda^1/2.
        """
        eye = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
        left = eye - covariance @ self.gamma.detach().to(covariance)
        return torch.einsum("...de,...ef,...df->...", left, covariance, left)

    def forward(self, context: Context, query: Float[Tensor, "*#E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries."""
        x, y = context
        _check_context(context)
        if self.features is not None:
            x, query = self.features(x), self.features(query)
        if x.shape[-1] != self.gamma.shape[-1]:
            raise ValueError(f"inputs of shape {tuple(x.shape)} do not fit a gamma of shape {tuple(self.gamma.shape)}")
        if self.n is not None and self.n != x.shape[-2]:
            self._warn(x)
        pull = torch.einsum("...n,...nd->...d", y, x) / x.shape[-2]
        return torch.einsum("...d,...de,...qe->...q", pull, self.gamma, query)

    def _warn(self, x: Tensor) -> None:
        flat = x.detach().reshape(-1, x.shape[-1]).double()
        covariance = flat.T @ flat / len(flat) if self.covariance is None else self.covariance.double()
        floor = float(self.floor(covariance).mean())
        warnings.warn(f"gamma was trained on prompts of n = {self.n} examples and is shown n = {x.shape[-2]}: longer "
                      f"prompts do not bring its risk below {floor:.4g} (tasks of covariance I)", stacklevel=3)


class LinearTransformer(nn.Module):
    r"""Layers of linear attention on tokens :math:`z_i = (x_i, y_i)` and :math:`z_q = (x_q, 0)`.

    .. math:: z_j \leftarrow z_j + \frac1n\,P_l \sum_{i} z_i\,\langle z_i, Q_l z_j\rangle, \qquad
              \hat y_q = -[z_q]_{d+1}

    P merges values and projection (:math:`W_{PV}`), Q merges keys and queries (:math:`W_{KQ}`). With ``masked=True``
    the sum runs over the n examples, otherwise over the query's token too. Parameters ``p`` and ``q`` have shape
    ``(*E, L, d + 1, d + 1)`` (k + 1 with features) and start Gaussian with standard deviation `start`.

    Source: Ahn et al. (2023), Section 2; von Oswald et al. (2023), for the minus sign of the read-out.
    """

    def __init__(self, d: int, layers: int = 1, start: float = 0.01, masked: bool = True,
                 features: nn.Module | None = None, seed: int | tuple[int, ...] = 0,
                 dtype: torch.dtype = torch.float32):
        super().__init__()
        if d < 1 or layers < 1:
            raise ValueError(f"d and layers must be at least 1; got d={d}, layers={layers}")
        shape = (layers, d + 1, d + 1)
        self.p = nn.Parameter(start * rng.normal(shape, seed, "values").to(dtype))
        self.q = nn.Parameter(start * rng.normal(shape, seed, "keys and queries").to(dtype))
        self.masked, self.features = masked, features

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
        if self.features is not None:
            x, query = self.features(x), self.features(query)
        n, ensemble = x.shape[-2], torch.broadcast_shapes(x.shape[:-2], query.shape[:-2])
        if x.shape[-1] + 1 != self.p.shape[-1]:
            raise ValueError(f"inputs of shape {tuple(x.shape)} do not fit layers of shape {tuple(self.p.shape)}")
        examples = torch.cat([x, y[..., None]], -1).expand(*ensemble, n, -1)[..., None, :, :]
        asking = torch.cat([query, torch.zeros_like(query[..., :1])], -1)
        asking = asking.expand(*ensemble, *asking.shape[-2:])[..., None, :]
        tokens = torch.cat([examples.expand(*asking.shape[:-2], n, -1), asking], -2)  # a prompt for each query
        seen = torch.ones(n + 1, dtype=tokens.dtype, device=tokens.device)
        seen[n] = 0.0 if self.masked else 1.0
        for layer in range(self.p.shape[-3]):
            p, q = (part[..., layer, :, :][..., None, :, :] for part in (self.p, self.q))
            attention = torch.einsum("...ik,...kl,...jl->...ji", tokens, q, tokens) * seen
            tokens = tokens + torch.einsum("...ji,...il,...kl->...jk", attention, tokens, p) / n
        return -tokens[..., n, -1]


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
