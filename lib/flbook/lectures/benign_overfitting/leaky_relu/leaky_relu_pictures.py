"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.benign_overfitting.leaky_relu import margin
from flbook.plots.look import typeset
from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

_SIGNS = {"+": "+1", "-": "-1"}
MODEL = Schematic(
    "A two-layer leaky ReLU network",
    [
        ("sample", {"x": strip(r"$x=y\mu+\xi$", "signal + noise", "signal+noise*6",
                               alt="a sample, the sum of signal and noise")}),
        ("filters", {f"w{sign}": stack(rf"$w_{{{j},r}}$", rf"for label ${j}$", alt=f"those for the label {j}")
                     for sign, j in _SIGNS.items()}),
        ("activation", {f"s{sign}": curve(r"$\sigma$", r"slopes $\alpha$, 1", holds="leaky_relu",
                                          alt="a leaky ReLU, of slope alpha left of zero and 1 right of it")
                        for sign in _SIGNS}),
        ("sum over $r$", {f"F{sign}": op(r"$\Sigma$", alt=f"of the filters for {j}") for sign, j in _SIGNS.items()}),
        ("difference", {"minus": op("$-$", alt="the first sum minus the second")}),
        ("output", {"f": out(r"$f(W,x)$", alt="f(W, x)")}),
    ],
    ["x >> w+ w-", "w+ w- > s+ s- > F+ F-", "F+ F- > minus > f"],
    says="Only the filters are trained.",
)  # fmt: skip


@plots.look.styled
def prices(done: xr.Dataset, leak: float = 0.1) -> Figure:
    """Test errors at zero hinge loss against d/n: means over the seeds and their standard errors.

    done: the experiment's result at one n, signal and share of flips, over (model, ratio, seed).
    """
    fig, (ax,) = plots.panels()
    fig.set_figheight(4.6)
    errors = {
        "least squares": done.min_norm_error,
        "hard margin": done.svm_error,
        "network": done.test_error.sel(model="network"),
        "linear, trained alike": done.readout_error.sel(model="linear"),  # exact
        "lazy": done.test_error.sel(model="lazy"),
    }
    look = plots.looks(list(errors)) | {"hard margin": (plots.THEORY, "s")}
    for place, (name, error) in enumerate(errors.items()):
        mean, spread = error.mean("seed"), error.std("seed") / error.sizes["seed"] ** 0.5
        seen = mean > 1e-5
        hollow = dict(mfc="none", mec=look[name][0], ms=9) if name == "hard margin" else dict(mec="white", ms=7)
        beside = 0.07 * (place - 2) * (name != "lazy")  # so that all are seen
        ax.errorbar(mean.ratio[seen] + beside, mean[seen], spread[seen], fmt=look[name][1], color=look[name][0],
                    lw=1.2, label=name, **hollow)
    n, a = float(done.n), strength(done)
    line = np.linspace(float(done.ratio.min()), float(done.ratio.max()), 40)
    flips = float(done.flip_prob)
    omega = margin.network_coupling(leak)
    for coupling, style, name in ((1.0, "--", "ω = 1"), (omega, "-.", f"ω = {omega:.2f}")):
        found = [margin.margin_error(one, a, flips, coupling) for one in line]
        ax.plot(line, found, style, color=plots.THEORY, lw=1.4, label=typeset(f"closed form, {name}"))
    worst = float(done.averaging_error.mean("seed").max())
    ax.text(line[0], 1.4e-5, f"averaging: at most {worst:.0e}", fontsize=9)
    ax.set(yscale="log", ylim=(1e-5, 0.5), xlabel="dimensions per sample d/n", ylabel="test error [fraction]")
    ax.set_title(f"Fitting {flips * n:.0f} wrong labels of {n:.0f}")
    ax.figure.legend(loc="outside lower center", ncols=2)
    return fig


def margins(coupling: float, a: float, flip_prob: float, ratio: float) -> Figure:
    """Margins of training samples and the law of fresh ones, on orthogonal noise; a right label's margin is 1."""
    fig, ax = plt.subplots(figsize=(5.2, 2.9), layout="constrained")
    s = margin.signal_response(a, flip_prob, coupling)
    right, wrong = (1 - (1 - coupling) * (1 - e * s) for e in (1, -1))
    rho = coupling * np.sqrt((1 - 2 * (1 - 2 * flip_prob) * s + s**2) / ratio)
    x = np.linspace(-1, 2, 400)
    ax.fill_between(x, np.exp(-((x - s / right) ** 2) / (2 * (rho / right) ** 2)), color=plots.TEST, alpha=0.4,
                    label="fresh samples")
    ax.plot([1, 1], [0, 1.1], color=plots.TRAIN, lw=3, label="right labels")
    ax.plot([wrong / right] * 2, [0, 1.1], "--", color=plots.NOISE, lw=3, label="wrong labels")
    ax.axvline(0, color=plots.THEORY, lw=1)
    error = margin.orthogonal_error(ratio, a, flip_prob, coupling)
    ax.set(xlim=(-1, 2), ylim=(0, 1.2), yticks=[], xlabel="margin, over that of a right label")
    ax.set_title(typeset(f"ω = {coupling:g}: test error {error:.1e}"))
    ax.legend(loc="upper right")
    return fig


@plots.look.styled
def couplings(found: xr.Dataset, leak: float, border: float) -> Figure:
    """The coupling that the weights of right and wrong labels show, against the signal. found: over (n_snr2, seed)."""
    fig, (ax,) = plots.panels()
    plots.series({"network": found.coupling}, "n_snr2", log="x", ylim=(-0.05, 1.25), legend=False, ax=ax)
    levels = {"hard margin": 1.0, "observed labels' filters on": margin.network_coupling(leak), "averaging": 0.0}
    for name, level in levels.items():
        ax.axhline(level, color=plots.THEORY, ls="--", lw=1.4)
        right = 0 < level < 1  # where no dots are
        ax.text(0.98 if right else 0.02, level + 0.02, name, ha="right" if right else "left", va="bottom", fontsize=9,
                transform=ax.get_yaxis_transform())
    ax.axvline(border, color=plots.THEORY, ls=":", lw=1.4)
    ax.set(xlabel=typeset("strength of the signal a = n SNR²"), ylabel=typeset("coupling ω"))
    ax.set_title("Which margin classifier is it?")
    return fig


@plots.look.styled
def against_linear(share: xr.DataArray) -> Figure:
    """Network over linear model, against the signal: for the smallest leak, and in the highest dimension.

    share: ratio of test errors over (leak, ratio, gamma, seed); dots are means, bars standard errors.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    leak, ratio = share.leak.values, share.ratio.values
    panels = (
        (f"Leak α = {leak[0]:g}", {f"d/n = {q:g}": share.sel(leak=leak[0], ratio=q) for q in ratio}),
        (f"Dimension d/n = {ratio[-1]:g}", {f"α = {one:g}": share.sel(leak=one, ratio=ratio[-1]) for one in leak}),
    )
    for ax, (title, curves) in zip(axes, panels, strict=True):
        for (name, one), (color, marker) in zip(curves.items(), plots.looks(list(curves)).values(), strict=True):
            spread = one.std("seed") / one.sizes["seed"] ** 0.5
            ax.errorbar(one.gamma, one.mean("seed"), spread, fmt=f"{marker}-", color=color, lw=1.2, label=typeset(name))
        ax.axhline(1, color=plots.THEORY, ls="--", lw=1.4)
        ax.set(xscale="log", yscale="log", xlabel=typeset("signal strength n |μ|²"), ylabel="error, network / linear")
        ax.set_xticks(share.gamma.values, [f"{x:g}" for x in share.gamma.values])
        ax.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
        ax.minorticks_off()
        ax.set_title(typeset(title))
        ax.legend(loc="upper left")
    return fig


@plots.look.styled
def on_the_way(history: xr.Dataset, share: float) -> Figure:
    """Hinge loss, training error and test error over the steps."""
    fig, (above, below) = plots.panels(2, sharex=True)
    plots.learning_curves(history, {"hinge_loss": "hinge loss"}, title="Zero loss after finitely many steps", ax=above)
    errors = {"train_error": "training", "test_error": "test"}
    plots.learning_curves(history, errors, levels={"k/n": share}, ylabel="error [fraction]", title="Perfect on the way",
                          ax=below)
    return fig


@plots.look.styled
def two_stops(stored: Mapping[str, xr.DataArray]) -> Figure:
    """Test error over n and d/n on a logarithmic scale of colours, a panel for each stop."""
    fig, axes = plots.panels(2)
    for ax, (title, error) in zip(axes, stored.items(), strict=True):
        power = np.log10(error.mean("seed").clip(min=1e-4)).assign_attrs(long_name="log10 of test error", units="1")
        plots.phase_diagram(power, x="n", y="ratio", limits=(-4, -0.8), title=title, ax=ax)
    return fig


def strength(done: xr.Dataset) -> float:
    """a = n SNR² of a run: n |μ|² over the rest of a sample's squared length."""
    return float(done.gamma / (1 - done.gamma / done.n))
