"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.training_strategies import spectral_steps as lecture
from flbook.lectures.training_strategies.spectral_steps import known_frequencies, response
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient, stored
from flbook.plots.schematic import Schematic, box, matrix, op, out, strip

MODEL = Schematic(
    "A matrix that stores facts",
    [
        ("input", {"e": strip("$e_i$", "input of fact $i$", "context*6", lane=0, alt="the input of fact i")}),
        ("matrix", {"W": matrix("$W$", "one step", "cccc cccc cccc cccc", lane=0, alt="the matrix W, one step")}),
        ("answer", {"x": strip("$We_i$", "answer", "signal*6", lane=0, alt="the answer")}),
        ("compare", {"u": op(r"$u_j^\top$", "all outputs", lane=0, alt="inner products with all F outputs")}),
        ("largest", {"m": box("argmax", lane=0)}),
        ("stored?", {"y": out(r"$=i$?", lane=0, alt="stored if the largest is output i")}),
    ],
    ["e > W > x > u > m > y"],
    says="There are many more outputs than dimensions, so every answer has some of every output in it.",
)  # fmt: skip

NAMES = {"spectral": "orthogonalised", "gradient": "gradient", "sign": "sign"}
PAINT = {"orthogonalised": plots.SIGNAL, "gradient": plots.NOISE, "sign": "#8A6A00"}
DOTS = {"orthogonalised": "o", "gradient": "s", "sign": "^"}


def law(alpha: float, d: np.ndarray, crowd: float = 4.0, reach: float = 1.5) -> np.ndarray:
    """The facts that theory lets one orthogonalised step store, at each d."""
    setting = lecture.Setting(alpha=(alpha,), crowd=crowd, reach=reach)
    return np.array([response.expected(alpha, n, setting.count(alpha, n), setting.ranks(alpha, n)) for n in d])


def binned(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean rank and mean value, over the seeds, of ranks in bins of equal ratios."""
    edges = np.unique(np.geomspace(1, values.sizes["rank"] + 1, 22).round().astype(int))
    group = np.digitize(values["rank"], edges)
    parts = [values.isel(rank=group == k) for k in np.unique(group)]
    return np.array([float(part["rank"].mean()) for part in parts]), np.array([float(part.mean()) for part in parts])


def dots(ax: Axes, x: np.ndarray, values: xr.DataArray, name: str, colour: str, marker: str) -> None:
    """Means over the seeds, with bars from the 10 % to the 90 % quantile."""
    mean = values.mean("seed")
    ends = values.quantile([0.1, 0.9], "seed").values
    ax.errorbar(x, mean, np.abs(ends - mean.values), fmt=marker, color=colour, label=name, capsize=2)


def counts(found: xr.Dataset, ranked: xr.Dataset) -> Figure:
    """Facts that one step stores over the dimension, and the share of seeds that store a fact by its rank."""
    fig, (left, right) = plots.panels(2)
    d, alpha = found.d.values, float(found.alpha[0])
    for rule, name in NAMES.items():
        dots(left, d, found.stored.sel(rule=rule).isel(alpha=0), name, PAINT[name], DOTS[name])
    fine = np.unique(np.geomspace(d[0], d[-1], 9).round().astype(int))
    left.plot(fine, law(alpha, fine), color=plots.THEORY, ls="--", label="theory, no free number")
    left.plot(fine, fine, color=plots.TRAIN, ls=":", label="one fact per dimension")
    left.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel="stored facts", title="Stored by one step")
    left.set_xticks(d, [str(n) for n in d])
    left.minorticks_off()
    for rule in ("spectral", "gradient"):
        name = NAMES[rule]
        right.plot(*binned(ranked.stored.sel(rule=rule)), DOTS[name], color=PAINT[name])
    count, dim = ranked.sizes["rank"], int(ranked.attrs["d"])
    p = np.arange(1, count + 1.0) ** -alpha
    chance = response.chance(response.response(p / p.sum(), dim), dim, count)
    right.plot(np.arange(1, count + 1), chance, color=plots.THEORY, ls="--")
    right.set(xscale="log", xlabel="rank of the fact $i$", ylabel="share of seeds", title=f"Fact by fact, $d={dim}$")
    plots.shared_legend((left, right), ncols=3)
    return fig


def signal_and_noise(ranked: xr.Dataset) -> Figure:
    """What the own output answers, and how loud every output is to the others, at equal signal of rare facts."""
    fig, (left, right) = plots.panels(2)
    alpha, d, count = float(ranked.attrs["alpha"]), int(ranked.attrs["d"]), ranked.sizes["rank"]
    rank = np.arange(1, count + 1)
    p = rank**-alpha / (rank**-alpha).sum()
    gain = response.gain(p, d)
    left.plot(*binned(ranked.answer.sel(rule="spectral")), "o", color=PAINT["orthogonalised"], label="measured")
    left.plot(rank, response.response(p, d), color=plots.THEORY, ls="--", label="theory $h(p_i)$")
    left.plot(rank, gain * p, color=plots.THEORY, ls="-.", lw=1, label="$\\mathcal{G}\\,p_i$")
    level = np.sqrt(2 * np.log(count) / d)
    left.plot(rank[[0, -1]], [level, level], color=plots.TRAIN, ls=":", label=r"largest noise $\sqrt{2\ln F/d}$")
    left.set(xscale="log", yscale="log", xlabel="rank of the fact $i$", ylabel="own logit $u_i^\\top We_i$",
             title="Signal of an orthogonalised step", ylim=(0.003, 3))
    for rule, scale in {"spectral": 1.0, "gradient": gain}.items():
        name = NAMES[rule]
        x, y = binned(ranked.noise.sel(rule=rule))
        right.plot(x, scale * y, DOTS[name], color=PAINT[name], label=name)
    right.plot(rank, np.full(count, d**-0.5), color=plots.THEORY, ls="--", label=r"$1/\sqrt{d}$")
    right.set(xscale="log", yscale="log", xlabel="rank of the other fact $j$", ylabel="noise of its logit",
              title="Noise from every other output")
    for ax in (left, right):
        plots.look.log_ticks(ax)
        ax.legend(fontsize=9)
    return fig


def capped(found: xr.Dataset, spectra: Mapping[int, np.ndarray]) -> Figure:
    """Facts stored by exact and by approximate orthogonalisation, and what the steps make of singular values.

    spectra: dimension -> singular values over their Frobenius norm.
    """
    fig, (left, right) = plots.panels(2)
    d, alpha = found.d.values, float(found.alpha[0])
    shown = {"spectral": ("exact", "o"), "spectral, 10 steps": ("10 steps", "D"), "spectral, 5 steps": ("5 steps", "v")}
    paint = dict(zip(shown, (plots.SIGNAL, plots.TEST, plots.NOISE), strict=True))
    for rule, (name, marker) in shown.items():
        dots(left, d, found.stored.sel(rule=rule).isel(alpha=0), name, paint[rule], marker)
    left.plot(d, law(alpha, d), color=plots.THEORY, ls="--", label="theory, exact")
    left.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel="stored facts", title="Stored by one step")
    left.set_xticks(d, [str(n) for n in d])
    left.minorticks_off()
    left.set_yticks([30, 100, 300], ["30", "100", "300"])
    y = torch.logspace(-6, 0, 400, dtype=torch.float64)
    for steps in (5, 10):
        rule, z = f"spectral, {steps} steps", y
        a, b, c = lecture.COEFFICIENTS
        for _ in range(steps):
            z = a * z + b * z**3 + c * z**5
        right.plot(y, z, color=paint[rule], label=shown[rule][0])
    for k, (n, values) in enumerate(spectra.items()):
        ends = np.quantile(values, [0.1, 0.9])
        right.plot(ends, [2.2 + 1.6 * k] * 2, color=plots.TRAIN, lw=4, solid_capstyle="butt")
        right.annotate(f"$d={n}$", (ends[1], 2.2 + 1.6 * k), (4, 0), textcoords="offset points", va="center",
                       fontsize=9)
    right.set(xscale="log", yscale="log", ylim=(3e-4, 8), xlabel="singular value of $G/\\|G\\|_F$",
              ylabel="that of the step", title="What the steps do")
    left.legend(fontsize=9)
    right.legend(fontsize=9, loc="lower right")
    return fig


def rivals(known: xr.Dataset, many: xr.Dataset) -> Figure:
    """Facts stored by one step that knows the frequencies, and by many steps of five rules."""
    fig, (left, right) = plots.panels(2)
    d = known.d.values
    setting = known_frequencies.Setting()
    shown = {"spectral": ("orthogonalised", "o", plots.SIGNAL), "whitened": ("whitened gradient", "P", plots.TEST),
             "most frequent": ("sum of the most frequent", "X", "#882255")}  # fmt: skip
    for rule, (name, marker, colour) in shown.items():
        dots(left, d, known.stored.sel(rule=rule), name, colour, marker)
    fine = np.unique(np.geomspace(d[0], d[-1], 7).round().astype(int))
    left.plot(fine, law(setting.alpha, fine, setting.crowd, setting.crowd), color=plots.THEORY, ls="--", label="theory")
    sums = [known_frequencies.best_sum(n, setting.count(n))[1] for n in fine]
    left.plot(fine, sums, color=plots.THEORY, ls="--")
    left.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel="stored facts", title="One step")
    left.set_xticks(d, [str(n) for n in d])
    left.minorticks_off()
    left.set_yticks([30, 100, 300], ["30", "100", "300"])
    paint = {"spectral": (plots.SIGNAL, "o"), "normalised": ("#AA3377", "^"), "sign descent": ("#8A6A00", "v"),
             "gradient descent": (plots.NOISE, "s"), "Adam": (plots.TRAIN, "D")}  # fmt: skip
    for rule, (colour, marker) in paint.items():
        values = many.stored.sel(rule=rule).mean("seed")
        name = {"spectral": "orthogonalised"}.get(rule, rule)
        right.plot(values.step, values, color=colour, marker=marker, label=name)
    right.set(xscale="log", xlabel="step $t$", ylabel="stored facts", title="Many steps, best step sizes")
    right.set_xticks(many.step.values, [str(n) for n in many.step.values])
    right.minorticks_off()
    for ax in (left, right):
        ax.legend(fontsize=9)
    return fig


def digits(found: xr.Dataset) -> Figure:
    """Test accuracy over the power of the classes' frequencies: four steps, and three ways to centre."""
    fig, (left, right) = plots.panels(2, sharey=True)
    shown = {"equal weights": ("weights known", "X", "#882255"), "spectral": ("orthogonalised", "o", plots.SIGNAL),
             "sign": ("sign", "^", "#8A6A00"), "gradient": ("gradient", "s", plots.NOISE)}  # fmt: skip
    for rule, (name, marker, colour) in shown.items():
        values = found.accuracy.sel(rule=f"{rule}, one step", centre="all classes alike")
        dots(left, found["tail"].values, values, name, colour, marker)
        left.plot(found["tail"], values.mean("seed"), color=colour, lw=1)
    kinds = {"all classes alike": ("-", "o", "all classes alike"), "as seen": ("--", "D", "as seen"),
             "none": (":", "s", "none")}  # fmt: skip
    for centre, (style, marker, name) in kinds.items():
        values = found.accuracy.sel(rule="spectral, one step", centre=centre)
        right.plot(found["tail"], values.mean("seed"), style, marker=marker, color=plots.SIGNAL, label=name)
    left.set(xlabel="power of the classes' frequencies", ylabel="test accuracy, mean over classes", ylim=(0, 1),
             title="After one step", xticks=found["tail"])
    right.set(xlabel="power of the classes' frequencies", title="The mean picture subtracted", xticks=found["tail"])
    for ax, place in ((left, (0, 0.12)), (right, (0.4, 0.3))):
        ax.axhline(0.1, color=plots.THEORY, ls=":", lw=1)
        ax.legend(fontsize=9, loc="lower left", bbox_to_anchor=place)
    return fig


def still(alpha: float = 2.0, d: int = 48, steps: int = 5) -> Figure:
    """What the live figure shows when it opens, on a draw of the library's."""
    facts = Facts(round(4 * d ** (1 + 1 / (2 * alpha))), d, alpha)
    inputs, outputs = facts.draw(0)
    u, s, vt = torch.linalg.svd(first_gradient(inputs, outputs, facts.frequencies))
    w = lecture.step(f"spectral, {steps} steps", u, s, vt)
    own = ((inputs @ w.mT) * outputs).sum(-1)
    kept = stored(w, inputs, outputs, facts.count)
    fig, (left, right) = plots.panels(2)
    ranks = np.arange(1, facts.count + 1)
    left.plot(ranks[:d], s / torch.linalg.vector_norm(s), color=plots.NOISE, ls="--", label="gradient")
    left.plot(ranks[:d], torch.linalg.svdvals(w), color=plots.SIGNAL, lw=2.5, label="step")
    left.set(yscale="log", ylim=(1e-5, 3), xlabel="singular value, by size", title="Singular values")
    left.legend(fontsize=9)
    for chosen, how in ((~kept, dict(mfc="none", mec=plots.TRAIN)), (kept, dict(color=plots.SIGNAL))):
        name = "stored" if how.get("color") else "not stored"
        right.plot(ranks[chosen.numpy()], own[chosen], "o", ms=3.5, label=name, **how)
    p = facts.frequencies.numpy()
    right.plot(ranks, response.response(p, d), color=plots.THEORY, ls="--", label="theory, exact step")
    right.set(xscale="log", yscale="log", ylim=(1e-3, 2), xlabel="rank of the fact", ylabel="own logit",
              title=f"{int(kept.sum())} of {facts.count} facts stored")
    right.legend(fontsize=9)
    return fig
