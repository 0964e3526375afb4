r"""Label noise in the limit of orthogonal noise patches: gradient descent in two groups and one signal.

Let :math:`d \gg n^2`, so that noise patches are orthogonal to each other and to the signal, and let the start be small.
From the first step on every filter of sign j answers to :math:`j\mu`, and the share :math:`\varphi_i` of the filters of
sign :math:`\tilde y_i` that answer to :math:`\xi_i` stays what it was at random. Write S for what the network says
about the signal and :math:`N_i` for what it says about :math:`\xi_i`. With time in units of
:math:`nm/(\sigma_\xi^2 d)`, and :math:`\ell(z) = 1/(1 + e^z)` minus the slope of the loss at margin z,

.. math:: \dot S = \tfrac12 n\,\mathrm{SNR}^2 \big[(1 - p)\,E\,\ell(S + N_c) - p\,E\,\ell(N_f - S)\big],
          \qquad \dot N_c = \varphi\,\ell(S + N_c), \qquad \dot N_f = \varphi\,\ell(N_f - S)

for clean samples (margin S + N_c) and flipped ones (margin N_f - S). E averages over :math:`\varphi`, which is a
binomial number of m, over m.

Source: derived in the lecture on label noise; the margins are the prediction formulas of Han et al. (2025), Lemma 5.1.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import check_flips
from flbook.training.losses import logistic
from flbook.training.problem import Params, PopulationProblem


@dataclass(frozen=True)
class OrthogonalNoise(PopulationProblem):
    """The limit as a training problem for `flbook.training.fit.fit`; one step of size lr takes time lr.

    Parameters are ``{"signal": (*E,), "clean": (*E, classes), "flipped": (*E, classes)}``: S, and N for every class of
    samples, those seen by 0, 1, ..., m of m filters.
    """

    n_snr2: Float[Tensor, "*E"]  # n SNR^2
    flip_prob: Float[Tensor, "*#E"]  # p
    m: int | None = 10  # filters a sign; None is the limit of many, where every sample is seen by half of them

    def __post_init__(self):
        if not bool((torch.isfinite(self.n_snr2) & (self.n_snr2 > 0)).all()):
            raise ValueError(f"n_snr2 must be positive and finite; got {self.n_snr2.tolist()}")
        for p in self.flip_prob.flatten().tolist():
            check_flips(p)
        if self.m is not None and self.m < 1:
            raise ValueError(f"m must be at least 1, filters a sign, or None for many; got {self.m}")

    @property
    def seen(self) -> Float[Tensor, " classes"]:
        """The share of filters that see a sample, class by class."""
        like = self.n_snr2
        return like.new_tensor([0.5]) if self.m is None else torch.arange(self.m + 1).to(like) / self.m

    @property
    def weight(self) -> Float[Tensor, " classes"]:
        """How many samples are in each class: a binomial distribution."""
        if self.m is None:
            return self.n_snr2.new_ones(1)
        return self.n_snr2.new_tensor([math.comb(self.m, k) / 2**self.m for k in range(self.m + 1)])

    def start(self) -> Params:
        """A network that says nothing."""
        zero = torch.zeros_like(self.n_snr2)
        each = zero[..., None].expand(*zero.shape, len(self.seen))
        return {"signal": zero, "clean": each.clone(), "flipped": each.clone()}

    def margins(self, params: Params) -> tuple[Float[Tensor, "*E classes"], Float[Tensor, "*E classes"]]:
        """Observed label times output of clean and of flipped samples."""
        signal = params["signal"][..., None]
        return signal + params["clean"], params["flipped"] - signal

    def slope(self, params: Params) -> Params:
        """Minus the velocity."""
        clean, flipped = (torch.sigmoid(-margin) for margin in self.margins(params))
        p = self.flip_prob
        signal = self.n_snr2 / 2 * ((1 - p) * (clean @ self.weight) - p * (flipped @ self.weight))
        return {"signal": -signal, "clean": -self.seen * clean, "flipped": -self.seen * flipped}

    def train_loss(self, params: Params, *, x: None = None, observed: None = None) -> Float[Tensor, "*E"]:
        """Mean logistic loss over both groups."""
        clean, flipped = (logistic(margin, torch.ones_like(margin)) @ self.weight for margin in self.margins(params))
        return (1 - self.flip_prob) * clean + self.flip_prob * flipped

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of a direction in the numbers that are followed."""
        square = sum(direction[name].square().sum(-1) for name in ("clean", "flipped"))
        return (direction["signal"].square() + square).sqrt()

    def fitted_flipped(self, params: Params) -> Float[Tensor, "*E"]:
        """Share of flipped samples whose observed label is fitted."""
        return (self.margins(params)[1] > 0).to(self.n_snr2) @ self.weight

    def recycled_error(self, params: Params) -> Float[Tensor, "*E"]:
        """Test error on training noise under labels drawn anew, after the first step: wrong where N > S."""
        signal, p = params["signal"][..., None], self.flip_prob
        flipped, clean = ((params[name] > signal).to(signal) @ self.weight for name in ("flipped", "clean"))
        return (p * flipped + (1 - p) * clean) / 2


def fresh_flips_limit(n_snr2: float, flip_prob: float, time: Float[Tensor, " times"], phi: float = 0.5) -> Params:
    r"""S and N under labels that are right, and flipped afresh in every step: the mean of the flow, at the given times.

    .. math:: \dot N = \varphi\,\big(1 - p - \varsigma(S + N)\big), \qquad S = \frac{n\,\mathrm{SNR}^2}{2\varphi}\,N

    It comes to rest at the margin :math:`S + N = \log\frac{1 - p}{p}`. Source: derived in the lecture on label noise.

    Examples
    --------
    >>> rest = fresh_flips_limit(2.0, 0.2, torch.tensor([0.0, 60.0]).double())
    >>> rest["signal"][-1] / rest["clean"][-1], round(float((rest["signal"] + rest["clean"])[-1]), 3)
    (tensor(2., dtype=torch.float64), 1.386)
    """
    b, noise, now, found = n_snr2 / (2 * phi), torch.zeros_like(time[0]), 0.0, []
    for until in time.tolist():
        steps = max(1, round((until - now) / 0.01))
        for _ in range(steps):
            noise = noise + (until - now) / steps * phi * (1 - flip_prob - torch.sigmoid((1 + b) * noise))
        now = until
        found.append(noise)
    clean = torch.stack(found)
    return {"signal": b * clean, "clean": clean}
