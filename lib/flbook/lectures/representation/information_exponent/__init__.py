r"""How many samples show the direction behind :math:`y = h_k(\langle\beta, x\rangle)`: three statistics, any gate.

Claims: the average :math:`\sum_i T(y_i)x_i` finds beta from of order d samples exactly if the gate T correlates with
:math:`h_1`, at a rate set by one number, :math:`c_1^2/E T^2`; the top eigenvector of :math:`\sum_i T(y_i)x_ix_i^\top`
finds it above a threshold in n/d if T correlates with :math:`h_2` (Lu and Li 2020; Mondelli and Montanari 2019); one
gradient step of a neuron needs of order :math:`d^k` samples (Ben Arous et al. 2021).

Given the labels, what is orthogonal to beta is Gaussian. So average and gradient are drawn in two coordinates and one
length, exactly in law: d leaves the cost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices, hermite
from flbook.domains import Count, Natural, Positive, Range
from flbook.estimators import weighted_second_moment
from flbook.rng import normal, numpy_generator
from flbook.runs import Experiment, Grid, axis

BIAS = -1.0  # the gradient's neuron has the activation ReLU(a - 1), which has a part of degree 1, 2 and 3
TURN = 2 / 6**0.5  # the label at which h_3 turns
Gate = Literal["y", "y³", "tanh y", "-tanh y", "sign y", "small y", "E[z|y]", "1 - 1/E[z²|y]"]


def activation_slope(a: np.ndarray) -> np.ndarray:
    """The derivative of ReLU(a - 1)."""
    return (a > -BIAS) * 1.0


def activation_coefficients(degree: int) -> np.ndarray:
    """Hermite coefficients of ReLU(a - 1)."""
    return hermite.coefficients(lambda a: np.maximum(a + BIAS, 0), degree, (-BIAS,))


def gates(link: hermite.Series) -> dict[str, tuple[Callable, tuple[float, ...]]]:
    """Name -> gate, and the labels at which it jumps, for every `Gate`. The last two know the link."""
    return {
        "y": (lambda y: y, ()),
        "y³": (lambda y: y**3, ()),
        "tanh y": (np.tanh, ()),
        "-tanh y": (lambda y: -np.tanh(y), ()),
        "sign y": (np.sign, (0.0,)),
        "small y": (lambda y: y * (np.abs(y) < TURN), (-TURN, TURN)),
        "E[z|y]": (hermite.best_gate(link, 1), ()),
        "1 - 1/E[z²|y]": (best_matrix_gate(link), ()),
    }


def best_matrix_gate(link: Callable) -> Callable:
    r"""The gate :math:`1 - 1/E[z^2 \mid y]`, the best one for the matrix; cut off at -10, which matters little.

    Source: Mondelli and Montanari (2019), section 3; Luo, Alghamdi and Lu (2019).
    """
    second = hermite.best_gate(link, 2)
    return lambda y: 1 - 1 / np.maximum(1 + 2**0.5 * second(y), 1 / 11)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: the average, with five gates, on the third Hermite degree."""

    link: tuple[Count, ...] = axis([3], "degree k of the link")  # the label is h_k of the hidden coordinate
    gate: tuple[Gate, ...] = axis(["y", "y³", "sign y", "small y", "E[z|y]"], "gate T", "")
    d: tuple[Annotated[int, Range(3)], ...] = axis([256], "dimension d")
    alpha: tuple[Positive, ...] = axis([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], "samples over dimension n/d")
    seed: tuple[Natural, ...] = axis(range(40), "seed", "")
    statistic: Literal["average", "gradient", "matrix"] = "average"  # gradient of a neuron; a matrix's top eigenvector

    def check(self) -> None:
        """Refuse fewer samples than one, and a gradient of a neuron that has no part of the link's degree."""
        if min(self.alpha) * min(self.d) < 1:
            raise ValueError(f"alpha d must be at least 1, a sample; got alpha {min(self.alpha)} and d {min(self.d)}")
        parts = {k: abs(activation_coefficients(k)[k]) for k in self.link} if self.statistic == "gradient" else {}
        if unseen := [k for k, part in parts.items() if part < 1e-12]:  # its sign would be that of a rounding error
            raise ValueError(f"link must be degrees that the activation has a part of, not {unseen[0]}, for a gradient")

    @classmethod
    def one_step(cls, k: int) -> "Setting":
        """The gradient of a neuron on the polynomial of degree k = 1 or 2, over the samples that it should take."""
        low, high, points, seeds = {1: (2, 16, 8, 200), 2: (8, 2.5 * 512, 12, 120)}[k]
        return cls(link=(k,), gate=("y",), d=(32, 128, 512), statistic="gradient", seed=tuple(range(seeds)),
                   alpha=tuple(map(float, np.geomspace(low, high, points).round(2))))


_MATRIX = dict(link=(4,), gate=("y", "-tanh y", "1 - 1/E[z²|y]"), statistic="matrix")

experiment = Experiment(
    Setting, version=1, loops=("link", "gate", "d", "seed"), stored="longer",
    gives={"alignment": ("cosine with β", "1"), "overlap": ("squared cosine with β", "1")},
    presets={
        "tiny": ("Two gates and few samples", dict(
            alpha=(1.0, 4.0), d=(20,), seed=tuple(range(6)), gate=("y", "sign y"))),
        "labels": ("The average of the labels themselves, on the first three polynomials", dict(
            link=(1, 2, 3), gate=("y",), seed=tuple(range(200)))),
        "spectral": ("The matrix on the fourth polynomial, which no average can see", _MATRIX | dict(
            d=(160,), alpha=(0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0), seed=tuple(range(12)))),
        "longer": ("The threshold of the matrix at three dimensions", _MATRIX | dict(
            d=(100, 200, 400), seed=tuple(range(64)),
            alpha=(0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Cosine and squared cosine with beta of one statistic on one sample, for every alpha."""
    found = STATISTICS[s.statistic](s.link, s.gate, s.d, s.alpha, s.seed, device)
    return {"alignment": found, "overlap": found.square()}


run = experiment.run


def sample_sizes(alpha: tuple[float, ...], d: int) -> np.ndarray:
    """n for every alpha."""
    return np.array([round(a * d) for a in alpha])


def summed(t: np.ndarray, along: np.ndarray, sizes: np.ndarray, rest: float, device: str) -> tuple[Tensor, Tensor]:
    r""":math:`\sum_{i\le n} t_i x_i`: its part along one direction, its squared length across, for every n of `sizes`.

    `along` are the samples' coordinates in that direction. Across, the samples are independent of t, so the sum is,
    in law, :math:`(\sum t_i^2)^{1/2}` times a Gaussian vector of squared length `rest`.
    """
    t, along, last = (torch.as_tensor(part).to(devices.device(device)) for part in (t, along, sizes - 1))
    return (t * along).cumsum(0)[last], t.square().cumsum(0)[last] * rest


def average(k: int, name: str, d: int, alpha: tuple[float, ...], seed: int, device: str = "cpu") -> Tensor:
    """Cosine of the average with beta, for every alpha."""
    link, sizes = hermite.he(k), sample_sizes(alpha, d)
    z = numpy_generator(seed, "along beta").standard_normal(sizes.max())
    rest = numpy_generator(seed, f"across {d}").chisquare(d - 1)
    signal, across = summed(gates(link)[name][0](link(z)), z, sizes, rest, device)
    return signal / (signal.square() + across).sqrt()


def gradient(k: int, name: str, d: int, alpha: tuple[float, ...], seed: int, device: str = "cpu") -> Tensor:
    r"""Cosine with beta of a step on a neuron w, towards the side on which it should lie, for every alpha.

    The step is :math:`\sum_i T(y_i)\sigma'(a_i)x_i`, :math:`a = \langle w, x\rangle`, without its part along w; w has
    the overlap :math:`m = d^{-1/2}` with beta that is typical of a random one.
    """
    link, sizes, m = hermite.he(k), sample_sizes(alpha, d), d**-0.5
    a = numpy_generator(seed, "along the neuron").standard_normal(sizes.max())
    active = np.flatnonzero(activation_slope(a))
    p = numpy_generator(seed, f"across it {k}").standard_normal(len(active))  # towards beta; nobody sees the others
    y = link(m * a[active] + np.sqrt(1 - m**2) * p)
    t = np.append(0.0, gates(link)[name][0](y) * activation_slope(a[active]))
    counts = np.searchsorted(active, sizes) + 1
    rest = numpy_generator(seed, f"across {d}").chisquare(d - 2)
    signal, across = summed(t, np.append(0.0, p), counts, rest, device)
    length = (signal.square() + across).sqrt()
    side = float(np.sign(activation_coefficients(k)[k]))
    return side * (1 - m**2) ** 0.5 * signal / torch.where(length > 0, length, 1.0)  # no active sample: no direction


def step_law(k: int, d: int) -> tuple[float, float, float]:
    r"""Signal and noise of such a step: its mean across w is S, its variance V_v/n there and V/n in other coordinates.

    .. math:: S = k\,b_k m^{k-1}\sqrt{1 - m^2}, \qquad V = E\,h_k(z)^2\sigma'(a)^2, \qquad
              V_v = E\,h_k(z)^2\sigma'(a)^2\,\frac{(z - ma)^2}{1 - m^2} - S^2

    with b the activation's coefficients. All are sums of
    :math:`E\,h_j(\langle w, x\rangle)h_k(\langle\beta, x\rangle) = \delta_{jk}m^k`.
    """
    m, square = d**-0.5, hermite.he(k).power(2)
    last = 2 * k + 2

    def mean(power_z: int, power_a: int) -> float:
        """Of h_k(z)² z^i σ'(a)² a^j."""
        of_label = hermite.coefficients(lambda z: square(z) * z**power_z, last)
        of_slope = hermite.coefficients(lambda a: activation_slope(a) ** 2 * a**power_a, last, (-BIAS,))
        return float((of_label * of_slope * m ** np.arange(last + 1)).sum())

    signal = k * activation_coefficients(k)[k] * m ** (k - 1) * np.sqrt(1 - m**2)
    along = (mean(2, 0) - 2 * m * mean(1, 1) + m**2 * mean(0, 2)) / (1 - m**2)
    return signal, mean(0, 0), along - signal**2


def matrix(k: int, name: str, d: int, alpha: tuple[float, ...], seed: int, device: str = "cpu") -> Tensor:
    """Size of the cosine of the matrix's top eigenvector with beta, the first axis, for every alpha; drawn directly."""
    link = hermite.he(k)
    sizes = sample_sizes(alpha, d)
    x = torch.cat([normal((256, d), seed, f"rows {d} {part}") for part in range(-(-sizes.max() // 256))])
    t = torch.as_tensor(gates(link)[name][0](link(x[:, 0].numpy())))
    x, t = x.to(devices.device(device)), t.to(devices.device(device))
    found = [torch.linalg.eigh(weighted_second_moment(x[:n], t[:n]))[1][0, -1].abs() for n in sizes]
    return torch.stack(found)


STATISTICS = {"average": average, "gradient": gradient, "matrix": matrix}


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: the squared cosine in float32."""
    return dataset[["overlap"]].astype("float32")
