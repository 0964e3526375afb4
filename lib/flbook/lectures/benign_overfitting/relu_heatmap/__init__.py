r"""Benign and harmful overfitting in two-layer ReLU CNNs with flipped labels.

Claim (Kou et al. 2023, Theorem 4.2): trained until it fits every label, flipped ones included, the network's test error
is at most :math:`\exp(-n\|\mu\|^4/(C\sigma_\xi^4 d))` if :math:`n\|\mu\|^4 \ge C_1\sigma_\xi^4 d`, and at least a
constant if :math:`n\|\mu\|^4 \le C_3\sigma_\xi^4 d`.

Two settings: the theorem's (mean over filters, small Gaussian start, no bias) and that of the authors' published
code (sum over filters, mean over the two patches, PyTorch's default start, bias, 100 steps).
"""

from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
import xarray as xr

from flbook import devices, measures
from flbook.data.signal_noise import SignalNoise, check_sizes, flipped_labels, noise_preactivations
from flbook.domains import Count, FlipProbability, Natural, NonNegative, Positive
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.relu_heatmap.averages import averaging_error
from flbook.lectures.benign_overfitting.shared.rare_noise import log_error
from flbook.models.cnn import initial_bias, initial_weights
from flbook.rivals import RIVALS, Rival, rival
from flbook.runs import Experiment, Grid, axis, labelled, lattice
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: the theorem's, on a lattice where d grows by 4 and n |mu|^4 / d takes the same values for every d.
    """

    model: tuple[Rival, ...] = axis(["network"], "model")
    n: tuple[Count, ...] = axis([20], "samples n")
    d: tuple[Count, ...] = axis([2000, 8000, 32000, 128000], "patch dimension d")
    mu: tuple[NonNegative, ...] = axis(lattice(1.25, 20.0, 17), "signal strength |μ|", "σ_ξ")
    seed: tuple[Natural, ...] = axis(range(24), "seed")
    m: Count = 10  # filters a sign
    flip_prob: FlipProbability = 0.1  # p, exactly pn labels flipped
    sigma_xi: Positive = 1.0  # noise level
    sigma_0: NonNegative | None = 1e-8  # initial weights, far below sqrt(n)/(sigma_xi d); None is PyTorch's default
    scale: Positive | None = None  # weight of a filter in the output; None is 1/m
    bias: bool = False
    lr: Positive = 1.0  # step size, in units of nm/(sigma_xi^2 d) if lr_in_noise_time: memorising takes O(1/lr) steps
    lr_in_noise_time: bool = True
    steps: Natural = 600
    points: Count = 512  # fresh noise patches to measure the test error on, each under both labels

    def check(self) -> None:
        """Refuse cells in which vectors are too short."""
        for n, d in product(self.n, self.d):
            check_sizes(n, d)
            if self.sigma_0 is not None:
                check_room(n, 2 * self.m, d)


def signals(r: tuple[float, ...], n: int, d: int) -> tuple[float, ...]:
    """The |mu| at which n |mu|^4 / d takes these values."""
    return tuple((x * d / n) ** 0.25 for x in r)


experiment = Experiment(
    Setting, version=1, loops=("n", "model"), left=("d", "seed", "mu"), chunk={"d": 1}, stored="paper",
    gives={
        "test_error": ("test error", "fraction"),
        "test_error_flipped": ("test error on flipped labels", "fraction"),
        "train_error": ("training error", "fraction"),
        "train_loss": ("training loss", "nats"),
    },
    presets={
        "tiny": ("Both regimes in a blink: network and rivals, two dimensions, harmful and benign", dict(
            model=("network", *RIVALS), d=(100, 400), mu=(0.0, 1.0, 6.0), seed=(0, 1, 2), steps=20, points=64)),
        "samples": ("The same at one dimension and several sample sizes", dict(
            n=(20, 40, 80), d=(32000,), mu=lattice(3.0, 8.0, 9), seed=tuple(range(32)))),
        "rivals": ("One n and d, from harmful to benign, with what learns no feature beside the network", dict(
            model=("network", *RIVALS), n=(50,), d=(2500,), mu=signals((0.1, 0.3, 1, 3, 10, 30), 50, 2500),
            seed=tuple(range(16)))),
        "strong": ("Far into the benign side, where n SNR² stays below 0.03: r from 1/4 to 64", dict(
            n=(50,), d=(5_000_000,), mu=signals((0.25, 1, 2, 4, 8, 16, 32, 64), 50, 5_000_000),
            seed=tuple(range(96)))),
        "paper": ("The full grid of the authors' published code: |mu| to 9.9, d to 1090, ten seeds", dict(
            n=(20,), d=tuple(range(100, 1100, 10)), mu=tuple(round(0.1 * s, 1) for s in range(100)),
            seed=tuple(range(10)), sigma_0=None, scale=0.5, bias=True, lr=0.1, lr_in_noise_time=False, steps=100)),
    },
)


@experiment.shared("n")
def drawn(s: Setting, device: str) -> GramTraining:
    """The problems that network and rivals train."""
    return problem(s, s.n, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train one model on n samples to the end."""
    training = drawn(s, device)
    chosen = rival(training, s.model)
    params = fit(chosen, GradientDescent(step_size(s, s.n, training.gram.w_w)), s.steps).params
    error = measures.test_error(chosen, params, s.points)
    return {"test_error": error, "test_error_flipped": measures.noisy_label_error(error, s.flip_prob),
            "train_error": measures.train_error(chosen, params), "train_loss": chosen.train_loss(params)}


run = experiment.run


def problem(setting: Setting, n: int, device: str) -> GramTraining:
    """The training problems of all (d, seed, mu), in that order of ensemble axes; no d-dimensional array is kept."""
    k = 2 * setting.m
    y, observed = flipped_labels(n, setting.flip_prob, setting.seed[0])
    if setting.sigma_0 is None:
        gram = stack([drawn_vectors(setting, n, d) for d in setting.d])
    else:
        gram = draw_gram(n, k, setting.d, sigma_0=setting.sigma_0, sigma_xi=setting.sigma_xi, seed=setting.seed)
    training = GramTraining(
        gram.with_signals(torch.tensor(setting.mu, dtype=torch.float64)), y, observed,
        scale=1 / setting.m if setting.scale is None else setting.scale,
        bias=setting.bias, law=partial(noise_preactivations, sigma_xi=setting.sigma_xi),
    )
    return training.to(devices.device(device), torch.float32)


def drawn_vectors(setting: Setting, n: int, d: int) -> Gram:
    """Gram matrices from vectors, where the start is not Gaussian: one d at a time, all seeds, signal of length 1."""
    sample = SignalNoise(n=n, d=d, mu_norm=1.0, sigma_xi=setting.sigma_xi).draw(setting.seed)
    start = (d, 2 * setting.m, None, setting.seed)
    return Gram.of(sample, initial_weights(*start), initial_bias(*start))


def stack(grams: list[Gram]) -> Gram:
    """Several dimensions d as one leading ensemble axis."""
    parts = [torch.stack(part) for part in zip(*grams, strict=True)]
    return Gram(parts[0][:, None], *parts[1:])


def step_size(setting: Setting, n: int, like: torch.Tensor) -> torch.Tensor:
    """One step size a dimension, shape (d, 1, 1): constant, or in units of the time that memorising takes."""
    d = torch.tensor(setting.d, dtype=torch.float64)
    unit = n * setting.m / (setting.sigma_xi**2 * d) if setting.lr_in_noise_time else torch.ones_like(d)
    return (setting.lr * unit)[:, None, None].to(like)


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Signal learned, noise memorised and what fresh noise meets, step by step; dimensions (step, d, seed, mu)."""
    training = problem(setting, setting.n[0], device)

    def test_noise(params):
        return training.weight_gram(params).diagonal(dim1=-2, dim2=-1).mean(-1).sqrt() * setting.sigma_xi

    def test_error(params):
        return measures.test_error(training, params, setting.points)

    quantities = [
        *measures.coefficients(training),
        Quantity("test_noise", test_noise, (), "response to fresh noise σ_ξ|w|"),
        Quantity("test_error", test_error, (), "test error", "fraction"),
    ]
    axes = ("d", "seed", "mu")
    rule = GradientDescent(step_size(setting, setting.n[0], training.gram.w_w))
    history = fit(training, rule, setting.steps, quantities, axes).history
    return history.assign_coords(setting.coordinates(*axes))


@experiment.also
def rare(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Test errors that may be far too small to be counted, also of the averaging classifier; dims (d, seed, mu)."""
    training = problem(setting, setting.n[0], device)
    params = fit(training, GradientDescent(step_size(setting, setting.n[0], training.gram.w_w)), setting.steps).params
    dims, error = ("d", "seed", "mu"), log_error(training, params, setting.points).exp()
    averaging = averaging_error(training, setting.sigma_xi)
    return labelled({"test_error": (dims, error, "test error", "fraction"),
                     "averaging_error": (dims, averaging, "test error of the averaging classifier", "fraction"),
                     "train_error": (dims, measures.train_error(training, params), "training error", "fraction")},
                    setting.coordinates(*dims))


def at_equal(error: xr.DataArray, variable: xr.DataArray, low: float, high: float) -> xr.DataArray:
    """Curves over a phase variable instead of |mu|, where all dimensions d of a lattice reach the same values of it.

    variable: over (d, mu), as `flbook.theory.kou_variable` gives it of a Dataset's coordinates; it names the axis.
    """
    rows = []
    for d in error.d.values:
        row = error.sel(d=d).assign_coords(mu=[float(f"{x:.4g}") for x in variable.sel(d=d).transpose("mu").values])
        rows.append(row.isel(mu=((row.mu >= low) & (row.mu <= high)).values))
    return xr.concat(rows, "d", join="inner").rename(mu=variable.name)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of the full grid, what the package keeps: errors seed by seed as 16-bit numbers of step 1e-4, fit over seeds.

    The test error on true labels is ``(test_error_flipped - p) / (1 - 2 p)``.
    """
    errors = dataset.squeeze(("model", "n"), drop=True).transpose("mu", "d", "seed")
    errors = errors[["test_error_flipped", "train_error"]]
    with xr.set_options(keep_attrs=True):
        errors["train_error"] = errors.train_error.mean("seed")
    for name in errors:
        errors[name].encoding = {"dtype": "int16", "scale_factor": 1e-4, "_FillValue": -1}
    return errors
