"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.look import MODELS, log_ticks, typeset
from flbook.plots.schematic import Schematic, box, brace, op, out, strip

MODEL = Schematic(
    "A vision transformer of one layer",
    [
        ("tokens", {
            "mu": strip(r"$\mu_y$", "signal", "signal*4", alt="the signal of the class, mu y"),
            "xi": strip(r"$\xi_2$", "noise", "noise*4", alt="noise, xi 2"),
            "xj": strip(r"$\xi_L$", "noise", "noise*4", alt="and so on to xi L"),
        }),
        ("", {"X": brace()}),
        ("per token", {
            "qk": box(r"$W_Q^\top x_\ell,\ W_K^\top x_m$", holds="context", lane=-0.8, alt="a query and a key"),
            "v": box(r"$\langle v, x_m\rangle$", lane=0.8, alt="a value, one number"),
        }),
        ("attention", {"p": box("softmax", holds="context", lane=-0.8, alt="softmax of the scores")}),
        ("weigh", {"times": op(r"$\times$", lane=0, alt="values times attention")}),
        ("mean", {"S": op(r"$\Sigma$", lane=0, alt="over the tokens that ask")}),
        ("output", {"f": out("$f(X)$", lane=0, alt="f(X)")}),
    ],
    ["X >> qk v", "qk > p", "p ~> times", "v > times > S > f"],
    says="Every token asks every token.",
)  # fmt: skip
LOOK = {"transformer": MODELS["transformer"], "mean pooling": ("#5F6B76", "D")}


@plots.look.styled
def labels_right_and_wrong(right: xr.Dataset, wrong: xr.Dataset) -> Figure:
    """Attention of a fresh signal token on itself, and test losses, over n SNR² with right labels and some wrong.

    right, wrong: test_loss and signal_fresh over (model, seed, n_snr2).
    """
    fig, (first, second) = plots.panels(2)
    styles = {"all labels right": (right, "-", True), "one in eight wrong": (wrong, "--", False)}
    for name, (found, dash, filled) in styles.items():
        for model, label in (("transformer", "transformer"), ("pooling", "mean pooling")):
            colour, marker = LOOK[label]
            look = dict(color=colour, ls=dash, marker=marker, ms=6, mfc=colour if filled else "white", mec=colour)
            some = found.sel(model=model)
            x, lost = some.n_snr2, some.test_loss
            second.plot(x, lost.mean("seed"), label=f"{label}, {name}", **look)
            second.fill_between(x, *lost.quantile([0.1, 0.9], "seed"), color=colour, alpha=0.2, lw=0)
            if model == "transformer":
                first.plot(x, some.signal_fresh.mean("seed"), label=name, **look)
                first.fill_between(x, *some.signal_fresh.quantile([0.1, 0.9], "seed"), color=colour, alpha=0.2, lw=0)
    first.axhline(1 / 16, color=plots.THEORY, ls=":", lw=1.3)
    first.text(1, 0.1, "uniform, 1/16", fontsize=9)
    for ax in (first, second):
        ax.set(xscale="log", xlabel=typeset("signal strength n SNR²"))
        log_ticks(ax)
    first.set(ylabel="attention on the signal", title="Where a fresh signal looks")
    second.set(ylabel="test loss [nats]", ylim=(0, 0.72), title="What this does to the loss")
    first.legend(loc="center left")
    plots.shared_legend((second,), ncols=2)
    return fig


@plots.look.styled
def stage(gap: xr.DataArray, told: xr.DataArray) -> Figure:
    """Score gaps of networks over training and their closed forms, at a strong signal and at a weak one.

    gap, told: over (step, seed, n_snr2), the first strength below 2 and the second above.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for ax, strength, sign, colour in zip(axes, gap.n_snr2[::-1], (1, -1), (plots.SIGNAL, plots.NOISE), strict=True):
        seen, line = (sign * some.sel(n_snr2=strength).isel(step=slice(1, None)).transpose("step", "seed")
                      for some in (gap, told))  # fmt: skip
        ax.plot(seen.step, seen.where(seen > 0), "o", color=colour, ms=4, alpha=0.8)
        ax.plot(line.step, line.where(line > 0), "--", color=plots.THEORY, lw=1.2)
        ax.set(xscale="log", yscale="log", ylim=(1e-7, 20), xlabel="step t")
        who = "signal over noise" if sign > 0 else "noise over signal"
        ax.set(ylabel=f"score gap, {who}", title=typeset(f"n SNR² = {float(strength):g}: {who}"))
        log_ticks(ax)
    return fig


@plots.look.styled
def known_border(sizes: xr.DataArray, told: np.ndarray, settings: xr.Dataset) -> Figure:
    """The border over the number of samples, and over many settings against its closed form.

    sizes: over n; told: the closed form there. settings: measured and closed_form over (tokens, sigma_0, steps).
    """
    fig, (first, second) = plots.panels(2)
    n = sizes.n.to_numpy()
    first.plot(n, sizes, MODELS["transformer"][1], color=MODELS["transformer"][0], ms=7, label="measured")
    first.plot(n, told, "--", color=plots.THEORY, lw=1.4, label="closed form")
    first.set(xscale="log", ylim=(3.8, 5), xlabel="samples n", ylabel=typeset("border in n SNR²"))
    first.set_xticks(n, [str(k) for k in n])
    first.set_xticks([], minor=True)
    first.set_title("Nearly the same at every n")
    first.legend()
    look = plots.looks([f"L = {k}" for k in settings.tokens.to_numpy()])
    for tokens in settings.tokens.to_numpy():
        some, (colour, marker) = settings.sel(tokens=tokens), look[f"L = {tokens}"]
        second.plot(some.closed_form.values.ravel(), some.measured.values.ravel(), marker, color=colour, ms=6,
                    label=f"L = {tokens}")  # fmt: skip
    ends = [float(settings.closed_form.min()) * 0.95, float(settings.closed_form.max()) * 1.05]
    second.plot(ends, ends, "--", color=plots.THEORY, lw=1.3)
    second.set(xscale="log", yscale="log", xlabel=typeset("closed form of n SNR²"),
               ylabel=typeset("measured n SNR²"), title="Tokens, start and time varied")  # fmt: skip
    log_ticks(second)
    second.legend()
    return fig


@plots.look.styled
def wrong_labels(way: xr.Dataset, size: float) -> Figure:
    """Who looks at the signal while training with wrong labels, and how much of the gradient they make.

    way: over (step, seed), with the quantities of `ON_THE_WAY`. size: the share of wrong labels.
    """
    fig, (first, second) = plots.panels(2, sharex=True)
    names = {
        "signal_fresh": ("fresh signal", plots.SIGNAL, "-"),
        "noise_right": ("noise, right label", plots.NOISE, "-"),
        "noise_wrong": ("noise, wrong label", plots.NOISE, "--"),
    }
    for key, (label, colour, dash) in names.items():
        band(first, way[key], colour, dash, label)
    first.axhline(1 / 16, color=plots.THEORY, ls=":", lw=1.3)
    first.set(ylabel="attention on the signal", xlabel="step t", title="The signal's query turns twice")
    first.legend(loc="upper left")
    band(second, way.pull_wrong, plots.TRAIN, "-", "")
    second.axhline(size, color=plots.THEORY, ls=":", lw=1.3)
    second.text(1.2, size - 0.075, "their share of the samples", fontsize=9)
    second.set(ylabel="share of wrong labels in the pull", xlabel="step t", ylim=(0, 1))
    second.set_title("In the end wrong labels pull")
    for ax in (first, second):
        ax.set_xscale("log")
        log_ticks(ax)
    return fig


def band(ax, values: xr.DataArray, colour: str, dash: str, label: str) -> None:
    """Mean over seeds and what holds 80 % of them, over the steps after the first."""
    some = values.isel(step=slice(1, None))
    ax.plot(some.step, some.mean("seed"), dash, color=colour, lw=2, label=label)
    ax.fill_between(some.step, *some.quantile([0.1, 0.9], "seed"), color=colour, alpha=0.2, lw=0)


@plots.look.styled
def rivals(errors: xr.DataArray, shown: Mapping[str, str]) -> Figure:
    """Test error over n SNR² for the transformer and its rivals. errors: over (model, seed, n_snr2)."""
    fig, (ax,) = plots.panels(1)
    look = plots.looks(list(shown.values())) | LOOK
    for model, label in shown.items():
        colour, marker = look[label]
        some = errors.sel(model=model)
        dash = "--" if label == "ReLU network" else "-"  # the other network has its colour
        ax.plot(some.n_snr2, some.mean("seed"), marker + dash, color=colour, ms=6, label=label)
        ax.fill_between(some.n_snr2, *some.quantile([0.1, 0.9], "seed"), color=colour, alpha=0.15, lw=0)
    ax.set(xscale="log", xlabel=typeset("signal strength n SNR²"), ylabel="test error [fraction]", ylim=(0, 0.52))
    ax.set_title("Squared ReLU selects without attention")
    log_ticks(ax)
    ax.legend()
    return fig
