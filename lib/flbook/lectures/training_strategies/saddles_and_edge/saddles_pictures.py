"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.training_strategies.saddles_and_edge import unbalanced_pair as pair
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import free_share
from flbook.plots.schematic import Schematic, box, matrix, out, strip

MODEL = Schematic(
    "Two linear layers, seen in the modes of their target",
    [
        ("input", {"x": strip("$x$", "input", "context*4", lane=0, alt="an input x of d coordinates")}),
        ("first layer", {"W1": matrix("$W_1$", "column $p_k$", "scgg scgg scgg scgg", lane=0, alt="W 1, m times d")}),
        ("hidden", {"h": strip("", "width $m$", "-grey*6", lane=0, alt="m hidden numbers")}),
        ("second layer", {"W2": matrix("$W_2$", "row $q_k$", "ssss cccc gggg gggg", lane=0, alt="W 2, d times m")}),
        ("modes", {"u": box(r"$u_k=\langle p_k,q_k\rangle$", lane=0, alt="u k, the inner product of p k and q k")}),
        ("residual", {"r": out(r"$\zeta_k=s_k-u_k$", lane=0, alt="s k minus u k")}),
    ],
    ["x > W1 > h > W2 > u > r"],
    says="Mode k is carried by one column of the first layer and one row of the second.",
)  # fmt: skip

MODES = ("#0072B2", "#AA3377", "#009E73", "#8A6A00", "#D55E00", "#56B4E9", "#882255", "#777777")
DOTS = ("o", "s", "D", "^", "v", "P", "X", "<")
DOTTED = (0, (1, 1.5))


def alone(steps: int, s: float, u_0: float, lr: float) -> np.ndarray:
    """The share of a balanced mode that is learned before each step: u grows by (1 + lr (s - u))² in a step."""
    u = [u_0]
    for _ in range(steps - 1):
        u.append(u[-1] * (1 + lr * (s - u[-1])) ** 2)
    return np.array(u) / s


def race(found: xr.Dataset, u_0: xr.DataArray, lr: float, m: int, c: float, height: float) -> Figure:
    """Modes of a small start one after another, and the sharpness of one mode that begins above the edge."""
    fig, (left, right) = plots.panels(2)
    time, free = found.time.values, free_share(m, found.sizes["s"])
    for k, s in enumerate(found.s.values):
        own = found.share.sel(s=s).isel(sigma=0)
        band = own.quantile([0.1, 0.9], "seed").values
        left.fill_between(time, *band, color=MODES[k], alpha=0.25, lw=0)
        every = slice(k, None, 9)
        left.plot(time[every], own.mean("seed")[every], DOTS[k], color=MODES[k], ms=4, label=f"$s={s:g}$")
        start = float(u_0.sel(s=s).isel(sigma=0).mean()) * free[k]
        left.plot(time, alone(len(time), s, start, lr), color=plots.THEORY, ls="--", lw=1.2)
    left.set(xlabel=r"time $\eta t$", ylabel="share of the mode learned", title="A small start", xlim=(0, time[-1]))
    left.legend(fontsize=9, loc="lower right")
    h, residual = (part[:, 0, 0].numpy() for part in pair.trace(pair.start(_strength(c), height, (0,), 8),
                                                                 round(30 / height)))  # fmt: skip
    step = np.arange(len(h))
    right.plot(step, h, color=plots.TRAIN, lw=0.8, label="every step")
    smooth = h + 2 * c * residual
    right.plot(step[::7], smooth[::7], "o", ms=4, color=plots.SIGNAL, label="mean of two steps")
    right.plot(step, burst(step, c, height, abs(residual[0])), color=plots.THEORY, ls="--", label="theory")
    right.axhline(0, color=plots.NOISE, lw=1.2, ls=DOTTED, label=r"edge, $2/\eta$")
    right.set(xlabel="step", ylabel="height over the edge, $\\eta Q-2$", title="A start above the edge")
    right.legend(fontsize=9)
    return fig


def burst(step: np.ndarray, c: float, height: float, residual: float) -> np.ndarray:
    """The mean height of two steps, by theory to first order, from a first residual of this size."""
    middle = np.arccosh(pair.largest(height, c) / residual) / height
    return -height * np.tanh(height * (step - middle))


def saddles(path: xr.Dataset, flow: xr.Dataset, deep: xr.Dataset) -> Figure:
    """The distance from the first saddle along training, and the least distances over the size of the start."""
    fig, (left, right) = plots.panels(2)
    for k, sigma in enumerate(path.sigma.values):
        values = path.distance.sel(sigma=sigma, rank=1).mean("seed")
        left.plot(path.time, values, color=MODES[k], label=rf"$\sigma_0=10^{{{np.log10(sigma):.0f}}}$")
    left.set(yscale="log", xlabel=r"time $\eta t$", ylabel="distance from the first saddle", title="Passing a saddle",
             xlim=(0, path.attrs["until"]))  # fmt: skip
    start = flow.sigma.values**2
    shown = (("distance", "o", plots.SIGNAL, "distance, two layers", 1 / 3),
             ("gradient", "^", plots.TEST, "gradient, two layers", 1 / 5))  # fmt: skip
    for name, dot, colour, words, power in shown:
        values = flow[name].sel(rank=1).mean("seed").values
        right.plot(start, values, dot, color=colour, label=words)
        right.plot(start, values[-1] * (start / start[-1]) ** power, color=plots.THEORY, ls="--", lw=1)
    three = deep.sel(depth=3)
    x, y = three.sigma.values**3, three.distance.mean("seed").values
    right.plot(x, y, "D", color=plots.NOISE, label="distance, three layers")
    right.plot(x, y[-1] * x / x[-1], color=plots.THEORY, ls="--", lw=1, label="slopes 1/5, 1/3, 1")
    right.set(xscale="log", yscale="log", xlabel=r"size of the start, $\sigma_0^L$", title="How near")
    plots.look.log_ticks(right)
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig


def digits(found: xr.Dataset) -> Figure:
    """Half times over the variance of a mode, and the rise of each mode in units of its own half time."""
    fig, (left, right) = plots.panels(2)
    looks = {"small": ("small start", "o", plots.SIGNAL), "lazy": ("lazy start", "s", plots.NOISE)}
    for start, (words, dot, colour) in looks.items():
        own = found.sel(start=start).mean("seed")
        left.plot(own.variance, own.half / own.half[0], dot, color=colour, label=words)
        for mode in (1, 4, 8):
            right.plot(own.clock, own.share.sel(mode=mode), color=colour, lw=1.6, alpha=0.4 + 0.6 * (mode == 1),
                       label=words if mode == 1 else None)  # fmt: skip
    v = own.variance.values
    left.plot(v, 1 / v, color=plots.THEORY, ls="--", label="one over the variance")
    clock = own.clock.values
    steep = np.log(1 / float(found.u_0.sel(start="small").mean()) - 1)
    right.plot(clock, 1 / (1 + np.exp(steep * (1 - clock))), color=plots.THEORY, ls="--", lw=1.2, label="theory")
    right.plot(clock, 1 - 0.5**clock, color=plots.THEORY, ls="--", lw=1.2)
    left.set(xscale="log", yscale="log", xlabel="variance over the largest", ylabel="half time, relative",
             title="The same order")
    left.set_xticks([0.3, 0.5, 1], ["0.3", "0.5", "1"])
    left.set_yticks([1, 2, 3], ["1", "2", "3"])
    left.minorticks_off()
    right.set(xlabel="time over the mode's half time", ylabel="share of the mode learned", title="Another rise")
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig


def mirror(wide: xr.Dataset, c: float = 0.3, heights: Sequence[float] = (0.1, 0.2, 0.3)) -> Figure:
    """The height at the end over that at the start, and the plane of residual and height, where theory has circles."""
    fig, (left, right) = plots.panels(2)
    fine = np.linspace(0, float(wide.height.max()), 100)
    left.plot(fine, -fine, color=plots.THEORY, ls="--", label="mirror")
    for k, one in enumerate(wide.c.values):
        left.plot(wide.height, wide.end.sel(c=one).mean("seed"), DOTS[k], color=MODES[k], label=f"$c={one:g}$")
        second = pair.end(fine, one)
        left.plot(fine[second < 0], second[second < 0], color=MODES[k], lw=1, ls=DOTTED)
    left.axhline(0, color=plots.NOISE, lw=1.2, ls=DOTTED)
    left.set(xlabel="height at the start, $h_0$", ylabel="height at the end", title="End against start",
             ylim=(-1.9, 0.1))  # fmt: skip
    angle = np.linspace(0, 2 * np.pi, 200)
    for k, height in enumerate(heights):
        h, residual = pair.trace(pair.start(_strength(c), height, (1,), 8), round(30 / height))
        mean, size = h + 2 * c * residual, (2 * (1 - c * c)) ** 0.5 * residual
        right.plot(size[:, 0, 0], mean[:, 0, 0], DOTS[k], color=MODES[k], ms=3.5, label=f"$h_0={height:g}$")
        right.plot(height * np.cos(angle), height * np.sin(angle), color=plots.THEORY, ls="--", lw=1)
    right.set(xlabel=r"$\sqrt{2(1-c^2)}\;\eta\,\zeta$", ylabel="mean height of two steps",
              title=f"One burst, $c={c:g}$")  # fmt: skip
    right.set_aspect("equal", adjustable="datalim")
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig


def hovering(found: xr.Dataset, seed: int = 3) -> Figure:
    """The sharpness of a network along training, and where it ends, over where small steps take it."""
    fig, (left, right) = plots.panels(2)
    looks = dict(zip(found.lr.values, ((plots.TRAIN, "o"), (plots.TEST, "D"), (plots.SIGNAL, "s")), strict=True))
    small = min(looks)
    ends = after(found)
    for lr, (colour, dot) in looks.items():
        left.plot(found.time, found.sharpness.sel(lr=lr, seed=seed), color=colour, label=rf"$\eta={lr:g}$")
        if lr > small:
            _edge(left, lr, colour)
            right.plot(ends.sel(lr=small), ends.sel(lr=lr), dot, color=colour, label=rf"$\eta={lr:g}$")
            _edge(right, lr, colour)
    span = [float(ends.sel(lr=small).min()), float(ends.sel(lr=small).max())]
    right.plot(span, span, color=plots.THEORY, ls="--", lw=1, label="as in small steps")
    left.set(xlim=(0, 120), xlabel=r"time $\eta t$", ylabel=r"sharpness", title="One network")
    right.set(xlabel=r"sharpness in small steps", ylabel=r"sharpness", title="Second half of training")
    left.legend(fontsize=9, loc="center right", bbox_to_anchor=(1, 0.45))
    right.legend(fontsize=9)
    return fig


def _edge(ax: Axes, lr: float, colour: str) -> None:
    """The line 2/lr."""
    ax.axhline(2 / lr, color=colour, ls=DOTTED, lw=1.2)


def after(found: xr.Dataset) -> xr.DataArray:
    """Mean sharpness over the second half of the time, (lr, seed)."""
    return found.sharpness.where(found.time >= found.time.max() / 2, drop=True).mean("time")


def _strength(c: float) -> torch.Tensor:
    """One c, as `pair.start` takes it."""
    return torch.tensor([c], dtype=torch.float64)


def still(c: float = 0.3, height: float = 0.1, steps: int = 600) -> Figure:
    """What the live figure shows when it opens."""
    fig, (left, right) = plots.panels(2)
    training = pair.start(_strength(c), height, (0,), 8)
    h, residual = (part[:, 0, 0].numpy() for part in pair.trace(training, steps))
    left.plot(h, color=plots.SIGNAL, lw=1.5, label="sharpness")
    left.axhline(0, color=plots.NOISE, ls=DOTTED, label="edge")
    left.set(xlabel="step", ylabel="height over the edge", title="Over the steps")
    mean, size = (h + 2 * c * residual), (2 * (1 - c * c)) ** 0.5 * residual
    right.plot(size, mean, "o", ms=3, color=plots.SIGNAL, label="a step")
    angle = np.linspace(0, 2 * np.pi, 200)
    right.plot(height * np.cos(angle), height * np.sin(angle), color=plots.THEORY, ls="--", label="theory")
    right.set(xlabel="residual, scaled", ylabel="mean height of two steps", title="Residual and height")
    right.set_aspect("equal", adjustable="datalim")
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig
