"""Token selection: one token of a sample carries its class, two hint at either class, the others are noise."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import PatchSize, flipped_labels
from flbook.domains import Checked, Count, FlipProbability, Fraction, Positive, Range

RELEVANT, ALIGNED, OPPOSED = 0, 1, 2  # places of the tokens with signal


class TokenSample(NamedTuple):
    """Training or test data of `TokenSelection`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n L d"]  # tokens
    observed: Float[Tensor, "*E n"]  # labels to train on, some of them flipped
    y: Float[Tensor, "*E n"]  # true labels
    mu: Float[Tensor, "2 d"]  # signals of the classes +1 and -1


@dataclass(frozen=True)
class TokenSelection(Checked):
    r"""L tokens :math:`x_\ell = s_\ell + \xi_\ell` with noise :math:`\xi_\ell \sim N(0, \sigma_\xi^2 I)`.

    The signals are :math:`s_1 = \mu_y` (relevant), :math:`s_2 = \varrho\mu_y` and :math:`s_3 = \varrho\mu_{-y}` (weakly
    relevant, aligned and opposed) and 0 for all others, with :math:`\mu_\pm` orthogonal and of length `mu_norm`.

    Parameters
    ----------
    n
        Training samples.
    d
        Dimension of a token, at least 2.
    mu_norm
        Signal strength :math:`\|\mu\|`.
    varrho
        Share of the signal in a weakly relevant token, in [0, 1).
    tokens
        L, at least 4: one relevant, two hints, one irrelevant.
    flip_prob
        Share p of labels flipped, exactly round(pn) of them, in [0, 1/2).
    sigma_xi
        Standard deviation of a noise coordinate.

    Raises
    ------
    ValueError
        If a field is outside its domain.

    Source: Sakamoto and Sato (2025), Section 3 and the published code.

    Examples
    --------
    >>> TokenSelection(n=4, d=50).draw(seed=0).x.shape
    torch.Size([4, 8, 50])
    """

    n: Count = 20
    d: PatchSize = 2000
    mu_norm: Positive = 20.0
    varrho: Fraction = 0.1
    tokens: Annotated[int, Range(4)] = 8
    flip_prob: FlipProbability = 0.2
    sigma_xi: Positive = 1.0

    @property
    def snr(self) -> float:
        r"""Signal-to-noise ratio :math:`\|\mu\| / (\sigma_\xi \sqrt d)`."""
        return self.mu_norm / (self.sigma_xi * math.sqrt(self.d))

    @property
    def mu(self) -> Float[Tensor, "2 d"]:
        """The two signals, along the first two axes."""
        return self.mu_norm * torch.eye(2, self.d, dtype=torch.float64)

    @property
    def head(self) -> Float[Tensor, " d"]:
        r"""The fixed head :math:`\nu = (\mu_+ - \mu_-)/(\sqrt2\,\|\mu\|^2)`: it knows the signals."""
        return (self.mu[0] - self.mu[1]) / (math.sqrt(2) * self.mu_norm**2)

    def pattern(self, y: Float[Tensor, "*E n"]) -> Float[Tensor, "*E n L 2"]:
        """How much of either signal each token of a sample carries."""
        plus = (y > 0).double()
        own, other = torch.stack([plus, 1 - plus], -1), torch.stack([1 - plus, plus], -1)
        share = torch.zeros(*y.shape, self.tokens, 2, dtype=torch.float64)
        share[..., RELEVANT, :], share[..., ALIGNED, :] = own, self.varrho * own
        share[..., OPPOSED, :] = self.varrho * other
        return share

    def noise(self, n: int, seed: int | tuple[int, ...], role: str) -> Float[Tensor, "*E n L d"]:
        """Noise of n samples."""
        return rng.normal((n, self.tokens, self.d), seed, role).mul_(self.sigma_xi)

    def draw(self, seed: int | tuple[int, ...] = 0) -> TokenSample:
        """A training sample in float64 on the CPU; a tuple of seeds gives one leading ensemble axis."""
        y, observed = flipped_labels(self.n, self.flip_prob, seed)
        return self._sample(y, observed, self.noise(self.n, seed, "noise"))

    def draw_test(self, points: int, seed: int | tuple[int, ...] = 0) -> TokenSample:
        """Fresh samples, classes balanced, no label flipped; their noise is drawn apart from the training noise."""
        y, observed = flipped_labels(points, 0.0, seed)
        return self._sample(y, observed, self.noise(points, seed, "test noise"))

    def _sample(self, y: Tensor, observed: Tensor, noise: Tensor) -> TokenSample:
        signal = torch.einsum("...nlc,cd->...nld", self.pattern(y), self.mu)
        return TokenSample(noise.add_(signal), observed, y, self.mu)


def fresh_tokens(
    u_mu: Float[Tensor, "*E 2"],
    u_u: Float[Tensor, "*E"],
    mu_norm: Float[Tensor, "*#E"],
    pattern: Float[Tensor, "L 2"],
    standard: Float[Tensor, "points directions"],
    sigma_xi: float = 1.0,
) -> tuple[Float[Tensor, "*E points L"], Float[Tensor, "*E points L"]]:
    r"""Exact draws of what a fresh sample shows to the query and to the head: scores and values of its tokens.

    A fresh token meets the query u and the head :math:`\nu = (\mu_+ - \mu_-)/(\sqrt2\|\mu\|^2)` in a signal part, fixed
    by its `pattern`, and in a Gaussian pair of covariance :math:`\sigma_\xi^2` times their Gram matrix.

    Parameters
    ----------
    u_mu, u_u
        Inner products of u with the two signals, shape ``(*E, 2)``, and with itself, shape ``*E``.
    mu_norm
        Signal strength, shape ``*E``.
    pattern
        How much of either signal each token carries, shape ``(L, 2)``; see `TokenSelection.pattern`.
    standard
        Standard normal numbers, shape ``(points, 2 L)``: L for the part of the noise along the head, then L for the
        rest of u.
    sigma_xi
        Standard deviation of a noise coordinate.

    Returns
    -------
    tuple
        Scores and values, each of shape ``(*E, points, L)``.
    """
    size = mu_norm.to(u_mu)[..., None, None]
    along, across = standard.to(u_mu).unflatten(-1, (2, -1)).unbind(-2)  # each (points, L)
    u_head = ((u_mu[..., 0] - u_mu[..., 1]) / math.sqrt(2))[..., None, None] / size  # along the unit head
    rest = (u_u[..., None, None] - u_head**2).clamp(min=0).sqrt()
    scores = torch.einsum("...c,lc->...l", u_mu, pattern.to(u_mu))[..., None, :]
    scores = scores + sigma_xi * (u_head * along + rest * across)
    values = (pattern[:, 0] - pattern[:, 1]).to(u_mu) / math.sqrt(2) + sigma_xi * along / size
    return scores, values.expand_as(scores)
