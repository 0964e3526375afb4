r"""The averaging classifier :math:`w = \sum_i \tilde y_i x_i` on one patch :math:`x = y\mu + \xi`: simulated and exact.

Claim: its test error is `flbook.theory.averaging_error`,

.. math:: \Phi\Big(-\frac{(1-2p)\sqrt r}{\sqrt{1 + (1-2p)^2\, n\,\mathrm{SNR}^2}}\Big), \qquad
          r = \frac{n\|\mu\|^4}{\sigma_\xi^4 d}

in the mean over training sets, up to terms of relative order 1/d and :math:`\sigma_\xi^2/(n\|\mu\|^2)`.

Source: derived in the lecture `signal_noise_model`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from scipy.special import ndtr

from flbook import theory
from flbook.data.signal_noise import Sample, SignalNoise
from flbook.domains import Count, FlipProbability, Natural, Positive, Range
from flbook.estimators import averaging
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: seconds of one core."""

    flip_prob: tuple[FlipProbability, ...] = axis([0.0, 0.1, 0.2], "flipped p")  # exactly pn labels flipped
    r: tuple[Positive, ...] = axis([0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "r = n|μ|⁴ / σ⁴d")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 20  # training samples
    d: Annotated[int, Range(2)] = 400  # dimension
    sets: Count = 100  # training sets a seed


experiment = Experiment(
    Setting, version=1, loops=("flip_prob", "seed", "r"), devices=("cpu",),  # most of the time goes into drawing
    gives={
        "test_error": ("test error", "fraction", ("flip_prob", "r", "seed")),
        "closed_form": ("test error, closed_form", "fraction", ("flip_prob", "r")),
        "exact": ("test error, exact", "fraction", ("flip_prob", "r")),
        "quadrature": ("test error, quadrature", "fraction", ("flip_prob", "r")),
    },
    presets={
        "tiny": ("Twenty training sets a seed", dict(
            flip_prob=(0.0, 0.2), r=(0.5, 5.0), seed=(0, 3), n=10, d=60, sets=20)),
    },
)


def strength(setting: Setting, r: float) -> float:
    """|mu| in units of sigma_xi, from r."""
    return (r * setting.d / setting.n) ** 0.25


@experiment.shared("flip_prob", "seed")
def drawn(s: Setting, device: str) -> Sample:
    """A seed's training sets."""
    data = SignalNoise(n=s.n, d=s.d, mu_norm=1.0, flip_prob=s.flip_prob)
    return data.draw(tuple(range(s.sets * s.seed, s.sets * (s.seed + 1))))


@experiment.shared("flip_prob", "r")
def said(s: Setting, device: str) -> dict[str, float]:
    """What three formulas say."""
    formulas = {"closed_form": theory.averaging_error, "exact": exact_error, "quadrature": quadrature_error}
    return {name: formula(s.n, strength(s, s.r), s.d, s.flip_prob) for name, formula in formulas.items()}


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor | float]:
    r"""Mean test error over the training sets of a seed, and the formulas.

    Given w the error is exactly :math:`\Phi(-\langle w, \mu\rangle / (\sigma_\xi\|w\|))`; no test data is drawn.
    """
    sample, mu_norm = drawn(s, device), strength(s, s.r)
    w = averaging(mu_norm * sample.x[..., 0, :] + sample.xi, sample.observed)
    error = torch.special.ndtr(-mu_norm * (w @ sample.mu) / w.norm(dim=-1))
    return {"test_error": error.mean()} | said(s, device)


run = experiment.run


def exact_error(n: int, mu_norm: float, d: int, flip_prob: float = 0.0, sigma_xi: float = 1.0) -> float:
    r"""Test error of the averaging classifier, averaged over training sets, exactly, for any n, d and signal.

    .. math:: \frac12 - \frac1\pi \int_0^\infty \frac{1}{(1 + z^2)^{d/2}}\,
              e^{-\frac{(g^2 + h^2) z^2}{2(1 + z^2)}} \sin\Big(\frac{g h z}{1 + z^2}\Big)\,\frac{dz}{z},
              \quad g = \frac{\|\mu\|}{\sigma_\xi},\ h = (1 - 2p)\sqrt n\,g

    With exactly pn flips. Derived in the lecture: the output is a sum of d products of independent normal numbers, its
    characteristic function inverted by Gil-Pelaez. Integrated over the angle whose tangent is z, as far as it counts.
    """
    g = mu_norm / sigma_xi
    h = (1 - 2 * flip_prob) * np.sqrt(n) * g
    node, weight = np.polynomial.legendre.leggauss(300)
    half = min(np.pi / 2, 12 / np.sqrt(d + g**2 + h**2)) / 2  # beyond, the integrand is below exp(-70)
    sin, cos = np.sin(half * (node + 1)), np.cos(half * (node + 1))
    decay = np.exp((d - 1) * np.log(cos) - (g**2 + h**2) * sin**2 / 2)
    return float(0.5 - half / np.pi * (weight * decay * np.sin(g * h * sin * cos) / sin).sum())


def quadrature_error(n: int, mu_norm: float, d: int, flip_prob: float = 0.0, sigma_xi: float = 1.0) -> float:
    r"""The same for d >= 50 by another way: the error given w, averaged over the two numbers through which w enters.

    :math:`\langle w, \mu\rangle` is normal, what is left of :math:`\|w\|^2` chi-squared with d - 1 degrees of freedom.
    """
    g = mu_norm / sigma_xi
    node, weight = np.polynomial.hermite_e.hermegauss(80)
    along = (1 - 2 * flip_prob) * np.sqrt(n) * g + node[:, None]
    width = np.sqrt(2 * (d - 1))
    rest = d - 1 + width * np.linspace(max(-10.0, -(d - 2) / width), 14, 3000)
    density = np.exp(((d - 1) / 2 - 1) * np.log(rest / d) - (rest - d) / 2)
    return float(weight @ ndtr(-g * along / np.sqrt(along**2 + rest)) @ density / (weight.sum() * density.sum()))
