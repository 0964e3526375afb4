"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.foundation_models import two_clocks as lecture
from flbook.lectures.foundation_models.two_clocks import clocks
from flbook.plots.schematic import Schematic, matrix, op, out, strip

MODEL = Schematic(
    "A denoiser on fixed features",
    [
        ("drawn", {"x": strip("$x_i$", "sample", "context*6", lane=-0.5, alt="a training sample"),
                   "e": strip(r"$\epsilon$", "noise", "noise*6", lane=0.5, alt="fresh noise")}),
        ("noisy", {"p": op("+", "shares", lane=0, alt="plus")}),
        ("fixed", {"W": matrix("$W$", "random", "gggg gggg gggg gggg", lane=0, alt="the matrix W, fixed")}),
        ("features", {"f": strip(r"$\varphi$", "tanh", "grey*10", lane=0, alt="m features")}),
        ("trained", {"B": matrix("$B$", "readout", "ssss ssss ssss ssss", lane=0, alt="the matrix B, trained")}),
        ("its guess", {"y": out(r"$-B\varphi\approx\epsilon$", lane=0, alt="the noise, guessed")}),
    ],
    ["x > p", "e > p", "p > W > f > B > y"],
    says="Every noise is fresh, the samples are the same ones again and again.",
)  # fmt: skip

SHADES = ("#9ecae1", "#4292c6", "#08519c", "#08204f")  # few samples to many
PAINT = {"digits": plots.NOISE, "normal digits": plots.SIGNAL}


def spread(ax: Axes, x: np.ndarray, values: xr.DataArray, **look) -> None:
    """Means over the seeds, with bars from the 10 % to the 90 % quantile."""
    values = values.transpose("seed", ...)
    mean, ends = values.mean("seed").values, values.quantile([0.1, 0.9], "seed").values
    ax.errorbar(x, mean, np.abs(ends - mean), capsize=2, ls="none", **look)


def limit_marks(n: np.ndarray, d: int, kept: float) -> np.ndarray:
    """The half gap's time of infinitely many features, from the law of Marchenko and Pastur, at each n."""
    s, found = lecture.times().numpy(), []
    for one in n:
        train, test = clocks.exact_losses(s, int(one), d, kept, *clocks.marchenko_pastur(d / one))
        gap = test - train
        found.append(np.exp(np.interp(gap[-1] / 2, gap, np.log(s))))
    return np.array(found)


def two_clocks(curves: xr.Dataset, found: xr.Dataset) -> Figure:
    """Losses over the training time for several n, and both times over n."""
    fig, (left, right) = plots.panels(2)
    kept, d = float(curves.attrs["kept"]), int(curves.attrs["d"])
    for n, colour in zip(curves.n.values, SHADES, strict=False):
        at = curves.sel(n=n).mean("seed")
        left.plot(curves.s, at.test, color=colour, label=f"$n={n}$")
        left.plot(curves.s, at.train, color=colour, lw=1, ls=":")
    for n in curves.n.values:
        theory = clocks.exact_losses(curves.s.values, int(n), d, kept, *clocks.marchenko_pastur(d / n))
        left.plot(curves.s, theory[1], color=plots.THEORY, ls="--", lw=0.8, label="theory" * bool(n == curves.n[0]))
    left.set(xscale="log", xlabel="training time $\\bar t$", ylabel="loss", xlim=(1, 1e7),
             title="Test loss; dotted, training loss")  # fmt: skip
    left.set(yscale="log", ylim=(0.2, 6), yticks=(0.3, 0.8, 1, 4), yticklabels=("0.3", "0.8", "1", "4"))
    left.minorticks_off()
    left.legend(fontsize=9, loc="upper left")
    at, n = found.sel(kept=kept).squeeze("m", drop=True), found.n.values
    spread(right, n, at.half_gap, fmt="o", color=plots.NOISE, label="half of the gap")
    spread(right, n, at.learned, fmt="s", color=plots.SIGNAL, label="half learned")
    right.plot(n, limit_marks(n, d, kept), color=plots.THEORY, ls="--", label="theory")
    right.plot(n, 0 * n + clocks.learning_time(d), color=plots.THEORY, ls="--")
    right.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="training time $\\bar t$", title="Two clocks",
              ylim=(2, 1e6))  # fmt: skip
    right.set_xticks(n, [str(one) for one in n])
    right.minorticks_off()
    right.legend(fontsize=9)
    return fig


def rates(curves: xr.Dataset, noises: xr.Dataset) -> Figure:
    """The spectrum at one noise, and the slow rates over the noise."""
    fig, (left, right) = plots.panels(2)
    kept, d, n = float(curves.attrs["kept"]), int(curves.attrs["d"]), int(curves.n[-1])
    (a, v2, _), mode = clocks.strengths(kept), np.arange(1, n + d + 1)
    rate = curves.rates.mean("seed").values
    groups = ((slice(0, d), plots.NOISE, "o", "slow: memory that matters"), (slice(d, n), plots.TRAIN, ".", "bulk"),
              (slice(n, None), plots.SIGNAL, "s", "fast: learning"))  # fmt: skip
    for part, colour, marker, name in groups:
        left.plot(mode[part], rate[part], marker, color=colour, label=name, ms=5)
    for level, words in ((a**2 / d, "$a^2/d$"), (v2 / n, "$v^2/n$"), (v2 * (1 - kept) / n, r"$v^2(1-\bar\alpha)/n$")):
        left.axhline(level, color=plots.THEORY, ls="--", lw=1)
        left.annotate(words, (n / 2, level), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    left.set(yscale="log", xlabel="mode, by size", ylabel="rate", title=f"All rates, $n={n}$, $d={d}$",
             ylim=(2e-6, 0.4))  # fmt: skip
    left.legend(fontsize=9, loc="center", bbox_to_anchor=(0.5, 0.68))
    x, n = noises.kept.values, int(noises.n[0])
    at = noises.squeeze(["m", "n"], drop=True)
    fine = np.linspace(x.min(), x.max(), 80)
    spread(right, x, n * at.slow, fmt="o", color=plots.NOISE, label="slow")
    spread(right, x, n * at.bulk, fmt="s", color=plots.TRAIN, label="bulk")
    right.plot(fine, [clocks.memory_rate(1, k) for k in fine], color=plots.THEORY, ls="--", label="theory")
    right.plot(fine, [clocks.strengths(k).v2 for k in fine], color=plots.THEORY, ls="--")
    right.set(yscale="log", xlabel=r"variance that is left $\bar\alpha$", ylabel="$n$ times the rate",
              title="Memory is fastest between")  # fmt: skip
    right.legend(fontsize=9, loc="lower right")
    return fig


def features(found: xr.Dataset, wide: xr.Dataset) -> Figure:
    """The half gap over the limit's, and the losses, by the number of features."""
    fig, (left, right) = plots.panels(2)
    n, kept, d = int(found.n[0]), float(found.kept[0]), 8
    at, m = found.squeeze(["n", "kept"], drop=True), found.m.values
    spread(left, m / n, at.half_gap / limit_marks(np.array([n]), d, kept)[0], fmt="o", color=plots.SIGNAL,
           label="Gaussian features")  # fmt: skip
    ratio = wide.tanh_half_gap / xr.DataArray(limit_marks(wide.n.values, 16, kept), dims="n", coords={"n": wide.n})
    for one, marker in zip(wide.n.values, "v^D", strict=False):
        spread(left, wide.each.values * (1 + 0.002 * one), ratio.sel(n=one), fmt=marker, color=plots.NOISE, mfc="none",
               label=f"tanh, $n={one}$")  # fmt: skip
    left.axhline(1, color=plots.THEORY, ls="--", lw=1)
    left.set(xscale="log", xlabel="features over samples $m/n$", ylabel="half gap's time over the limit's",
             title="When it memorises")  # fmt: skip
    for name, colour, marker, words in (("end", plots.NOISE, "o", "at the end"), ("best", plots.TEST, "s", "stopped")):
        spread(right, m / n, at[name], fmt=marker, color=colour, label=words)
    for level in (kept, kept / (1 - kept)):
        right.axhline(level, color=plots.THEORY, ls="--", lw=1)
    right.set(xscale="log", xlabel="features over samples $m/n$", ylabel="test loss", title="What it ends at")
    for ax in (left, right):
        plots.look.log_ticks(ax)
        ax.legend(fontsize=9)
    return fig


def digits(curves: xr.Dataset, found: xr.Dataset, net: xr.Dataset) -> Figure:
    """Test loss of digits over time; when it has risen again, over n, also of a trained network."""
    fig, (left, right) = plots.panels(2)
    for n, colour in zip(curves.n.values, SHADES, strict=False):
        for data, style in (("digits", "-"), ("normal digits", "--")):
            name = f"$n={n}$" if data == "digits" else ""
            left.plot(curves.s, curves.test.sel(n=n, data=data), style, color=colour, label=name)
    left.set(xscale="log", xlim=(3, 1e7), ylim=(0.4, 1.6), xlabel="training time $\\bar t$", ylabel="test loss",
             title="Digits; dashed, Gaussian")  # fmt: skip
    left.legend(fontsize=9)
    for data, marker, name in (("digits", "o", "digits"), ("normal digits", "s", "Gaussian, same covariance")):
        spread(right, found.n.values, found.risen.sel(data=data), fmt=marker, color=PAINT[data], label=name)
    spread(right, net.n.values, net.risen, fmt="^", color=plots.TEST, label="network, in steps")
    n = found.n.values
    right.plot(n, found.risen.sel(data="digits").mean("seed")[0].item() * n / n[0], color=plots.THEORY, ls=":",
               label="proportional to $n$")  # fmt: skip
    right.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="training time $\\bar t$, or steps",
              title="When it has risen by 10 %")  # fmt: skip
    plots.look.log_ticks(right)
    right.legend(fontsize=9)
    return fig


def copied(copies: xr.Dataset) -> Figure:
    """Copies among the samples, over the training time."""
    fig, (last,) = plots.panels(1)
    for n, colour, marker in zip(copies.n.values, SHADES[1:], "osD", strict=False):
        values = copies.copied.sel(n=n)
        spread(last, copies.s.values, values, fmt=marker, color=colour, label=f"$n={n}$")
        last.plot(copies.s, values.mean("seed"), color=colour, lw=1)
    last.axhline(float(copies.test.mean()), color=plots.THEORY, ls=":", label="test pictures")
    last.set(xscale="log", ylim=(-0.02, 0.42), xlabel="training time $\\bar t$", ylabel="share of samples",
             title="Samples that are copies")  # fmt: skip
    last.legend(fontsize=9)
    return fig


def still(n: int = 64, d: int = 8, kept: float = 0.8) -> Figure:
    """What the live figure shows when it opens."""
    fig, (left, right) = plots.panels(2)
    s = lecture.times(1e8).numpy()
    train, test = clocks.exact_losses(s, n, d, kept, *clocks.marchenko_pastur(d / n))
    left.plot(s, test, color=plots.TEST, label="new samples")
    left.plot(s, train, color=plots.TRAIN, ls="--", label="training samples")
    for level in (kept, kept / (1 - kept)):
        left.axhline(level, color=plots.THEORY, ls=":", lw=1)
    for when in (clocks.learning_time(d), clocks.half_gap(kept) / clocks.memory_rate(n, kept)):
        left.axvline(when, color=plots.THEORY, lw=1)
    left.set(xscale="log", xlabel="training time $\\bar t$", ylabel="loss", title=f"$n={n}$, $d={d}$")
    left.legend(fontsize=9)
    every = np.linspace(0.05, 0.99, 100)
    right.plot(every, [clocks.half_gap(k) / clocks.memory_rate(n, k) for k in every], color=plots.NOISE, label="memory")
    right.plot(every, 0 * every + clocks.learning_time(d), color=plots.SIGNAL, label="learning")
    right.axvline(kept, color=plots.TRAIN, ls=":")
    right.set(yscale="log", xlabel=r"variance that is left $\bar\alpha$", ylabel="training time $\\bar t$",
              title="Both clocks")  # fmt: skip
    right.legend(fontsize=9)
    return fig
