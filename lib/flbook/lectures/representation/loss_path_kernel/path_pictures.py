"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from flbook import fits, plots
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import RedrawnLabels
from flbook.plots.schematic import Schematic, op, out, stack, strip

MODEL = Schematic(
    "The loss path kernel of two samples",
    [
        ("samples", {"z": strip("$z$", "any image", "label*4", alt="any image with its label, z"),
                     "zi": strip("$z_i$", "in training", "grey*4", alt="a training image with its label, z_i")}),
        ("network at t", {"w": stack("$w_t$", lane=0, alt="the neurons w_t at time t")}),
        ("gradients of the losses", {
            "g": strip(r"$\nabla\ell(w_t,z)$", holds="grey*5", alt="the gradient of the loss of z"),
            "gi": strip(r"$\nabla\ell(w_t,z_i)$", holds="grey*5", alt="the gradient of the loss of z_i")}),
        ("product", {"p": op(r"$\langle\,,\rangle$", lane=0, alt="their inner product")}),
        ("over the path", {"s": op(r"$\int$", r"$dt$", lane=0, alt="its integral over the training time")}),
        ("kernel", {"K": out("$K_T(z,z_i)$", lane=0, alt="the loss path kernel K_T(z, z_i)")}),
    ],
    ["z zi >> w", "w >> g gi", "g gi >> p", "p > s > K"],
    says="Both samples pass through one network, at every moment of its training on all z_i.",
)  # fmt: skip

PAINT = {"gap": plots.TEST, "loss path": plots.SIGNAL, "frozen kernel": "#AA3377", "distance": plots.NOISE,
         "half held out": "#332288"}  # fmt: skip
COUNT = "training images n"


def _few(ax: plt.Axes, n: np.ndarray) -> None:
    """Every sample size is a tick."""
    ax.set_xticks(n, [str(k) for k in n])
    ax.set_xticks([], minor=True)


@plots.look.styled
def bounds(true: xr.Dataset, coins: xr.Dataset, law: Callable) -> Figure:
    """The gap and three bounds over the sample size, by labels. law: sample sizes -> gap and bound of coins."""
    fig, axes = plots.panels(2, sharey=True)
    names = {"gap": "gap", "loss path": "lpk", "distance": "distance", "frozen kernel": "ntk"}
    n = true.n.to_numpy()
    for ax, part, title in zip(axes, (true, coins), ("True labels", "Coins for labels"), strict=True):
        plots.series({text: part[name] for text, name in names.items()}, "n", paint=PAINT,
                     levels={"trivial bound": 1.0}, ylim=(0.006, 40), title=title, legend=False, ax=ax)  # fmt: skip
        ax.set(xlabel=COUNT, ylabel="gap and its bounds [nats]")
        _few(ax, n)
    grid = np.geomspace(240, n[-1], 20)
    for row, text in zip(law(grid), ("coins, many images", "_"), strict=True):
        axes[1].plot(grid, row, "--", color=plots.THEORY, lw=1.5, label=text)
    fig.legend(*_all(axes), loc="outside lower center", ncols=3, fontsize=9)
    return fig


def _all(axes) -> tuple[list, list]:
    """Handles and labels of all panels, each label once."""
    found = {}
    for ax in axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    return list(found.values()), list(found)


@plots.look.styled
def explained(found: xr.Dataset, five: np.ndarray, miss: Mapping[str, xr.DataArray]) -> Figure:
    """Test losses along the path, computed and explained; and what steps miss, by rule, over the size of a step."""
    fig, (left, right) = plots.panels(2)
    for image in five:
        left.plot(found.time, found.explained[:, image], "--", color=plots.THEORY, lw=1.4)
        left.plot(found.time, found.loss[:, image], "o", color=plots.TEST, mec="white")
    left.axhline(np.log(2), color=plots.CHANCE, ls=":")
    left.set(xscale="log", xlabel="flow time", ylabel="test loss [nats]", title="Dots: network. Lines: kernel")
    plots.log_ticks(left)
    for (name, row), mark in zip(miss.items(), "os", strict=True):
        slope = float(fits.exponent(row, "step").value)
        right.loglog(row.step, row, mark + "-", c=plots.SIGNAL if mark == "o" else plots.NOISE, mec="white",
                     label=f"{name}: slope {slope:.2f}")  # fmt: skip
    right.set(xlabel="step size in flow time", ylabel="missed by the sum [nats]", title="Steps spoil the sum")
    _few(right, row.step.to_numpy())
    right.legend()
    return fig


def _picture(ax: plt.Axes, data: RedrawnLabels, x: xr.DataArray, left: float, low: float, size: float) -> None:
    """One image with its lower left corner at a place."""
    look = dict(cmap="gray_r", vmin=0, vmax=1)
    ax.imshow(data.picture(torch.tensor(x.to_numpy())), extent=(left, left + size, low, low + size), **look)


def _says(found: xr.Dataset, kind: str, place: int) -> str:
    """The label that an image has, and a mark where it is wrong."""
    y, clean = (float(found[f"{name}_{kind}"][place]) for name in ("y", "clean"))
    return ("even" if y > 0 else "odd") + "!" * (y != clean)


def _signed(change: float) -> str:
    """With a sign, and a true minus."""
    return f"{change:+.2f}".replace("-", "−")


def ranked(found: xr.Dataset, image: int) -> list[int]:
    """The three training images that lowered a test image's loss most, and the two that raised it most."""
    order = np.argsort(found.share[image].to_numpy())
    return [*order[::-1][:3], *order[:2]]


def shares(found: xr.Dataset, data: RedrawnLabels, image: int) -> Figure:
    """One test image, and what five training images did to its loss."""
    fig, ax = plt.subplots(figsize=(5.2, 2.4))
    _picture(ax, data, found.x_image[image], 0, 0, 2.6)
    ax.text(1.3, -0.2, f"test, {_says(found, 'image', image)}", ha="center", va="top")
    for k, i in enumerate(ranked(found, image)):
        left, change = 3.2 + 1.75 * k, -float(found.share[image, i])
        _picture(ax, data, found.x_sample[i], left, 1.1, 1.5)
        colour = plots.SIGNAL if change < 0 else plots.NOISE
        ax.text(left + 0.75, 0.9, _signed(change), ha="center", va="top", color=colour, weight="bold")
        ax.text(left + 0.75, 0.35, _says(found, "sample", i), ha="center", va="top")
    ax.set(xlim=(-0.1, 11.9), ylim=(-0.8, 2.7))
    ax.axis("off")
    ax.set_title(f"loss {float(found.loss[-1, image]):.2f}: log 2 and sixty shares")
    return fig


def shares_alt(found: xr.Dataset, image: int) -> str:
    """The same in words."""
    changes = ", ".join(_signed(-float(found.share[image, i])) for i in ranked(found, image))
    loss = float(found.loss[-1, image])
    return (f"A test image labelled {_says(found, 'image', image)} ends at loss {loss:.2f}. Its three best helpers and "
            f"the two that harmed it most changed that loss by {changes}.")


@plots.look.styled
def turned(true: xr.Dataset, coins: xr.Dataset, limit: float, ranks: Mapping[str, list[fits.Fit]]) -> Figure:
    """Bound over gap for true labels and coins, with the closed form of coins; and rank correlations over n."""
    fig, (left, right) = plots.panels(2)
    n = true.n.to_numpy()
    for (name, part), mark in zip({"true labels": true, "coins": coins}.items(), "os", strict=True):
        over = part.lpk.mean("seed") / part.gap.mean("seed")
        left.loglog(n, over, mark + "-", c=plots.SIGNAL if mark == "o" else plots.NOISE, mec="white", ms=7, label=name)
    left.axhline(limit, color=plots.THEORY, ls="--", lw=1.4, label="coins, many images")
    first = float(true.lpk.sel(n=n[0]).mean() / true.gap.sel(n=n[0]).mean())
    left.loglog(n, 0.8 * first * (n / n[0]) ** 0.5, ls=":", color=plots.THEORY, lw=1.4, label="slope 1/2")
    left.set(xlabel=COUNT, ylabel="bound over gap [1]", title="Overshoot", ylim=(2, 30))
    plots.log_ticks(left)
    left.legend()
    look = plots.looks(list(ranks))
    for name, row in ranks.items():
        colour, mark = look[name]
        right.fill_between(n, *zip(*[fit.interval for fit in row], strict=True), color=colour, alpha=0.15, lw=0)
        right.semilogx(n, [fit.value for fit in row], mark + "-", c=colour, mec="white", ms=7, label=name)
    right.axhline(0, color=plots.CHANCE, ls=":")
    right.set(xlabel=COUNT, ylabel="rank correlation with the gap", title="Does it know the larger gap?", ylim=(-1, 1))
    fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    for ax in (left, right):
        _few(ax, n)
    return fig


@plots.look.styled
def certificates(told: Mapping[str, xr.DataArray], test: xr.DataArray, levels: Mapping[str, float]) -> Figure:
    """What each rule certifies about the test loss, over the sample size, and the test loss itself."""
    fig, (ax,) = plots.panels()
    plots.series({"gap": test, **told}, "n", paint=PAINT, levels=levels, log="x", ylim=(0.3, 2.1), legend=False, ax=ax)
    ax.set(xlabel=COUNT, ylabel="test loss [nats]", title="Held-out images certify more")
    handles, texts = ax.get_legend_handles_labels()
    fig.legend(handles, ["measured", *texts[1:]], loc="outside lower center", ncols=3, fontsize=9)
    _few(ax, test.n.to_numpy())
    return fig
