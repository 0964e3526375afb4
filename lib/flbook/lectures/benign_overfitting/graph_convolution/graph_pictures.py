"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import fits, plots
from flbook.plots.look import typeset
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

SIGNS = {"+": "+1", "-": "-1"}

MODEL = Schematic(
    "A graph convolution before a two-layer convolutional network",
    [
        ("neighbours", {"i": strip(r"$x_i$", "itself", "signal*2 noise*3", alt="the node itself"),
                        "k": strip(r"$x_k$", "same class", "signal*2 noise*3", alt="neighbours of its class"),
                        "l": strip(r"$x_l$", "other class", "-signal*2 noise*3", alt="and of the other class")}),
        ("mean", {"mean": op(r"$\Sigma$", alt="over the node and its neighbours")}),
        ("patches", {"mu": strip(r"$\alpha_iy_i\mu$", "", "signal*3", alt="the signal, attenuated"),
                     "xi": strip(r"$\tilde\xi_i$", "", "noise*2", alt="the mean of their noise, shorter")}),
        ("filters", {f"w{s}": stack(rf"$w_{{{j},r}}$", "", alt=f"those for the label {j}") for s, j in SIGNS.items()}),
        ("activation", {f"s{s}": curve(r"$\sigma$", holds="squared_relu", alt="a power of ReLU") for s in SIGNS}),
        ("mean, difference", {"sum": op("$-$", alt="mean of one label's filters minus that of the other's")}),
        ("output", {"f": out(r"$f$", alt="f(W, x)")}),
    ],
    ["i k l > mean", "mean >> mu xi", "mu xi >> w+ w-", "w+ w- > s+ s-", "s+ s- > sum > f"],
    says="A node's patches are averaged with its neighbours' before the network sees them.",
)  # fmt: skip


def borders(error: xr.DataArray, n: int, found: Mapping[str, tuple[fits.Fit, xr.DataArray]]) -> Figure:
    """Test errors over n SNR^3 for every degree, and n SNR^q at the border over the degree.

    error: over (degree, seed, snr), q = 3. found: label -> (exponent in D + 1, n SNR^q over degree + 1).
    """
    fig, (left, right) = plots.panels(2)
    phase = (n * error.snr**3).assign_attrs(long_name="n SNR³", units="1")
    over_phase = error.assign_coords(snr=phase).rename(snr="phase")
    plots.collapse(over_phase, x="phase", groups="degree", title="More neighbours, less signal needed", ax=left)
    looks = plots.looks(list(found))
    for name, (slope, border) in found.items():
        colour, mark = looks[name]
        label = f"{name}: −{-slope.value:.2f}"
        right.loglog(border.degree, border, mark + "-", c=colour, ms=7, mec="white", label=label)
    right.set(ylim=(1e-3, 0.8), xlabel="$D + 1$", ylabel=r"$n\,\mathrm{SNR}^q$ at test error 1/4")
    right.set_xticks((13, 25, 49), ("13", "25", "49"))
    right.set_xticks([], minor=True)
    right.set_title("Private noise would help more")
    right.legend(title="exponent in D + 1", loc="lower left")
    return fig


def overlaps(inner: np.ndarray, title: str) -> Figure:
    """Inner products of the averaged noise patches, sorted by class, in units of their own squared length."""
    fig, ax = plt.subplots(figsize=(5.2, 4.0))
    shown = ax.imshow(inner / inner.diagonal().mean(), vmin=0, vmax=1)
    fig.colorbar(shown, label="overlap, own length = 1")
    ax.set(xlabel="node", ylabel="node", title=title)
    return fig


def mixed(error: xr.DataArray, bare: xr.DataArray) -> Figure:
    """Test errors over the share of the signal that the edges leave. error: over (snr, alpha, seed); bare: over snr."""
    fig, (ax,) = plots.panels()
    names = {float(snr): f"SNR = {float(snr):g}" for snr in error.snr}
    looks = plots.looks(list(names.values()))
    for snr, name in names.items():
        colour, mark = looks[name]
        one = error.sel(snr=snr)
        ax.plot(one.alpha, one.mean("seed"), mark + "-", c=colour, ms=7, mec="white", label=f"{name}, D = 24")
        ax.axhline(float(bare.sel(snr=snr)), ls=":", c=colour, lw=1.6, label=f"{name}, no graph")
    ax.set(xlabel=r"$\alpha = (p - s)/(p + s)$", ylabel="test error [fraction]")
    ax.set_title("Edges without regard to the class do harm")
    ax.figure.legend(loc="outside lower center", ncols=2)
    return fig


def rivals(rows: Mapping[str, xr.DataArray], edges: float) -> Figure:
    """Test errors over SNR of several models without a graph and with the largest degree, and of the edges alone."""
    fig, (ax,) = plots.panels()
    looks = plots.looks(list(rows))
    for name, row in rows.items():
        for degree, line in ((0, "--"), (48, "-")):
            text = f"{name}, " + ("no graph" if degree == 0 else "D = 48")
            ax.semilogx(row.snr, row.sel(degree=degree).mean("seed"), line, c=looks[name][0], label=text)
    ax.axhline(edges, ls=":", c=plots.THEORY, lw=1.4, label="edges alone, D = 12")
    ax.set(xlabel="SNR", ylabel="test error [fraction]", title=typeset("The graph helps whoever uses it"))
    ax.figure.legend(loc="outside lower center", ncols=2, handlelength=3.5)
    return fig
