r"""The risk on :math:`y = h_3(\langle\beta, x\rangle)`: linear regression, the best kernel, and a gate's direction.

Claims: linear regression explains nothing at any n. The kernel of all Hermite polynomials of degree three in d
variables, told the degree of the target and nothing else to waste samples on, leaves a risk of :math:`1 - n/D` with
:math:`D = \binom{d+2}{3}`, so it needs of order d^3 samples. A direction from one gated average, and a fit of one
variable along it, need of order d.

No test data is drawn: every risk is exact in the estimate, because Hermite polynomials are orthogonal.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import devices, hermite
from flbook.domains import Count, Natural
from flbook.estimators import averaging
from flbook.rng import normal
from flbook.runs import Experiment, Grid, axis

MODELS = ("linear", "kernel", "sign y", "E[z|y]")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: up to fifty samples a dimension, while the kernel would need 187.
    """

    n: tuple[Count, ...] = axis([100, 200, 400, 800, 1600], "samples n")
    seed: tuple[Natural, ...] = axis(range(10), "seed", "")
    d: Count = 32  # dimension


experiment = Experiment(
    Setting, version=1, loops=("n", "seed"), beside={"model": (MODELS, "model", "")},
    gives={"risk": ("risk E(y - f)²", "1", ("n", "seed", "model"))},
    presets={
        "tiny": ("Fewer samples and more than the kernel has features", dict(n=(40, 300), seed=(0, 1, 2), d=8)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Risk of each model on one sample, in units of the label's variance; beta is the first axis."""
    link = hermite.he(3)
    x = normal((s.n, s.d), s.seed, f"inputs {s.n}")
    y = link(x[:, 0])
    gate = torch.as_tensor(hermite.best_gate(link, 1)(y.numpy()))
    x, y, gate = (part.to(devices.device(device)) for part in (x, y, gate))
    risks = linear_risk(x, y), kernel_risk(x, y), gated_risk(x, y, y.sign()), gated_risk(x, y, gate)
    return {"risk": torch.stack(risks)}


run = experiment.run


def kernel(x: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    r"""The kernel :math:`\sum_{|a| = 3} h_a(x)h_a(x')` over all products of Hermite polynomials of total degree three.

    With :math:`s = \langle x, x'\rangle` it is
    :math:`\frac{s^3}{6} + \frac s2\big(d + 2 - \|x\|^2 - \|x'\|^2\big)`, from Mehler's formula.
    """
    s, square = x @ x.mT, x.square().sum(-1)
    return s**3 / 6 + s / 2 * (x.shape[-1] + 2 - square[:, None] - square)


def size(d: int) -> int:
    """The number of features of the kernel."""
    return math.comb(d + 2, 3)


def linear_risk(x: Tensor, y: Tensor) -> Tensor:
    """The smallest risk over all ridges; E y x = 0, so a weight w has the risk 1 + |w|^2, smallest at no weight."""
    ridges = x.shape[-1] * torch.logspace(-4, 6, 11, dtype=torch.float64).to(x)
    grams = x.mT @ x / len(x) + (ridges / len(x))[:, None, None] * torch.eye(x.shape[-1]).to(x)
    w = torch.linalg.solve(grams, (x.mT @ y / len(x)).expand(len(ridges), -1))
    return 1 + w.square().sum(-1).min()


def kernel_risk(x: Tensor, y: Tensor) -> Tensor:
    """The smallest risk over three ridges; weights a have the risk 1 - 2 a.y + a.K a: the kernel reproduces itself."""
    K, risks = kernel(x), []
    for ridge in (1e-6, 0.03, 0.3):
        root = torch.linalg.cholesky(K + ridge * size(x.shape[-1]) * torch.eye(len(x)).to(x))
        a = torch.cholesky_solve(y[:, None], root)[:, 0]
        risks.append(1 - 2 * a @ y + a @ (K @ a))
    return torch.stack(risks).min()


def gated_risk(x: Tensor, y: Tensor, gated: Tensor) -> Tensor:
    """Project on the gated average, fit a cubic there: with coefficients c and cosine m it is 1 + |c|^2 - 2 c_3 m^3."""
    w = averaging(x, gated)
    w = w / w.norm()
    features = torch.stack([hermite.polynomial(k, x @ w) for k in range(4)], -1)
    c = torch.linalg.lstsq(features, y[:, None]).solution[:, 0]
    return 1 + c.square().sum() - 2 * c[3] * w[0] ** 3
