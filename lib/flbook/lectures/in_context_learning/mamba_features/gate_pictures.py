"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import hermite, plots
from flbook.lectures.in_context_learning import mamba_features
from flbook.lectures.in_context_learning.mamba_features import gates as law
from flbook.plots.schematic import Schematic, box, curve, op, out, strip

MODEL = Schematic(
    "A gated state-space layer on single-index prompts",
    [
        ("prompt", {
            "q": strip("$x_q$", "query", "grey*4", lane=-1, alt="the query x q"),
            "x": strip("$x_l$", "examples, in turn", "grey*4", lane=0, alt="the input x l of example l"),
            "y": strip("$y_l$", "label", "label*1", lane=1, alt="its label y l"),
        }),
        ("gate", {"t": curve("$T$", "made of SiLUs", holds="square", lane=1, alt="the gate T of the label")}),
        ("write", {"w": op(r"$\times$", lane=0.5, alt="gate times input")}),
        ("state", {"s": box("$s$", r"decays by $\alpha$", holds="noise", lane=0.5, alt="the state s")}),
        ("read", {"r": op(r"$\cdot$", lane=0, alt="inner product of the state's direction and the query")}),
        ("readout", {"h": curve("$h_3$", holds="cube", lane=0, alt="the cubic readout")}),
        ("answer", {"f": out(r"$\hat y$", lane=0, alt="the answer")}),
    ],
    ["y > t > w", "x > w > s", "q > r", "s > r > h > f"],
    says="The gate decides what the state sees.",
)  # fmt: skip
GATES = {
    "none": ("no gate", plots.TRAIN),
    "sigmoid": ("sigmoid time, A = -1", plots.NOISE),
    "slow": ("softplus time, slow decay", "#CC79A7"),
    "silu 4": ("4 SiLU channels", plots.SIGNAL),
    "silu 12": ("12 SiLU channels", plots.TEST),
}
READERS = {
    "none": ("linear attention", plots.TRAIN),
    "lms": ("online gradient descent", "#8C6D00"),
    "softmax": ("softmax, exponential score", "#CC79A7"),
    "kernel": ("kernel ridge", plots.NOISE),
    "silu 4": ("4 gated channels", plots.SIGNAL),
    "inside": ("the same, inside S", plots.TEST),
}


def overlap_law(name: str, d: int) -> Callable:
    """The squared cosine that a gate should reach, as a function of the examples."""

    def curve(n):
        gate, samples = mamba_features.gate_law(name, round(n))
        return law.overlap(samples, d, gate, mamba_features.LINK)

    return curve


@plots.look.styled
def overlaps(found: xr.DataArray, d: int) -> Figure:
    """Squared cosine of the state with the direction over the examples, gate by gate. found: (gate, n, seed)."""
    fig = plots.dots(found, "n", "gate", GATES, {name: overlap_law(name, d) for name in GATES if name != "none"},
                     log="x", title="Five gates on the same prompts", legend=None, size=(5.2, 4.4))  # fmt: skip
    fig.axes[0].set_ylim(0, 1.02)
    fig.legend(loc="outside lower center", ncols=2)
    return fig


@plots.look.styled
def gate(bias: float, trained: Callable, slope: float = 4.0) -> Figure:
    """The gate of a sigmoid time and a trained one beside the best gate; all of mean square 1."""
    link, label = mamba_features.LINK, np.linspace(-3, 3, 401)
    _, y, weight = law.law_of(link)
    best, sigmoid = hermite.best_gate(link, 1), lambda y: y * law.written(slope * y + bias)
    fig, ax = plt.subplots(figsize=(4.6, 3.3), layout="constrained")
    strength = hermite.strength(sigmoid, link, 1)
    lines = {"best, E[z|y]": (best, dict(ls="--", color=plots.THEORY)),
             "trained": (trained, dict(color=plots.SIGNAL)),
             f"y σ(4y + b), b = {bias:g}": (sigmoid, dict(color=plots.NOISE, ls="-."))}  # fmt: skip
    for name, (function, how) in lines.items():
        sign = np.sign(weight @ (function(y) * best(y))) if strength > 1e-6 or function is trained else 1.0
        ax.plot(label, sign * function(label) / (weight @ function(y) ** 2) ** 0.5, label=name, **how)
    ax.set(xlabel="label $y$", ylabel="gate $T(y)$", ylim=(-3.4, 3.4), title=f"Strength of the sigmoid: {strength:.3f}")
    ax.legend(loc="upper left", fontsize=9)
    return fig


@plots.look.styled
def subspace(step: xr.Dataset, d: int, r: int) -> Figure:
    """Share of one pretraining step that lies in the subspace, over the prompts."""
    fig = plots.learning_curves(step.rename(share="signal"), {"signal": "one step"}, x="prompts",
                                levels={"random": (r / d) ** 2}, title="One step, and the subspace stands out",
                                ylabel="share of the step in the subspace")  # fmt: skip
    fig.axes[0].set_ylim(0, 1.02)
    return fig


@plots.look.styled
def risks(found: xr.DataArray, d: int, r: int) -> Figure:
    """Risk at fresh queries over the examples, predictor by predictor."""
    def predicted(size):
        return lambda n: law.cubic_risk(np.array([overlap_law("silu 4", size)(n)]))

    fig = plots.dots(found, "n", "predictor", READERS, {"silu 4": predicted(d), "inside": predicted(r)}, log="x",
                     title="Who can predict the label?", legend=None, size=(5.2, 4.4), hollow=("none",))  # fmt: skip
    fig.axes[0].set_ylim(0, 1.3)
    fig.legend(loc="outside lower center", ncols=2)
    return fig
