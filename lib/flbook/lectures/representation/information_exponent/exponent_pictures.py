"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import hermite, plots
from flbook.fits import Fit
from flbook.plots.schematic import Schematic, box, curve, op, out, strip

MODEL = Schematic(
    "A single-index target, and an average that looks for its direction",
    [
        ("input", {"x": strip("$x$", "$d$ coordinates", "grey*2 signal grey*3", alt="the input, d coordinates")}),
        ("hidden coordinate", {"z": op("$z$", lane=-0.8, alt="z, its part along beta")}),
        ("link", {"g": curve("$g$", holds="cube", lane=-0.8, alt="the link g")}),
        ("label, gate", {"T": box("$T(y)$", lane=-0.8, alt="a function T of the label")}),
        ("average", {"sum": op(r"$\Sigma$", alt="the mean over samples of T(y) x")}),
        ("direction", {"w": out("$w$", alt="a direction, to be compared with beta")}),
    ],
    ["x > z > g > T > sum > w", "x > sum"],
    says="Every input is weighed by a function of its label.",
)  # fmt: skip

GATES = {"y³": (plots.NOISE, "v"), "sign y": (plots.TRAIN, "s"), "small y": (plots.TEST, "o"),
         "E[z|y]": (plots.SIGNAL, "^"), "y": (plots.TRAIN, "v"), "-tanh y": (plots.TEST, "s"),
         "1 - 1/E[z²|y]": (plots.SIGNAL, "^")}  # fmt: skip


@plots.look.styled
def averages(labels: xr.DataArray, gated: xr.DataArray, law: Callable, strengths: Mapping[str, float]) -> Figure:
    """Squared cosine of averages with the direction, of labels of three links, and of gated labels of the third.

    labels: over (link, alpha, seed). gated: over (gate, alpha, seed). law: by alpha and the strength.
    """
    fig, (left, right) = plots.panels(2, sharex=True, sharey=True)
    names = {f"h_{k}": f"$h_{k}$" for k in labels.link.values}
    three = labels.assign_coords(link=list(names)).to_dataset("link")
    plots.learning_curves(three, names, x="alpha", title="Labels as they are", ylabel="squared cosine with β", ax=left)
    shown = {"E[z|y]": "best", "sign y": "sign y"}
    two = gated.sel(gate=list(shown)).to_dataset("gate")
    plots.learning_curves(two, shown, x="alpha", title="$h_3$ through a gate", ylabel="squared cosine with β", ax=right)
    for ax, all_strengths in ((left, (1.0,)), (right, tuple(strengths[name] for name in shown))):
        for strength in all_strengths:
            ax.plot(labels.alpha, law(labels.alpha, strength), "--", color=plots.THEORY, lw=1.3)
    return fig


def steps(needed: Mapping[int, xr.DataArray], slopes: Mapping[int, Fit], theory: Mapping[int, float]) -> Figure:
    """Samples per dimension that one gradient step needs, against the dimension, for three links. theory: slopes."""
    laws = {f"$h_{k}$": (needed[k].rename("n/d"), slopes[k]) for k in needed}
    lines = {f"$h_{k}$": slope for k, slope in theory.items()}
    title, ylabel = "One neuron's step needs $d^k$ samples", "n/d at which the cosine is 0.7"
    return plots.exponents(laws, "d", lines, title=title, ylabel=ylabel)


def gate(name: str, gates: Mapping[str, tuple[Callable, Sequence[float]]], link: Callable) -> Figure:
    """One gate beside the best one, over the label."""
    label = np.linspace(-3, 3, 601)
    function, jumps = gates[name]
    found, ideal = function(label), gates["E[z|y]"][0](label)
    fig, ax = plt.subplots(figsize=(4.4, 3.2))
    ax.plot(label, ideal, color=plots.THEORY, linestyle="--", label="best, E[z|y]")
    ax.plot(label, found * np.abs(ideal).max() / np.abs(found).max(), color=plots.SIGNAL, label="gate, scaled")
    strength = hermite.strength(function, link, 1, jumps)
    ax.set(xlabel="label y", ylim=(-3.2, 3.2), title=f"{name}: strength {strength:.3f}")
    plots.shared_legend((ax,), ncols=2)
    return fig


@plots.look.styled
def one_curve(useful: xr.DataArray, strengths: Mapping[str, float], law: Callable) -> Figure:
    """Squared cosine of gated averages against samples per dimension times strength."""
    fig, ax = plt.subplots()
    for name in useful.gate.values:
        dots, (colour, marker) = useful.sel(gate=name), GATES[name]
        at, mean, spread = strengths[name] * dots.alpha, dots.mean("seed"), dots.std("seed")
        ax.errorbar(at, mean, spread, fmt=marker, color=colour, label=name)
    line = np.geomspace(0.008, 50, 100)
    ax.plot(line, law(line, 1.0), "--", color=plots.THEORY, label="αs/(1 + αs)")
    ax.set(xscale="log", xlabel="α s, samples over dimension times strength", ylabel="squared cosine with β",
           title="One curve for the gates that hold no rare labels")  # fmt: skip
    plots.shared_legend((ax,), ncols=3)
    return fig


@plots.look.styled
def threshold(overlap: xr.DataArray, closed: Mapping[str, tuple[np.ndarray, np.ndarray]], place: float) -> Figure:
    """Squared cosine of the top eigenvector of gated matrices with the direction, and where the best one starts."""
    fig, ax = plt.subplots()
    for name in overlap.gate.values:
        dots, (colour, marker) = overlap.sel(gate=name), GATES[name]
        ax.errorbar(dots.alpha, dots.mean("seed"), dots.std("seed"), fmt=marker, color=colour, label=name)
    for at, heights in closed.values():
        ax.plot(at, heights, "--", color=plots.THEORY)
    ax.axvline(place, color=plots.CHANCE, linestyle=":")
    ax.text(place * 1.04, 0.9, f"$\\alpha_c$ = {place:.3f}")
    ax.set(xscale="log", xlabel="samples over dimension n/d", ylabel="squared cosine with β",
           title="$h_4$: nothing, then a direction")  # fmt: skip
    plots.look.log_ticks(ax)
    plots.shared_legend((ax,), ncols=3)
    return fig
