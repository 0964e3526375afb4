"""Pictures of the lecture on what in-context learning is: what a page should not have to spell out."""

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.what_is_icl import baselines
from flbook.plots.look import SHADES
from flbook.plots.schematic import Node, Schematic, bar, box, op, out, strip

SEEN = {"x1": -2, "y1": -1, "x2": 0, "y2": 1, "xq": 2}  # tokens and their lanes


def _input(k: str, holds: str = "grey*3") -> Node:
    return strip(rf"$x_{k}$", "", f"{holds} -label*1", alt=f"token of the input x {k}")


def _label(k: str) -> Node:
    return strip(rf"$y_{k}$", "", "-grey*3 label*1", alt=f"token of the label y {k}")


MODEL = Schematic(
    "A causal transformer reads a prompt and answers at its last token",
    [
        (
            "tokens",
            {
                "x1": _input("1"),
                "y1": _label("1"),
                "x2": _input("2"),
                "y2": _label("2"),
                "xq": _input("q", "context*3"),
            },
        ),
        ("query", {"Q": box(r"$W_Q$", holds="context", lane=2, alt="the last token asks, by the matrix W Q")}),
        (
            "weights",
            {
                f"a{name}": bar(value=size, holds="context", lane=SEEN[name], alt="softmax weight of a token")
                for name, size in zip(SEEN, (0.5, 0.9, 0.3, 0.6, 0.2), strict=True)
            },
        ),
        ("values", {"sum": op(r"$\Sigma$", lane=0, alt="weighted sum of what the tokens say")}),
        ("add", {"plus": op("$+$", lane=2, alt="to what the last token was")}),
        ("alone", {"mlp": box("MLP", lane=2, alt="a small network")}),
        ("answer", {"y": out(r"$\hat y$", lane=2, alt="after three such layers, the label of the query")}),
    ],
    [
        "x1 y1 x2 y2 > ax1 ay1 ax2 ay2",
        "xq > Q >> ax1 ay1 ax2 ay2 axq",
        "ax1 ay1 ax2 ay2 axq >> sum",
        "sum > plus",
        "plus > mlp > y",
    ],
    "Every token does the same, and looks only at itself and at those before it.",
)

RULES = ("transformer", "one gradient step", "averaging", "3 neighbours")


def risk(error: xr.DataArray, d: int) -> Figure:
    """Risk over the answer's variance against the number of examples; error over (model, seed, k)."""
    curves = error.sel(model=list(RULES), k=slice(2, None)).to_dataset("model")
    return plots.learning_curves(
        curves,
        {name: name for name in RULES},
        x="k",
        log="",
        theory={"least squares": lambda k: baselines.least_squares(k, d)},
        ylabel="risk over $d$",
        title="The network follows least squares down",
    )


def implied(best: torch.Tensor, found: dict[str, torch.Tensor]) -> Figure:
    """Weights that answers imply against those of least squares, one dot a coordinate; found by the model's name."""
    fig, (ax,) = plots.panels()
    ax.plot([-3, 3], [-3, 3], "--", color=plots.THEORY, label="least squares")
    paint = plots.looks(list(found))
    for name, weights in found.items():
        colour, marker = paint[name]
        ax.plot(best.flatten(), weights.flatten(), marker, color=colour, ms=5, alpha=0.7, label=name)
    ax.set(xlabel="weight of least squares", ylabel="weight in the answers", xlim=(-3, 3), ylim=(-3, 3))
    ax.set_title("Nearly the weights of least squares")
    ax.legend(loc="upper left")
    return fig


TOP = 1.15  # of the axis of risks over the variance, for every number of examples


def laws(error: xr.DataArray, names: dict[str, str]) -> Figure:
    """Risk of networks of every training law under laws of test prompts, at one number of examples.

    error: over (trained_on, law, model, seed). names: words for the training laws, in the order of drawing.
    """
    fig, (ax,) = plots.panels()
    place = np.arange(error.sizes["law"])
    shades = SHADES(np.linspace(0, 1, len(names)))
    for shift, (law, words), shade, marker in zip((-0.18, 0, 0.18), names.items(), shades, "psD", strict=True):
        part = error.sel(trained_on=law, model="transformer")
        low, high = part.quantile([0.1, 0.9], "seed").transpose("quantile", "law").values
        mean = part.mean("seed").transpose("law").values
        ax.errorbar(place + shift, mean, [mean - low, high - mean], fmt=marker, color=shade, ms=7, label=words)
    rules = error.isel(trained_on=0).mean("seed")
    squares = rules.sel(model="least squares").transpose("law").values
    ax.hlines(squares, place - 0.35, place + 0.35, color=plots.THEORY, ls="--", label="least squares")
    noisy = error.law.values.tolist().index("noisy labels")
    best = float(rules.sel(law="noisy labels", model="ridge"))
    ax.hlines(best, noisy - 0.35, noisy + 0.35, color=plots.THEORY, ls=":", label="ridge regression")
    ax.set_xticks(place, [law.replace(" ", "\n", 1) for law in error.law.values])
    ax.set(xlabel="law of the test prompts", ylabel="risk over variance", ylim=(-0.04, TOP))
    ax.set_title("Each is best on the law of its training")
    plots.shared_legend([ax])
    return fig


def laws_in_words(error: xr.DataArray, names: dict[str, str]) -> str:
    """The numbers of `laws` for who does not see them."""
    mean = error.mean("seed")
    risks = mean.sel(model="transformer", trained_on=list(names)).transpose("law", "trained_on")
    parts = [f"{law}: {', '.join(f'{float(r):.2f}' for r in risks.sel(law=law))}" for law in error.law.values]
    squares = float(mean.sel(law="noisy labels", model="least squares").isel(trained_on=0))
    where = f"at {squares:.2f}" if squares < TOP else "above the picture"
    return (
        f"Risk over the variance of networks {', '.join(names.values())}, in this order. {'; '.join(parts)}. "
        f"Least squares is {where} with noisy labels."
    )


def fine_tuning(curves: xr.Dataset, levels: dict[str, float]) -> Figure:
    """Loss on the examples and error at the query over the steps that move all weights.

    curves: `loss` and `error` over (rule, seed, step), at the chosen step sizes. levels: errors of others, by name.
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    for ax, what, title in zip(axes, ("loss", "error"), ("On the six examples", "At the query"), strict=True):
        part = curves[what].sel(step=slice(1, None)).to_dataset("rule")
        plots.learning_curves(
            part,
            {name: name for name in part},
            log="xy",
            levels=levels if what == "error" else None,
            title=title,
            ylabel="squared error over $d$",
            ax=ax,
        )
        ax.set(ylim=(1e-3, 3))
    return fig
