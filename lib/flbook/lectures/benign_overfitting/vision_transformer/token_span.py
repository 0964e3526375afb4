r"""Training a vision transformer in the span of its tokens, at a cost that does not depend on the dimension d.

The gradients of queries, keys and values are sums over tokens, each times a short vector:

.. math:: \nabla_{W_Q} = \sum_{i,\ell} x_{i,\ell}\, a_{i,\ell}^\top, \quad
          \nabla_{W_K} = \sum_{i,\ell} x_{i,\ell}\, b_{i,\ell}^\top, \quad
          \nabla_v = \sum_{i,\ell} c_{i,\ell}\,x_{i,\ell}

So the K = 2h + 1 columns of :math:`(W_Q, W_K, v)` stay in their start plus the span of M = 2 + n(L - 1) different
tokens, the two signals and the noise, and the M x K coefficients are the state. Inner products of tokens and initial
columns, the atoms, are all that training asks for; what a fresh noise token shows to the K trained columns is exactly
Gaussian, with their Gram matrix as covariance, so testing asks for no more.

Source: the model of Jiang et al. (2024); the algorithm is this book's.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import covariance_factor
from flbook.domains import Checked
from flbook.dynamics.wishart import bartlett
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignalSample
from flbook.models.patch_attention import VisionTransformer
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import EmpiricalProblem, Params


def atoms_of(sample: TwoSignalSample, model: VisionTransformer) -> Float[Tensor, "*E A A"]:
    """Inner products of all atoms, from given data and weights: two signals, n(L - 1) noise tokens, K columns."""
    xi = sample.xi.flatten(-3, -2)
    columns = torch.cat([model.q.detach().mT, model.k.detach().mT, model.v.detach()[..., None, :]], -2).to(xi)
    members = torch.broadcast_shapes(xi.shape[:-2], columns.shape[:-2])
    rows = torch.cat([part.expand(*members, *part.shape[-2:]) for part in (sample.mu.to(xi), xi, columns)], -2)
    return torch.einsum("...ad,...bd->...ab", rows, rows)


def draw_atoms(
    noise: int, h: int, d: int, snr: Float[Tensor, " snr"], sigma_0: float, sigma_v: float, seed: tuple[int, ...]
) -> Float[Tensor, "seed snr A A"]:
    """The same drawn without d-dimensional vectors, for signals of several strengths and noise tokens of length 1.

    Raises ValueError if d cannot hold the noise tokens and the initial columns as independent vectors.
    """
    check_room(noise, h, d)
    count = noise + 2 * h + 1
    size = torch.tensor([d**-0.5] * noise + [sigma_0] * (2 * h) + [sigma_v], dtype=torch.float64)
    members = []
    for one in seed:
        across = bartlett(count, np.array([d - 2]), one)[0] * size[:, None]
        along = rng.normal((count, 2), one, "along the signals") * size[:, None]
        cross = snr.double()[:, None, None] * along.T  # (snr, 2, count)
        corner = snr.double()[:, None, None] ** 2 * torch.eye(2, dtype=torch.float64)
        rest = (across @ across.T + along @ along.T).expand(len(snr), -1, -1)
        members.append(torch.cat([torch.cat([corner, cross], -1), torch.cat([cross.mT, rest], -1)], -2))
    return torch.stack(members)


def check_room(noise: int, h: int, d: int) -> None:
    """Refuse a dimension too small for noise tokens and initial columns to be independent beside two signals."""
    if d < (need := noise + 2 * h + 3):
        raise ValueError(f"d must be at least {need}, so that {noise} noise tokens and {2 * h + 1} initial columns are "
                         f"independent beside two signals; got d = {d}")


@dataclass(frozen=True)
class TokenSpan(EmpiricalProblem, Checked):
    """Networks whose K weight columns stay in their start plus the span of the M tokens: what they share.

    Parameters are ``{"columns": (*E, M, K)}``, the coefficients of the columns. A network says its outputs, their
    gradient, and what it makes of fresh samples (`test`).
    """

    coefficients = True

    gram: Float[Tensor, "*E A A"]  # inner products of the atoms
    observed: Float[Tensor, " n"]  # labels of the loss
    y: Float[Tensor, " n"]  # true labels
    tokens: int  # L
    sigma_xi: float  # standard deviation of a fresh noise coordinate
    loss: Any = logistic

    def __post_init__(self):
        super().__post_init__()
        check_labels(self.observed)
        check_labels(self.y)
        if self.width < 1 or self.y.shape != self.observed.shape:
            raise ValueError(f"{self.gram.shape[-1]} atoms do not fit labels of shapes {tuple(self.y.shape)} and "
                             f"{tuple(self.observed.shape)} with {self.tokens} tokens a sample")

    def to(self, *where: Any) -> "TokenSpan":
        """On another device or in another dtype."""
        return replace(self, **{name: getattr(self, name).to(*where) for name in ("gram", "observed", "y")})

    @property
    def span(self) -> int:
        """M, the different tokens."""
        return 2 + self.y.shape[-1] * (self.tokens - 1)

    @property
    def width(self) -> int:
        """K, the columns."""
        return self.gram.shape[-1] - self.span

    @cached_property
    def _token_gram(self) -> Tensor:
        return self.gram[..., : self.span, : self.span].contiguous()

    @cached_property
    def _token_start(self) -> Tensor:
        return self.gram[..., : self.span, self.span :].contiguous()

    def start(self) -> Params:
        """Coefficients before training: zero."""
        return {"columns": self.gram.new_zeros(*self.gram.shape[:-2], self.span, self.width)}

    def responses(self, params: Params) -> Float[Tensor, "*E M K"]:
        """What the columns make of each different token."""
        return self._token_start + self._token_gram @ params["columns"]

    def samples(self, responses: Float[Tensor, "*E M K"]) -> Float[Tensor, "*E n L K"]:
        """From different tokens to those of the samples."""
        signal = responses[..., (self.y < 0).long(), :][..., None, :]
        return torch.cat([signal, responses[..., 2:, :].unflatten(-2, (-1, self.tokens - 1))], -2)

    def gathered(self, each: Float[Tensor, "*E n L K"]) -> Float[Tensor, "*E M K"]:
        """The adjoint of `samples`: the shared signals collect from all their samples."""
        plus = (self.y > 0).to(each)
        signals = torch.einsum("cn,...nk->...ck", torch.stack([plus, 1 - plus]), each[..., 0, :])
        return torch.cat([signals, each[..., 1:, :].flatten(-3, -2)], -2)

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for."""
        c = direction["columns"]
        return (c * (self._token_gram @ c)).sum((-2, -1)).sqrt()

    def column_gram(self, params: Params) -> Float[Tensor, "*E K K"]:
        """Inner products of the trained columns, in float64."""
        c, gram = params["columns"].double(), self.gram.double()
        eye = torch.eye(self.width, dtype=c.dtype, device=c.device).expand(*c.shape[:-2], -1, -1)
        full = torch.cat([c, eye], -2)
        return full.mT @ gram @ full

    def fresh(self, params: Params, standard: Float[Tensor, "points N K"]) -> Float[Tensor, "*E 2 points L K"]:
        """What the columns make of fresh samples of label +1 and of -1 that share their N = L - 1 noise tokens."""
        cov = self.column_gram(params)
        factor = self.sigma_xi * covariance_factor(cov)
        noise = torch.einsum("plj,...kj->...plk", standard.double().to(factor.device), factor).to(self.gram)
        signal = self.responses(params)[..., :2, None, None, :].expand(*cov.shape[:-2], 2, len(standard), 1, -1)
        return torch.cat([signal, noise[..., None, :, :, :].expand(*signal.shape[:-2], -1, -1)], -2)


@dataclass(frozen=True)
class SpanTraining(TokenSpan):
    """The training problem of `VisionTransformer` on `TwoSignals`, in coefficients on the tokens.

    The K = 2 h + 1 columns are queries, keys and value side by side. With `fixed_attention` queries and keys stay as
    they are: mean pooling, up to the small start.
    """

    fixed_attention: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.width % 2 == 0:
            raise ValueError(f"queries, keys and one value are an odd number of columns; got {self.width}")

    @classmethod
    def of(cls, data: Any, sample: TwoSignalSample, model: VisionTransformer) -> "SpanTraining":
        """The same problem as ``Training(model, sample.x, sample.observed)``; labels are those of the first member."""
        y, observed = (part.reshape(-1, part.shape[-1])[0] for part in (sample.y, sample.observed))
        return cls(atoms_of(sample, model), observed, y, data.tokens, data.sigma_xi)

    def attend(self, tokens: Float[Tensor, "*E n L K"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, attention and values of samples of tokens."""
        h = self.width // 2
        query, key, value = tokens[..., :h], tokens[..., h : 2 * h], tokens[..., -1]
        return query, key, (query @ key.mT).softmax(-1), value

    def attention(self, params: Params) -> Float[Tensor, "*E n L L"]:
        """Who looks at whom in the training samples."""
        return self.attend(self.samples(self.responses(params)))[2]

    def class_means(self, params: Params) -> tuple[Float[Tensor, "*E 2 h"], Float[Tensor, "*E 2 h"]]:
        """Sum of a sample's queries, and lead of its signal's key over its mean key, each the mean over a class."""
        query, key, _, _ = self.attend(self.samples(self.responses(params)))
        each = query.sum(-2), key[..., 0, :] - key.mean(-2)
        return tuple(torch.stack([part[..., self.y == sign, :].mean(-2) for sign in (1, -1)], -2) for part in each)

    def score_gap(self, params: Params) -> Float[Tensor, "*E"]:
        """By how much the mean query scores the signal above the mean noise token, the mean over both classes."""
        queries, lead = self.class_means(params)
        return (queries * lead).sum(-1).mean(-1) / (self.tokens - 1)

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples."""
        _, _, weight, value = self.attend(self.samples(self.responses(params)))
        return (weight.mean(-2) * value).sum(-1)

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coefficients on the tokens; not the derivative in the coefficients."""
        query, key, weight, value = self.attend(self.samples(self.responses(params)))
        answer = weight @ value[..., None]  # (*E, n, L, 1)
        loss_derivative = self.loss.slope(answer.mean((-2, -1)), observed) / (observed.shape[-1] * self.tokens)
        loss_derivative = loss_derivative[..., None, None]
        score = loss_derivative * weight * (value[..., None, :] - answer)
        parts = [score @ key, score.mT @ query, loss_derivative * weight.sum(-2)[..., None]]
        if self.fixed_attention:
            parts[:2] = [torch.zeros_like(part) for part in parts[:2]]
        return {"columns": self.gathered(torch.cat(parts, -1))}

    def test(self, params: Params, standard: Tensor) -> tuple[Float[Tensor, "*E 2 points L L"], Tensor]:
        """Attention and outputs ``(*E, 2, points)`` on fresh samples of either label."""
        _, _, weight, value = self.attend(self.fresh(params, standard))
        return weight, (weight.mean(-2) * value).sum(-1)

    def frozen(self) -> "SpanTraining":
        """Attention stays as it is at the start, the value trains."""
        return replace(self, fixed_attention=True)
