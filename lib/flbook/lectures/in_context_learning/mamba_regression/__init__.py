r"""Mamba on linear regression in a prompt: what a trained layer computes, and what else reads a prompt once.

Claims: trained by gradient descent, a selective state-space layer with :math:`\Delta = \ln 2/n` predicts
:math:`x_q^\top\Gamma\sum_i\omega_i y_{n-i}x_{n-i}` (Jiang et al. 2025, Theorem 4.1), an exponentially weighted
correlation without residuals; its risk is that of linear attention with :math:`n_\mathrm{eff} = .962\,n` examples;
online gradient descent with residuals is far better without label noise, and at a fixed step worse with enough of it;
for a task that drifts the same weights are those of the stationary Kalman filter.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices, fits
from flbook.data.prompts import LinearPrompts, Prompts, map_tensors
from flbook.domains import Count, Natural, NonNegative
from flbook.estimators import GradientStep, LeastSquares, Ridge
from flbook.lectures.in_context_learning.mamba_regression.recursion import MambaTraining
from flbook.lectures.in_context_learning.shared import forgetting as theory
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.lectures.in_context_learning.shared.mamba import Mamba, tokens
from flbook.lectures.in_context_learning.shared.online import LeastMeanSquares
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import Momentum

PREDICTORS = ("mamba", "attention", "lms", "falling", "ridge")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: five predictors, five levels of noise, prompts of six lengths in four dimensions.
    """

    predictor: tuple[Literal[PREDICTORS], ...] = axis(PREDICTORS, "predictor")
    d: tuple[Count, ...] = axis([4], "dimension d")
    noise: tuple[NonNegative, ...] = axis([0.0, 0.25, 0.5, 1.0, 2.0], "label noise σ_y")
    n: tuple[Count, ...] = axis([5, 10, 20, 40, 80, 160], "examples n")  # of a prompt
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    states: Count = 40  # size of the layer's state, d_h in the paper
    steps: Natural = 400  # of gradient descent with momentum on the loss over all prompts
    prompts: Count = 400  # fresh ones, to measure the risk on
    queries: Count = 8  # on each


experiment = Experiment(
    Setting, version=1, loops=("d", "noise", "n", "predictor"), chunk={"d": 1, "noise": 1, "n": 1}, stored="paper",
    gives={"risk": ("risk R", "1")},
    presets={
        "tiny": ("Three dimensions, a layer that is hardly trained", dict(
            d=(2, 3), noise=(0.0, 1.0), n=(6, 12), seed=(0, 1, 2), states=20, steps=20, prompts=20)),
        "crossing": ("Noise as large as a coordinate of the task, about the length at which the layer beats a fixed "
                     "step", dict(predictor=("mamba", "lms"), noise=(1.0,), n=(16, 22, 31, 44, 62), prompts=2400)),
        "paper": ("The dimensions and prompt lengths of the paper's figure and tables, with the paper's state of 80",
                  dict(d=(4, 10, 20), n=tuple(range(4, 81, 4)), noise=(0.0, 1.0), states=80, steps=1200, prompts=1000)),
    },
)


@experiment.shared("d", "noise", "n")
def drawn(s: Setting, device: str) -> Prompts:
    """The fresh prompts that every predictor answers."""
    prompts = LinearPrompts(n=s.n, d=s.d, noise=s.noise, queries=s.queries).draw(s.prompts, s.seed)
    return map_tensors(prompts, lambda part: part.to(devices.device(device)))


@experiment.cell
@torch.no_grad()
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Risk of one predictor at fresh prompts."""
    prompts = drawn(s, device)
    answer = predictor(s.predictor, s, s.d, s.n, s.noise, device)(prompts.context, prompts.query)
    return {"risk": (answer - prompts.target).square().mean((-2, -1))}


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the stored result keeps: the risk in float32."""
    return dataset[["risk"]].astype("float32")


run = experiment.run


def layer(setting: Setting, d: int, n: int) -> Mamba:
    """An untrained layer for each seed."""
    return Mamba(d, setting.states, n, seed=setting.seed)


def omega(n: int) -> torch.Tensor:
    """The weights of n examples at the query, last one first."""
    return torch.from_numpy(theory.weights(float(theory.decay(n)), n))


def rule(problem: MambaTraining, share: float = 0.3) -> Momentum:
    """Gradient descent with momentum, at a step that the stiffest direction of the start allows."""
    stiffest = torch.linalg.eigvalsh(problem.second)[..., -1].max()
    return Momentum(float(share / (problem.model.w_b.shape[-2] * stiffest)), 0.9)


def trained(setting: Setting, d: int, n: int, noise: float = 0.0, covariance: torch.Tensor | None = None,
            device: str = "cpu") -> Mamba:
    """A layer for each seed, trained on the loss over all prompts."""
    covariance = torch.eye(d, dtype=torch.float64) if covariance is None else covariance
    law = MambaTraining.of_law(layer(setting, d, n), covariance, omega(n), noise)
    problem = law.to(devices.device(device))
    return problem.into(fit(problem, rule(law), setting.steps).params)


def predictor(name: str, setting: Setting, d: int, n: int, noise: float, device: str = "cpu"):
    """What is to be compared, each at its best: attention and ridge know the law, the layer was trained on it."""
    if name == "mamba":
        return trained(setting, d, n, noise, device=device)
    if name == "attention":  # linear attention at its optimum for inputs of covariance I is one gradient step
        return GradientStep(n / (n + d + 1 + noise**2))
    if name == "lms":
        return LeastMeanSquares(1 / (d + 2))
    if name == "falling":
        return LeastMeanSquares(1 / (d + 2), falling=True)
    return Ridge(noise**2) if noise else LeastSquares()


def training(setting: Setting, d: int, n: int, prompts: int | None = None,
             covariance: torch.Tensor | None = None) -> xr.Dataset:
    """How training goes, on all prompts or on a drawn sample of so many; dimensions (step, seed).

    Recorded are the risk over all prompts relative to its closed form, minus 1, and the share of the merged matrix
    that lies off its diagonal or does not belong to inputs at all.
    """
    covariance = torch.eye(d, dtype=torch.float64) if covariance is None else covariance
    law = MambaTraining.of_law(layer(setting, d, n), covariance, omega(n))
    problem = law
    if prompts:
        drawn = LinearPrompts(n=n, d=d, covariance=covariance).draw(prompts, setting.seed, step=1)
        problem = MambaTraining.on(law.model, drawn.context, drawn.query, drawn.target)
    best = float(theory.mamba_risk(covariance.numpy(), n))

    def excess(params):
        return 2 * law.train_loss(params) / best - 1

    def off(params):
        merged = torch.cat([law.merged(params)[..., :d, :], law.merged(params)[..., d + 1 :, :]], -2)
        return 1 - merged[..., :d, :d].diagonal(dim1=-2, dim2=-1).square().sum(-1) / merged.square().sum((-2, -1))

    record = [Quantity("excess", excess, (), "risk above the closed form", "of it"),
              Quantity("off_diagonal", off, (), "share of the merged matrix off its diagonal")]
    return fit(problem, rule(problem), setting.steps, record, ("seed",)).history.assign_coords(seed=list(setting.seed))


@torch.no_grad()
def hidden(setting: Setting, d: int, n: int, model: Mamba) -> xr.Dataset:
    r"""The state that the query would read, :math:`\tilde h_l = W_C^\top h_l`, along the prompt.

    Of one prompt a seed, over (seed, example, coordinate), the states and what a step gives from the state before:
    ``correlation``, :math:`\alpha\tilde h_{l-1} + (1 - \alpha)\,g\,y_l x_l` with the optimum's number g, and
    ``residual``, online gradient descent.
    """
    prompts = LinearPrompts(n=n, d=d).draw(1, setting.seed)
    x, y = prompts.context
    states = model.states(tokens(prompts.context))[..., -1, :]
    read = torch.einsum("...sk,...nls->...nlk", model.w_c, states)[..., :d]
    alpha, scale = float(theory.decay(n)), theory.attention_matrix(np.eye(d), omega(n).numpy())[0, 0]
    before = torch.cat([torch.zeros_like(read[..., :1, :]), read[..., :-1, :]], -2)
    error = y - torch.einsum("...d,...d->...", before, x)
    steps = {"state": read, "correlation": alpha * before + (1 - alpha) * scale * y[..., None] * x,
             "residual": before + error[..., None] * x / (d + 2)}
    long = {"state": "state as the query reads it", "correlation": "one step of the recursion without a residual",
            "residual": "one step of online gradient descent"}
    one_step = {name: (("seed", "example", "coordinate"), step[:, 0], long[name]) for name, step in steps.items()}
    reading = ("example", np.arange(1, n + 1), "examples read l")
    return labelled(one_step, {"seed": list(setting.seed), "example": reading})


def overtaken(risk: xr.DataArray) -> fits.Fit:
    """Where the layer's risk falls below that of online gradient descent; dimensions (n, predictor, seed).

    The logarithm of their ratio is fitted by a parabola in log n, so that every length takes part; where that has no
    zero, its vertex counts.
    """
    steps = np.log(risk.n.to_numpy())
    degree = min(2, len(steps) - 1)

    def where(means):
        gap = np.log(means[:, 0] / means[:, 1])
        c, b, *a = np.polynomial.polynomial.polyfit(steps - steps.mean(), gap.T, degree)
        root = np.sqrt(np.fmax(b**2 - 4 * c * (a[0] if a else 0), 0))
        return np.exp(steps.mean() + 2 * c / (root - b))  # the one of two roots at which the ratio falls

    return fits.statistic(risk.sel(predictor=["mamba", "lms"]), where, ("predictor", "n"))


@torch.no_grad()
def drift(seeds: tuple[int, ...], memory: tuple[float, ...], alpha: tuple[float, ...], d: int = 4, n: int = 120,
          noise: float = 1.0, prompts: int = 400) -> xr.Dataset:
    """Risk of layers with decay alpha on tasks that drift, each with its best scale; and of online gradient descent.

    Dimensions (memory, alpha, seed) and (memory, seed).
    """
    layers, online = [], []
    for rho in memory:
        data = DriftingPrompts(n=n, d=d, memory=rho, noise=noise, queries=8).draw(prompts, seeds)
        for decay in alpha:
            unit = Mamba.of(torch.eye(d, dtype=torch.float64), decay)(data.context, data.query)
            scale = theory.drifting_scale(d, n, decay, rho, noise)
            layers.append((scale * unit - data.target).square().mean((-2, -1)))
        answer = LeastMeanSquares(1 / (d + 2))(data.context, data.query)
        online.append((answer - data.target).square().mean((-2, -1)))
    return labelled({"risk": (("memory", "alpha", "seed"), layers, "risk R"),
                     "online": (("memory", "seed"), online, "risk R of online gradient descent")},
                    {"memory": ("memory", list(memory), "memory of the task ρ"),
                     "alpha": ("alpha", list(alpha), "decay α"), "seed": list(seeds)})
