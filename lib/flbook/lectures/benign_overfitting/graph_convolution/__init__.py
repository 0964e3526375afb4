r"""Overfitting on a graph: what averaging over neighbours does to the race between signal and noise.

Claim (Huang et al. 2025): on the nodes of a two-block graph of expected degree D, a graph convolutional network with
ReLU^q, q > 2, overfits benignly where a network without the graph does not: its phase variable is larger by the factor
:math:`\sqrt D^{\,q-2}`.

Degree 0 is the network without the graph. Lengths are measured as in `relu_power_phase`: ``snr`` is
:math:`|\mu|/(\sigma_\xi\sqrt d)`, and ``start`` is :math:`\sigma_0\sigma_\xi\sqrt d`.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import alternating_labels, noise_preactivations
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.graph_convolution.graph_training import GraphTraining, convolved
from flbook.lectures.benign_overfitting.graph_convolution.graphs import Neighbourhoods, TwoBlockGraph
from flbook.models.activations import ReLUPower
from flbook.rivals import rival
from flbook.runs import Experiment, Grid, axis, lattice
from flbook.training.fit import fit
from flbook.training.optimizers import BoundedDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    model: tuple[Literal["network", "linear", "lazy"], ...] = axis(["network"], "model")
    q: tuple[Annotated[float, Range(2, ends="(]")], ...] = axis([3.0], "power q of the activation")
    degree: tuple[NonNegative, ...] = axis([0.0, 12.0, 24.0, 48.0], "expected degree D")  # 0 is no graph
    snr: tuple[Positive, ...] = axis(lattice(0.1, 0.36, 6), "SNR = |μ|/(σ_ξ √d)")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 100  # nodes
    d: Count = 1000000  # patch dimension
    contrast: Positive = 5.0  # edges inside a class over edges between the classes, p / s
    shared: bool = True  # neighbours share their noise; if not, every node averages noise of its own, equally short
    m: Count = 10  # filters a sign
    start: Positive = 0.2  # sigma_0 sigma_xi sqrt d: a fresh filter's response to unconvolved noise
    lr: Positive = 0.03  # largest step size, in units of the time that memorising takes
    steps: Natural = 250
    points: Count = 256  # fresh nodes to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse graphs that there are not, and too few dimensions."""
        for degree in self.degree:
            self.graph(degree)
        check_room(self.n, 2 * self.m, self.d)

    def graph(self, degree: float) -> TwoBlockGraph:
        """The graph of one degree."""
        return TwoBlockGraph(self.n, degree, self.contrast)


experiment = Experiment(
    Setting, version=1, loops=("q", "model"), left=("degree", "seed", "snr"), stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
    },
    presets={
        "tiny": ("With and without a graph, from harmful to benign, the rivals beside the network", dict(
            model=("network", "linear", "lazy"), degree=(0.0, 6.0), snr=(0.05, 0.9), seed=(0, 1), n=20, m=8,
            steps=20)),
        "book": ("The boundary against the degree, at q = 3", dict(
            degree=(12.0, 24.0, 48.0), snr=lattice(0.1, 0.22, 6), seed=tuple(range(24)), lr=0.05, steps=150)),
        "private": ("The control: the same signal, noise of the same length, but no two nodes share any", dict(
            degree=(12.0, 24.0, 48.0), snr=lattice(0.045, 0.13, 6), shared=False, seed=tuple(range(24)), lr=0.05,
            steps=150)),
        "rivals": ("With and without the graph, what learns no feature", dict(
            model=("linear", "lazy"), degree=(0.0, 48.0), snr=lattice(0.005, 0.4, 9), seed=tuple(range(10)), lr=0.05,
            steps=100)),
        "mixed": ("Two signals, at the degree 24, to be run for several shares of edges across the classes", dict(
            degree=(24.0,), snr=(0.2, 0.3), lr=0.05, steps=150)),
        "longer": ("Both powers, five degrees, more seeds", dict(
            q=(3.0, 4.0), degree=(0.0, 6.0, 12.0, 24.0, 48.0), snr=lattice(0.1, 0.4, 9), seed=tuple(range(24)))),
    },
)


@experiment.shared("q")
def drawn(s: Setting, device: str) -> GraphTraining:
    """The problems that network and rivals train."""
    return problem(s, s.q, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model to the end, with all graphs."""
    training = drawn(s, device)
    chosen = rival(training, s.model)
    params = fit(chosen, rule(s, s.q, s.model, training.y), s.steps).params
    return {"test_error": measures.test_error(chosen, params, s.points),
            "train_error": measures.train_error(chosen, params), "train_loss": chosen.train_loss(params)}


run = experiment.run


def problem(setting: Setting, q: float, device: str = "cpu") -> GraphTraining:
    """The training problems of all (degree, seed, snr), in that order of ensemble axes, in float32."""
    return exact(setting, q).to(devices.device(device), torch.float32)


def exact(setting: Setting, q: float) -> GraphTraining:
    """The same in float64."""
    root = math.sqrt(setting.d)
    y = alternating_labels(setting.n)
    gram = draw_gram(setting.n, 2 * setting.m, setting.d, sigma_0=setting.start / root, orthogonal=True,
                     seed=setting.seed)
    matrix = torch.stack([setting.graph(degree).convolution(y, setting.seed) for degree in setting.degree])
    members = matrix.shape[:2]
    sizes = (matrix.diagonal(dim1=-2, dim2=-1).sqrt()).diag_embed()  # 1 / sqrt(D_i + 1)
    gram = convolved(gram, matrix if setting.shared else sizes)
    gram = Gram(*(part.expand(*members, *part.shape[part.ndim - own:])
                  for part, own in zip(gram, (0, 1, 2, 1, 2, 2, 1), strict=True)))
    nodes = [setting.graph(degree).neighbourhoods(setting.points) for degree in setting.degree]
    return GraphTraining(
        gram.with_signals(torch.tensor(setting.snr, dtype=torch.float64) * root), y, y, scale=1 / setting.m,
        activation=ReLUPower(q), law=partial(noise_preactivations, sigma_xi=1.0, orthogonal=True),
        share=(matrix @ y)[:, :, None],
        nodes=Neighbourhoods(*(torch.stack(part)[:, None, None] for part in zip(*nodes, strict=True))),
    )


def rule(setting: Setting, q: float, model: str, like: torch.Tensor) -> BoundedDescent:
    """Gradient descent at one step size a degree, in units of the time memorising takes; smaller at a blow-up."""
    near = torch.tensor(setting.degree, dtype=torch.float64)[:, None, None] + 1
    unit = {
        "network": 3 / q / (q - 2) * setting.start ** (2 - q) * near ** (q / 2 - setting.shared),
        "linear": 20 * torch.ones_like(near),
        "lazy": 2 * (q * setting.start ** (q - 1)) ** -2 * near ** (q - 1),
    }[model]
    return BoundedDescent((setting.lr * setting.n * setting.m / setting.d * unit).to(like))


def edges_alone(degree: float, setting: Setting) -> torch.Tensor:
    """Test error of a method that sees no features: the sign of the adjacency matrix's second eigenvector.

    One value a seed, of a graph drawn for it; which of the two groups is which class is told.
    """
    y = alternating_labels(setting.n)
    vectors = torch.linalg.eigh(setting.graph(degree).adjacency(y, setting.seed)).eigenvectors
    error = (vectors[..., -2] * y <= 0).double().mean(-1)
    return torch.minimum(error, 1 - error)


def attenuation(setting: Setting) -> xr.DataArray:
    """What a convolution leaves of the signal on average: the mean share of a fresh node, over degree."""
    shares = [float(setting.graph(degree).neighbourhoods(100000).share.mean()) for degree in setting.degree]
    named = {"long_name": "share of the signal left", "units": "1"}
    return xr.DataArray(shares, setting.coordinates("degree"), ("degree",), attrs=named)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of the full grid, what the package keeps: test errors seed by seed as 16-bit numbers, the rest as means."""
    with xr.set_options(keep_attrs=True):
        means = dataset.astype("float32")
        for name in ("train_error", "train_loss"):
            means[name] = means[name].mean("seed")
    means["test_error"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return means
