r"""Overfitting on a graph: what averaging over neighbours does to the race between signal and noise.

Claim (Huang et al. 2025): on the nodes of a two-block graph of expected degree D, a graph convolutional network with
ReLU^q, q > 2, overfits benignly where a network without the graph does not: its phase variable is larger by the factor
:math:`\sqrt D^{\,q-2}`.

Degree 0 is the network without the graph. Lengths are measured as in `relu_power_phase`: ``snr`` is
:math:`|\mu|/(\sigma_\xi\sqrt d)`, and ``start`` is :math:`\sigma_0\sigma_\xi\sqrt d`.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import torch
import xarray as xr

from flbook import devices, measures, rivals
from flbook.data.signal_noise import flipped_labels, noise_preactivations
from flbook.dynamics.gram import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.graphs_and_output_layers.graph_training import GraphTraining, convolved
from flbook.lectures.benign_overfitting.graphs_and_output_layers.graphs import Neighbourhoods, TwoBlockGraph
from flbook.models.activations import relu_power
from flbook.runs.settings import among, lattice
from flbook.runs.sweep import sweep
from flbook.training.fit import fit
from flbook.training.optimizers import BoundedDescent

VERSION = 1

MODELS = {"network": lambda problem: problem, "linear": rivals.linear, "lazy": rivals.lazy}


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep. The unit of length is sigma_xi."""

    model: tuple[str, ...] = ("network",)  # and its rivals on the same graph: linear, lazy
    q: tuple[float, ...] = (3.0,)  # power of the activation
    degree: tuple[float, ...] = (0.0, 12.0, 24.0, 48.0)  # expected number of neighbours; 0 is no graph
    snr: tuple[float, ...] = lattice(0.1, 0.36, 6)  # |mu| / (sigma_xi sqrt d)
    seed: tuple[int, ...] = tuple(range(12))
    n: int = 100  # nodes
    d: int = 1000000  # patch dimension
    contrast: float = 5.0  # edges inside a class over edges between the classes, p / s
    shared: bool = True  # neighbours share their noise; if not, every node averages noise of its own, equally short
    m: int = 10  # filters a sign
    start: float = 0.2  # sigma_0 sigma_xi sqrt d: a fresh filter's response to unconvolved noise
    lr: float = 0.03  # largest step size, in units of the time that memorising takes
    steps: int = 250
    points: int = 256  # fresh nodes to measure the test error on, each under both labels

    @classmethod
    def book(cls) -> "Setting":
        """The boundary against the degree, at q = 3."""
        return cls(snr=lattice(0.1, 0.4, 7), seed=tuple(range(16)), lr=0.05, steps=150)

    @classmethod
    def private(cls) -> "Setting":
        """The control: the same signal, noise of the same length, but no two nodes share any."""
        return cls(degree=(12.0, 24.0, 48.0), snr=lattice(0.035, 0.18, 8), shared=False, lr=0.05, steps=150)

    @classmethod
    def rivals(cls) -> "Setting":
        """With and without the graph, what learns no feature."""
        return cls(model=("linear", "lazy"), degree=(0.0, 48.0), snr=lattice(0.005, 0.4, 9), seed=tuple(range(10)),
                   lr=0.05, steps=100)

    @classmethod
    def paper(cls) -> "Setting":
        """Both powers, five degrees, more seeds."""
        return cls(q=(3.0, 4.0), degree=(0.0, 6.0, 12.0, 24.0, 48.0), snr=lattice(0.1, 0.4, 9), seed=tuple(range(24)))

    def thinned(self, **axes: tuple) -> "Setting":
        """The same setting on fewer values of some axes."""
        return replace(self, **axes)

    def graph(self, degree: float) -> TwoBlockGraph:
        """The graph of one degree."""
        return TwoBlockGraph(self.n, degree, self.contrast)


def problem(setting: Setting, q: float, device: str = "cpu") -> GraphTraining:
    """The training problems of all (degree, seed, snr), in that order of ensemble axes, in float32."""
    return exact(setting, q).to(devices.device(device), torch.float32)


def exact(setting: Setting, q: float) -> GraphTraining:
    """The same in float64."""
    root = math.sqrt(setting.d)
    y, _ = flipped_labels(setting.n, 0.0, setting.seed[0])
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
        activation=relu_power(q), law=partial(noise_preactivations, sigma_xi=1.0, orthogonal=True),
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


def coordinates(setting: Setting) -> dict[str, tuple]:
    """The axes with their names and units."""
    labels = {"model": "model", "q": "power q of the activation", "degree": "expected degree D", "seed": "seed",
              "snr": "SNR = |μ|/(σ_ξ √d)"}
    return {name: (name, list(getattr(setting, name)), {"long_name": label, "units": "1"})
            for name, label in labels.items()}


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train every cell to the end; dimensions (q, model, degree, seed, snr)."""
    check(setting)
    cells = []
    for q in setting.q:
        network = problem(setting, q, device)
        for name in setting.model:
            rival = MODELS[name](network)
            params = fit(rival, rule(setting, q, name, network.y), setting.steps).params
            cells.append([measures.test_error(rival, params, setting.points), measures.train_error(rival, params),
                          rival.train_loss(params)])
    dims = ("q", "model", "degree", "seed", "snr")
    shape = [len(getattr(setting, name)) for name in dims]
    names = {"test_error": ("test error", "fraction"), "train_error": ("training error", "fraction"),
             "train_loss": ("training loss", "nats")}
    return xr.Dataset(
        {name: (dims, torch.stack(column).reshape(shape).cpu().numpy(), {"long_name": words, "units": units})
         for (name, (words, units)), column in zip(names.items(), zip(*cells, strict=True), strict=True)},
        coords=coordinates(setting),
    )


def attenuation(setting: Setting) -> xr.DataArray:
    """What a convolution leaves of the signal on average: the mean share of a fresh node, over degree."""
    shares = [float(setting.graph(degree).neighbourhoods(100000).share.mean()) for degree in setting.degree]
    coords = {"degree": coordinates(setting)["degree"]}
    return xr.DataArray(shares, coords, ("degree",), attrs={"long_name": "share of the signal left", "units": "1"})


def check(setting: Setting) -> None:
    """Refuse cells that the model does not have, before any other cell is computed."""
    among("model", setting.model, MODELS)
    for degree, q in product(setting.degree, setting.q):
        setting.graph(degree)
        relu_power(q)
    check_room(setting.n, 2 * setting.m, setting.d)
    if not min(setting.q) > 2:
        raise ValueError(f"q must be above 2, where memorising has a time of its own; got {min(setting.q)}")
    if not min(setting.snr) > 0:
        raise ValueError(f"snr must be positive, so that noise can be orthogonal to the signal; got {min(setting.snr)}")


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    devices.device(device)
    check(setting)
    cell_bytes = 4 * 8 * 2 * setting.m * max(setting.n, 2 * setting.points)
    return sweep(measure, setting, device=device, split=("q", "model", "degree"), cell_bytes=cell_bytes, **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """Of the full grid, what the package keeps: test errors seed by seed as 16-bit numbers, the rest as means."""
    with xr.set_options(keep_attrs=True):
        kept = dataset.astype("float32")
        for name in ("train_error", "train_loss"):
            kept[name] = kept[name].mean("seed")
    kept["test_error"].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return kept
