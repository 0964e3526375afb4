"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "Attention adds a task vector to the query",
    [
        ("prompt", {
            "t": strip(r"$T_\ell$", "question or examples", "context*4", lane=-0.5, alt="the tokens before the query"),
            "q": strip("$x_q$", "query word", "signal*4", lane=1, alt="the query word x q"),
        }),
        ("attention", {"p": box("$M$", "scores", holds="context", lane=-0.5, alt="attention, with the scores M")}),
        ("values", {"v": box("$W_V$", "values", holds="context", lane=-0.5, alt="the values W V")}),
        ("task vector", {"n": box(r"$\mathrm{LN}$", "length one", holds="grey", lane=-0.5,
                                  alt="division by the length")}),
        ("sum", {"s": op("$+$", lane=0.5, alt="task vector plus query")}),
        ("answer", {"f": out("$h$", lane=0.5, alt="h, to be compared with all answers")}),
    ],
    ["t > p > v > n > s > f", "q > p", "q > s"],
    says="The query reaches the sum untouched; attention adds a vector of length one.",
)  # fmt: skip
_TRAINED = {"questions": ("signal", "trained on questions"), "examples": ("noise", "trained on examples")}
_PARTS = {
    "uniform, questions": ("only values trained", plots.SIGNAL, "o-"),
    "scores, identity values": ("only scores, values the identity", plots.TRAIN, "^-."),
    "scores only": ("only scores, random values", plots.NOISE, "s--"),
}
_COPIES = {"questions": ("questions", plots.SIGNAL), "examples": ("examples", plots.NOISE)}


def prompts(error: xr.DataArray, word: xr.DataArray) -> Figure:
    """Errors over the number of examples, by the signs of these. error: (training, seed, signs, examples)."""
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    titles = {"independent": "Signs of the examples independent", "opposite": "All opposite to the query"}
    for ax, (signs, title) in zip(axes, titles.items(), strict=True):
        curves = {key: error.sel(signs=signs, training=name, drop=True) for name, (key, _) in _TRAINED.items()}
        curves["arithmetic"] = word.sel(signs=signs, drop=True)
        names = dict(_TRAINED.values()) | {"arithmetic": "word arithmetic"}
        plots.learning_curves(xr.Dataset(curves), names, x="examples", title=title, ylabel="test error", ax=ax)
        ax.set_ylim(-0.01, 0.42)
        ax.label_outer()
    return fig


def parts(error: xr.DataArray) -> Figure:
    """Errors of layers of which only a part is trained. error: (model, seed, examples)."""
    fig, (ax,) = plots.panels()
    ax.axhline(0.5, color=plots.CHANCE, ls=":", lw=1)
    ax.text(16, 0.51, "query alone", ha="right", va="bottom")
    for name, (label, colour, look) in _PARTS.items():
        one = error.sel(model=name)
        spread = one.quantile([0.1, 0.9], "seed")
        ax.fill_between(one.examples, *spread, color=colour, alpha=0.15, lw=0)
        ax.plot(one.examples, one.mean("seed"), look, color=colour, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(one.examples.values, [f"{n:g}" for n in one.examples.values])
    ax.set(xlabel="examples $J$", ylabel="test error", ylim=(-0.02, 0.6), title="Trained values suffice")
    fig.legend(loc="outside lower center", ncols=1)
    return fig


def stored(about: xr.Dataset, step: int) -> Figure:
    """Values and scores of task and fact at one step. about: means over seeds, (training, step)."""
    fig, (ax,) = plots.panels()
    for k, (training, (label, colour)) in enumerate(_COPIES.items()):
        now = about.sel(training=training, step=step)
        ax.bar(np.arange(len(about)) + 0.36 * k, [float(now[name]) for name in about], 0.34, color=colour,
               hatch="//" * k, label=f"trained on {label}")  # fmt: skip
    ax.set_xticks(np.arange(4) + 0.18, [f"${v}^\\top {w} {v}$" for w in ("W_V", "M") for v in "ab"])
    ax.set(ylim=(0, 4), ylabel="value or score", title=f"Step {step}: facts are stored from examples only")
    ax.legend(loc="upper right")
    return fig


def moved(error: xr.DataArray) -> Figure:
    """Errors on tasks and facts that training did not show. error: (moved, seed)."""
    fig, (ax,) = plots.panels()
    at = np.arange(error.sizes["moved"])[::-1]
    mean, spread = error.mean("seed"), error.quantile([0.1, 0.9], "seed")
    new = np.array([str(name) == "new directions" for name in error.moved.values])
    for which, colour, marker in ((~new, plots.SIGNAL, "o"), (new, plots.NOISE, "s")):
        ax.hlines(at[which], *spread.values[:, which], color=colour, lw=2)
        ax.plot(mean[which], at[which], marker, color=colour)
    ax.axvline(0.5, color=plots.CHANCE, ls=":", lw=1)
    ax.text(0.49, at[0], "query alone", ha="right", va="center")
    ax.set_yticks(at, error.moved.values)
    ax.set(xlabel="test error", xlim=(-0.02, 0.6), title="Any combination of old tasks is known")
    return fig
