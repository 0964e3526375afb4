"""Pictures of this lecture: what a page should not have to spell out."""

from functools import lru_cache

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from flbook import plots
from flbook.lectures.in_context_learning.delta_rules import TASKS, error_moments
from flbook.lectures.in_context_learning.delta_rules.kalman_filter import KalmanFilter
from flbook.lectures.in_context_learning.delta_rules.update_rules import RULES
from flbook.lectures.in_context_learning.shared import forgetting
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.plots.look import MODELS, log_ticks
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "A memory that is written with residuals",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*4", lane=-1, alt="the query x q"),
            "x": strip("$x_l$", "input", "grey*4", lane=0, alt="the input x l of example l"),
            "y": strip("$y_l$", "label", "label*1", lane=1, alt="its label y l"),
            "b": strip(r"$\hat\beta_{l-1}$", "memory", "noise*4", lane=2, alt="the memory before it"),
        }),
        ("residual", {"e": op("$-$", lane=1, alt="label less kappa times prediction")}),
        ("write", {"w": op(r"$\times$", lane=0.5, alt="times step and input")}),
        ("keep", {"p": op("$+$", lane=1, alt="what is written, and alpha times the memory before")}),
        ("memory", {"h": box(r"$\hat\beta_l$", holds="noise", lane=0.5, alt="the memory after it")}),
        ("answer", {"f": out(r"$\hat y$", lane=-0.5, alt="the answer, inner product of memory and query")}),
    ],
    ["y > e > w", "x > w", "w > p > h > f", "q > f", r"b ~> e | $\kappa$", r"b > p | $\alpha$"],
    says="Delta rules have the dashed wire from the memory to the label; linear attention and Mamba do not.",
)  # fmt: skip
NAMES = {
    "attention": ("linear attention", MODELS["linear attention"][0]),
    "gated_attention": ("gated linear attention", plots.TRAIN),
    "mamba": ("Mamba", MODELS["mamba"][0]),
    "delta": ("delta rule", plots.SIGNAL),
    "normalised": ("normalised delta rule", plots.NOISE),
    "gated_delta": ("gated delta rule", "#A3447A"),
    "bayes": ("Bayes", MODELS["bayes"][0]),
}
TITLES = {"exact": "Exact labels", "noisy": "Noisy labels, σ = 1", "drifting": "A task that drifts, ρ = 0.98"}
LOWEST = {"exact": 1e-10, "noisy": 1e-2, "drifting": 0.3}


def followed(noise: float, memory: float, step: float, keep: float, d: int = 4, n: int = 100) -> Figure:
    """Risk over the examples read, at one setting: linear attention at its best step, the delta rule, the filter."""
    fig, (ax,) = plots.panels()
    read = np.arange(n + 1)
    label = error_moments.best_label_step(d, n, keep, memory, noise)
    for name, scale, residual, style in (("attention", label, False, "--"), ("delta", step, True, "-")):
        moments = error_moments.step_moments(d, scale)
        curve = [error_moments.risk(d, at, moments, residual, keep, memory, noise) for at in read]
        ax.semilogy(read, curve, style, color=NAMES[name][1], lw=2.5, label=NAMES[name][0])
    ax.semilogy(read, filtered(noise, memory, d, n), "-", color=plots.THEORY, lw=1.2, label="Kalman filter")
    ax.axhline(d, ls=":", color=plots.CHANCE, lw=1)
    ax.set(xlabel="examples read", ylabel="risk $R$", title=f"Label noise {noise:g}, memory of the task {memory:g}")
    log_ticks(ax)
    ax.legend(loc="upper right")
    return fig


def filtered(noise: float, memory: float, d: int, n: int, prompts: int = 400) -> np.ndarray:
    """Risk of the Kalman filter after every number of examples up to n: the mean trace of its covariance."""
    context = DriftingPrompts(n=n, d=d, memory=memory, noise=noise).draw(prompts, 0).context
    return np.array([float(torch.einsum("tdd->t", spread).mean())
                     for _, spread in KalmanFilter(memory, noise).steps(context)])


@lru_cache
def law(task: str, rule: str, d: int = 4):
    """The least risk of a rule over its scalars, as a function of the prompt's length; None where we have none."""
    noise, memory = TASKS[task]
    if rule == "bayes" or rule == "mamba":
        return None
    switches, lengths = RULES[rule], np.geomspace(5, 80, 9).round()
    least = [error_moments.least(d, int(n), switches.residual, switches.gated, switches.implicit, memory, noise)[0]
             for n in lengths]
    curve = PchipInterpolator(lengths, np.log(least))
    return lambda n: np.exp(curve(n))


def trained(found: xr.DataArray, task: str) -> Figure:
    """Risks of trained rules over the length of the prompt, beside the least that their scalars allow."""
    laws = {rule: law(task, rule) for rule in NAMES if law(task, rule)}
    shown = found.sel(task=task).where(lambda risk: risk > LOWEST[task] / 3)
    fig = plots.dots(shown, "n", "rule", NAMES, laws, hollow=("gated_attention", "normalised"),
                     log="y", title=TITLES[task], legend=None, size=(5.2, 4.2))  # fmt: skip
    (ax,) = fig.axes
    ax.set_ylim(LOWEST[task], 6)
    log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


def chunks(found: xr.DataArray, d: int) -> Figure:
    """Risk over the examples of a chunk, for prompts of some lengths. found: (n, chunk, seed)."""
    fig, (ax,) = plots.panels()
    colours = (plots.SIGNAL, plots.NOISE, plots.TEST)
    for n, colour, marker in zip(found.n.values, colours, "os^", strict=True):
        part = found.sel(n=n).dropna("chunk", how="all")
        b = np.geomspace(1, n, 200)
        ax.loglog(b, forgetting.chunk_risk(d, n, b), "--", color=plots.THEORY, lw=1.2)
        ax.errorbar(part["chunk"], part.mean("seed"), part.std("seed"), fmt=marker, color=colour, mec="white", ms=8,
                    label=f"n = {n}")
    ax.set(xlabel="examples per chunk $b$", ylabel="risk $R$", title="The rarer the residual, the slower")
    log_ticks(ax)
    ax.legend(loc="lower right")
    return fig
