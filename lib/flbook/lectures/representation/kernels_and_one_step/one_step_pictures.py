"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from flbook import plots
from flbook.fits import Fit
from flbook.plots.schematic import Schematic, box, curve, op, out, stack, strip

LOW = (5.2, 2.9)  # inches
MODEL = Schematic(
    "A target with one direction, and a network with two layers",
    [
        ("input", {"x": strip("$x$", "Gaussian", "grey", lane=0)}),
        ("inner products", {
            "b": box(r"$\langle x,\beta_*\rangle$", holds="context", lane=-1, alt="the inner product with beta"),
            "w": stack("$w_j$", "one step", lane=1, alt="the neurons' weights w_j, moved by one step"),
        }),
        ("bend", {"t": curve(r"$\sigma_*$", holds="tanh", lane=-1, alt="the link erf"),
                  "s": curve(r"$\sigma$", holds="tanh", lane=1, alt="erf")}),
        ("sum", {"n": op("$+$", r"$\varepsilon$", lane=-1, alt="label noise added"),
                 "a": op(r"$\Sigma$", "$a_j$: ridge", lane=1, alt="the sum with weights a_j, fitted by ridge")}),
        ("output", {"y": out("$y$", lane=-1), "f": out("$f(x)$", lane=1)}),
    ],
    ["x >> b w", "b > t > n > y", "w > s > a > f"],
    says="Target and network meet the same input; the step moves the first layer, ridge regression fits the second.",
)  # fmt: skip


def opening(singular: Tensor, predicted: float) -> Figure:
    """The singular values of the first layer after one step, where no script runs."""
    fig, (ax,) = plots.panels()
    ax.hist(singular[:-1], bins=np.geomspace(0.3, 3, 24), color=plots.TRAIN, label="the bulk")
    ax.plot(singular[-1], 1, "o", color=plots.SIGNAL, ms=9, label="the largest")
    ax.axvline(predicted, color=plots.THEORY, ls="--", label="its place in theory")
    ax.set(xscale="log", xlabel="singular value of the first layer", ylabel="count")
    ax.set_title("After one large step a direction stands out")
    plots.log_ticks(ax)
    ax.legend()
    return fig


def risks(risk: xr.DataArray, floor: Callable, line: float) -> Figure:
    """Risk over samples per dimension: the step, and rivals with fixed features. floor: what is proved, by psi_1."""
    labels = {"network": "one step", "frozen": "random features", "tangent kernel": "tangent kernel",
              "best kernel": "best kernel"}  # fmt: skip
    curves = risk.sel(model=list(labels.values())).to_dataset("model")
    curves = curves.rename({label: name for name, label in labels.items() if label != name})
    fig = plots.learning_curves(
        curves, labels, x="psi_1", log="xy", theory={"proved floor": floor}, levels={"best line": line},
        title="Only the step gets below the floor", ylabel="risk R",
    )  # fmt: skip
    fig.set_size_inches(LOW)
    fig.axes[0].set_xlabel("samples per dimension $ψ_1 = n/d$")
    return fig


def overlaps(found: Mapping[float, xr.DataArray], theory: Callable) -> Figure:
    """Overlap of the top direction with the target's over the step size. theory: by step size and psi_1."""
    fig, (ax,) = plots.panels()
    fig.set_size_inches(LOW)
    eta = np.geomspace(0.9, 25, 400)
    for (psi_1, overlap), colour, marker in zip(found.items(), (plots.SIGNAL, plots.NOISE), "os", strict=True):
        low, high = overlap.quantile([0.1, 0.9], "seed")
        ax.vlines(overlap.eta, low, high, color=colour, alpha=0.5)
        ax.plot(overlap.eta, overlap.mean("seed"), marker, color=colour, label=f"$ψ_1$ = {psi_1:g}")
        ax.plot(eta, theory(eta, psi_1), "--", color=plots.THEORY)
    ax.set(xscale="log", xlabel="step size $η$", ylabel="overlap $⟨u_1, β_*⟩^2$", title="A threshold, then the target")
    ax.legend(loc="upper left")
    plots.log_ticks(ax)
    return fig


def steps(network: xr.DataArray, linear: xr.DataArray, line: float, root: float) -> Figure:
    """Risk over the step size, of the network and of its Gaussian equivalent. root: the square root of the width."""
    fig, (ax,) = plots.panels()
    fig.set_size_inches(LOW)
    moved = network.sel(eta=slice(1, None))
    low, high = moved.quantile([0.1, 0.9], "seed")
    ax.vlines(moved.eta, low, high, color=plots.SIGNAL, alpha=0.5)
    ax.plot(moved.eta, moved.mean("seed"), "o", color=plots.SIGNAL, label="network")
    straight = linear.mean("seed").sel(eta=moved.eta)
    ax.plot(moved.eta, straight, "--", color=plots.THEORY, label="Gaussian equivalent")
    ax.axhline(line, color=plots.CHANCE, ls=":")
    ax.axvline(root, color=plots.TRAIN, lw=0.8)
    ax.text(root * 1.05, 0.078, r"$\eta = \sqrt{N}$")
    ax.text(1, line + 0.0015, "best line")
    ax.set(xscale="log", xlabel=r"step size $\eta$", ylabel="risk R", ylim=(0, 0.095))
    ax.set_title("It leaves its equivalent, then the best line")
    ax.legend(loc="lower left")
    plots.log_ticks(ax)
    return fig


def needed(
    risk: Mapping[str, tuple[xr.DataArray, xr.DataArray]], theory: Callable,
    laws: Mapping[str, tuple[xr.DataArray, Fit]], samples: Callable, line: float, level: float,
) -> Figure:  # fmt: skip
    """Risk over all samples at one dimension, and the samples needed over the dimension.

    risk: name -> (samples, risk over x and seed). theory, samples: of the best kernel, by n and by d.
    """
    fig, (left, right) = plots.panels(2)
    look = plots.looks(list(laws))
    for name, (n, values) in risk.items():
        colour, marker = look[name]
        low, high = values.quantile([0.1, 0.9], "seed")
        left.vlines(n, low, high, color=colour, alpha=0.6)
        left.plot(n, values.mean("seed"), marker, color=colour, markeredgecolor="white", markersize=7)
    n = np.geomspace(180, 9500, 60)
    left.plot(n, [theory(k) for k in n], "--", color=plots.THEORY, linewidth=1.3)
    for height, text in ((line, "best line"), (level, "half of it")):
        left.axhline(height, color=plots.CHANCE, ls=":")
        left.text(700, height * 1.04, text, va="bottom")
    left.set(xscale="log", yscale="log", xlabel="all samples, 2n", ylabel="risk R", title="d = 32", ylim=(0.006, 0.08))
    plots.log_ticks(left)
    left.set_xticks([200, 1000, 5000])
    plots.exponents(laws, "d", title="Samples for half the line's risk", ax=right)
    d = np.geomspace(8, 32, 12).round()
    right.plot(d, [samples(int(size)) for size in d], "--", color=plots.THEORY, linewidth=1.3)
    return fig


def paper(found: xr.Dataset, line: float) -> Figure:
    """The paper's Figure 3(c): risk over samples per dimension for six step sizes, and the Gaussian equivalents."""
    fig, (ax,) = plots.panels()
    for k, eta in enumerate(found.eta.values):
        colour, dots = plt.cm.viridis(k / 6), found.risk.sel(eta=eta).mean("seed")
        ax.plot(found.psi_1, dots, "osD^vP"[k], color=colour, label=f"{k / 10:g}")
        ax.plot(found.psi_1, found.equivalent.sel(eta=eta).mean("seed"), "--", color=colour, lw=1.2)
    ax.axhline(line, color=plots.CHANCE, ls=":")
    ax.text(1, line * 0.82, "best line")
    ax.set(xscale="log", yscale="log", xlabel="samples per dimension $ψ_1 = n/d$", ylabel="risk R")
    ax.set_title("d = 512: only large steps leave their lines")
    fig.legend(loc="outside lower center", ncols=6, title=r"$\alpha$ of $\eta = N^\alpha$")
    plots.log_ticks(ax)
    return fig
