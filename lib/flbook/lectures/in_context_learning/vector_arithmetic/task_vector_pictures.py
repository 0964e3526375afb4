"""Pictures of this lecture: what a page should not have to spell out."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.plots.look import SHADES
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
_STARTS = {
    "identity": (r"$\frac{1}{2}I$", plots.NOISE, "s-"),
    "frozen": (r"$\frac{1}{2}I$, not trained", plots.TRAIN, "D-."),
    "random": ("small random", plots.TEST, "^--"),
    "zero": ("zero", plots.SIGNAL, "o-"),
}
_PARTS = {
    "uniform, questions": ("only values trained", plots.SIGNAL, "o-"),
    "scores, identity values": ("only scores, values the identity", plots.TRAIN, "^-."),
    "scores only": ("only scores, random values", plots.NOISE, "s--"),
}
_COPIES = {0: ("questions", plots.SIGNAL), 2: ("two examples", plots.TRAIN), 8: ("eight examples", plots.NOISE)}


def prompts(shown: xr.DataArray, scores: xr.DataArray) -> Figure:
    """Errors over the examples in the test. shown: (shown, seed, examples), scores: (scores, seed, examples)."""
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    counts = [int(n) for n in shown.shown.values]
    for n, look in zip(counts, ("o-", "v:", "P--", "D-.", "s-"), strict=True):
        colour = plots.SIGNAL if n == 0 else plots.NOISE if n == counts[-1] else SHADES(n / counts[-1])
        _curve(axes[0], shown.sel(shown=n), look, colour, f"{n} example{'s'[: n > 1]}" if n else "questions")
    for name, (label, colour, look) in _STARTS.items():
        _curve(axes[1], scores.sel(scores=name), look, colour, label)
    for ax, title in zip(axes, (r"Scores start at $\frac{1}{2}I$", "Trained on eight examples"), strict=True):
        ax.set_xscale("log", base=2)
        ax.set_xticks(shown.examples.values, [f"{n:g}" for n in shown.examples.values])
        ax.set(xlabel="examples in the test", ylabel="test error", ylim=(-0.01, 0.5), title=title)
        ax.legend(loc="upper left", ncols=2, handlelength=1.6, columnspacing=0.8)
        ax.label_outer()
    return fig


def _curve(ax, error: xr.DataArray, look: str, colour, label: str) -> None:
    """The mean over the seeds, and the band that holds eight of ten."""
    ax.fill_between(error.examples, *error.quantile([0.1, 0.9], "seed"), color=colour, alpha=0.15, lw=0)
    ax.plot(error.examples, error.mean("seed"), look, color=colour, label=label)


def parts(error: xr.DataArray) -> Figure:
    """Errors of layers of which only a part is trained. error: (model, seed, examples)."""
    fig, (ax,) = plots.panels()
    ax.axhline(0.5, color=plots.CHANCE, ls=":", lw=1)
    ax.text(16, 0.51, "query alone", ha="right", va="bottom")
    for name, (label, colour, look) in _PARTS.items():
        one = error.sel(model=name)
        _curve(ax, one, look, colour, label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(one.examples.values, [f"{n:g}" for n in one.examples.values])
    ax.set(xlabel="examples $J$", ylabel="test error", ylim=(-0.02, 0.6), title="Trained values suffice")
    fig.legend(loc="outside lower center", ncols=1)
    return fig


def stored(about: xr.Dataset, step: int) -> Figure:
    """Values and scores of task and fact at one step. about: means over seeds, (shown, step)."""
    fig, (ax,) = plots.panels()
    for k, (shown, (label, colour)) in enumerate(_COPIES.items()):
        now = about.sel(shown=shown, step=step)
        ax.bar(np.arange(len(about)) + 0.27 * k, [float(now[name]) for name in about], 0.25, color=colour,
               hatch=("", "..", "//")[k], label=label)  # fmt: skip
    ax.set_xticks(np.arange(4) + 0.27, [f"${v}^\\top {w} {v}$" for w in ("W_V", "M") for v in "ab"])
    ax.set(ylim=(0, 4), ylabel="value or score", title=f"Step {step}: eight examples teach the fact")
    ax.legend(loc="upper right", title="trained on")
    return fig


def moved(error: xr.DataArray, without: xr.DataArray) -> Figure:
    """Errors on tasks and facts that training did not show, as learned and without w. Both: (moved, seed)."""
    fig, (ax,) = plots.panels()
    at = np.arange(error.sizes["moved"])[::-1]
    for one, shift, colour, marker, label in (
        (error, 0.12, plots.SIGNAL, "o", "as learned"),
        (without, -0.12, plots.NOISE, "s", "$w$ set to zero"),
    ):
        ax.hlines(at + shift, *one.quantile([0.1, 0.9], "seed").values, color=colour, lw=2)
        ax.plot(one.mean("seed"), at + shift, marker, color=colour, label=label)
    ax.axvline(0.5, color=plots.CHANCE, ls=":", lw=1)
    ax.text(0.49, at[0], "query alone", ha="right", va="center")
    ax.set_yticks(at, error.moved.values)
    ax.set(xlabel="test error", xlim=(-0.02, 0.7), title="The sum of all tasks is not known")
    fig.legend(loc="outside lower center", ncols=2)
    return fig
