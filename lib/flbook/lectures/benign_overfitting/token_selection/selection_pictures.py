"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.benign_overfitting.token_selection import selection
from flbook.plots.look import log_ticks, typeset
from flbook.plots.schematic import Schematic, across, bar, dots, op, out, strip

MODEL = Schematic(
    "One query chooses a token",
    [
        ("tokens", {
            "x1": strip(r"$x_1=\mu_y+\xi_1$", "", "signal+noise", alt="the relevant token, signal plus noise"),
            "x2": strip(r"$x_2=\varrho\mu_y+\xi_2$", "", "signal+noise*1 noise*5", alt="a hint at the class"),
            "x3": strip(r"$x_3=\varrho\mu_{-y}+\xi_3$", "", "-signal*1 noise*5", alt="a hint at the other class"),
            "x4": strip(r"$x_4=\xi_4$", "", "noise", alt="noise"),
            "x.": dots(alt="and so on"),
            "xL": strip(r"$x_L=\xi_L$", "", "noise", alt="noise"),
        }),
        ("attention", {"soft": across(r"softmax$_\ell\ \langle u,x_\ell\rangle$")}),
        ("weights", {
            "s1": bar(value=0.9, holds="signal", lane=-2.5, alt="a large one"),
            "s2": bar(value=0.15, lane=-1.5, alt="small ones"),
            "s3": bar(value=0.1, lane=-0.5, alt="small ones"),
            "s4": bar(value=0.12, lane=0.5, alt="small ones"),
            "sL": bar(value=0.07, lane=2.5, alt="small ones"),
        }),
        ("mean", {"sum": op(r"$\Sigma$", r"$\Sigma_\ell\,s_\ell x_\ell$", alt="the weighted mean of the tokens")}),
        ("head", {"nu": strip(r"$\nu$", "fixed", "signal*3 -signal*3", alt="fixed, knows the signals")}),
        ("output", {"f": out(r"$f(X)$", alt="f(X)")}),
    ],
    ["x1 x2 x3 x4 xL > soft > s1 s2 s3 s4 sL > sum > nu > f"],
    says="Only the query u is trained.",
)  # fmt: skip
REPORTED = 1000 * 5e-3 / 3  # time of the 1000 steps that the paper reports


@plots.look.styled
def share_and_error(shares: Mapping[str, tuple[np.ndarray, np.ndarray]], errors: xr.DataArray, mu: float) -> Figure:
    """How often fresh samples select the relevant token, over the closed ratio, and test errors over the clock.

    shares: label -> (ratios, shares). errors: over (d, seed, time), at the signal strength mu.
    """
    fig, (left, right) = plots.panels(2)
    ratio = np.linspace(0.1, 5, 80)
    left.plot(ratio, selection.selected_share(ratio), "--", color=plots.THEORY, label="one integral, S(R)")
    looks = (dict(color=plots.TEST, marker="o", ms=7), dict(color=plots.TEST, marker="D", ms=5, mfc="white"))
    for (name, (x, y)), look in zip(shares.items(), looks, strict=True):
        left.plot(x, y, ls="", label=typeset(name), zorder=3, **look)
    left.axhline(1 / 8, color=plots.CHANCE, ls=":")
    left.set(xlabel=typeset("selection ratio R, closed form"), ylabel="share that selects",
             title="One ratio says how often", ylim=(0, 1.03))  # fmt: skip
    left.legend(loc="upper left")
    time = errors.time.values[errors.time.values > 0.05]
    for d, colour in zip(errors.d.values, plots.look.SHADES(np.linspace(0, 1, errors.sizes["d"])), strict=True):
        one, ratio = errors.sel(d=d), selection.selection_ratio(20, mu, d)
        right.fill_between(time, *one.sel(time=time).quantile([0.1, 0.9], "seed"), color=colour, alpha=0.2, lw=0)
        right.plot(time, one.sel(time=time).mean("seed"), color=colour, label=f"d = {d}, R = {ratio:.1f}")
        late = time[time > 20]
        right.plot(late, selection.clock_error(late, 20, mu, d), "--", color=plots.THEORY, lw=1.2)
    right.axhline(selection.uniform_attention_error(mu), color=plots.CHANCE, ls=":")
    right.axvline(REPORTED, color=plots.THEORY, ls=":", lw=1)
    right.set(xscale="log", xlabel=typeset("training time ηt"), ylabel="test error [fraction]", ylim=(0, 0.27),
              title="Further training brings errors back")  # fmt: skip
    log_ticks(right)
    right.legend(loc="lower right")
    return fig


@plots.look.styled
def looking(now: xr.Dataset, limit: float) -> Figure:
    """Attention by token at one time: clean, flipped and fresh over token, and the share that fresh samples tend to."""
    fig, ax = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    names = {"clean": ("right label", plots.SIGNAL, ""), "flipped": ("wrong label", plots.NOISE, "///"),
             "fresh": ("fresh sample", plots.TEST, "...")}  # fmt: skip
    for k, (name, (text, colour, hatch)) in enumerate(names.items()):
        ax.bar(
            now.token + 0.27 * (k - 1), now[name], 0.26, color=colour, hatch=hatch, edgecolor="white", lw=0, label=text
        )
    ax.plot([1.13, 1.42], [limit, limit], "--", color=plots.THEORY, lw=1.6, label=typeset("S(R)"))
    ax.set(ylim=(0, 1.03), xticks=range(1, len(now.token) + 1), xlabel="token ℓ", ylabel="attention")
    share = float(now.fitted_flips)
    ax.set_title(typeset(f"time ηt = {float(now.time):.2g}: {share:.0%} of wrong labels fitted"))
    ax.legend(loc="upper right")
    return fig


@plots.look.styled
def wrong_labels(late: xr.DataArray, first: xr.DataArray, theory: tuple[np.ndarray, np.ndarray]) -> Figure:
    """The selection ratio over the share of wrong labels, relative to none, at the end and after the first step.

    late, first: over (flip_prob, seed). theory: shares and closed-form ratios.
    """
    fig, (ax,) = plots.panels(1)
    for name, found, colour, marker in (("trained", late, plots.SIGNAL, "o"), ("first step", first, "#5F6B76", "D")):
        mean, spread = found.mean("seed"), found.std("seed")
        ax.errorbar(found.flip_prob, mean, spread, fmt=marker, color=colour, ms=7, mec="white", label=name, zorder=3)
    ax.plot(*theory, "--", color=plots.THEORY, label="least norm")
    ax.plot(theory[0], 1 - 2 * theory[0], "-.", color=plots.THEORY, label=typeset("labels add up, 1 − 2p"))
    ax.set(xlabel=typeset("share of wrong labels p"), ylabel=typeset("R(p) / R(0)"), ylim=(-0.05, 1.08))
    ax.set_title("A wrong label costs little")
    ax.legend(loc="lower left")
    return fig


@plots.look.styled
def rivals(errors: Mapping[str, xr.DataArray], lines: Mapping[str, tuple]) -> Figure:
    """Test errors over the signal strength: trained models as dots, closed forms and integrals as lines."""
    fig, (ax,) = plots.panels(1)
    paint = {"attention, best time": ("#00707A", "v", True), "attention, late": ("#00707A", "v", False),
             "spectral, no head": ("#7A4B9A", "H", True), "linear, no head": ("#8A6A00", "s", True)}  # fmt: skip
    for name, found in errors.items():
        colour, marker, filled = paint[name]
        mean = found.mean("seed") if "seed" in found.dims else found
        ax.plot(found.mu, mean, marker, ls="-", lw=1, color=colour, ms=7, mfc=colour if filled else "white",
                label=name)  # fmt: skip
    for (name, (at, line)), dash in zip(lines.items(), ("--", "-."), strict=True):
        ax.plot(at, line, dash, color=plots.THEORY, lw=1.6, label=name)
    ax.set(
        xscale="log", xlabel=typeset("signal strength |μ| [σ_ξ]"), ylabel="test error [fraction]", ylim=(-0.01, 0.52)
    )
    ax.set_xticks([3, 5, 10, 20, 40], ["3", "5", "10", "20", "40"])
    ax.set_xticks([], minor=True)
    ax.set_title("Reading the head's values does better")
    ax.legend(loc="upper right")
    return fig
