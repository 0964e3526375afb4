"""Pictures of the lecture on linear attention: what a page should not have to spell out."""

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure

from flbook import plots
from flbook.data.prompts import LinearPrompts
from flbook.estimators import Averaging, LeastSquares, Ridge
from flbook.lectures.in_context_learning.shared import attention_risk as theory
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.plots.schematic import Node, Schematic, bar, box, dots, op, out, strip


def _example(k: str) -> Node:
    """Token of the prompt: four coordinates of the input, and the label."""
    return strip(rf"$x_{k},\ y_{k}$", "", "grey*4 label*1", alt=f"example x {k}, y {k}")


def _product(k: str, lane: float) -> Node:
    """Inner product of an example with the query."""
    return op(r"$\langle\,,\rangle$", lane=lane, alt=f"of x {k} and the moved query")


MODEL = Schematic(
    "One layer of linear attention reads a prompt",
    [
        (
            "prompt",
            {
                "z1": _example("1"),
                "z2": _example("2"),
                "z.": dots(),
                "zn": _example("n"),
                "zq": strip(r"$x_q,\ ?$", "", "context*4 -label*1", alt="query x q without a label"),
            },
        ),
        ("query", {"G": box(r"$\Gamma$", holds="context", lane=2, alt="moved by the matrix Gamma")}),
        ("inner product", {"k1": _product("1", -2), "k2": _product("2", -1), "kn": _product("n", 1)}),
        (
            "weight",
            {
                "a1": bar(value=0.85, holds="context", lane=-2),
                "a2": bar(value=0.2, holds="context", lane=-1),
                "an": bar(value=0.5, holds="context", lane=1),
            },
        ),
        (
            "label",
            {
                "y1": op(r"$y_1$", holds="label", lane=-2, alt="y 1"),
                "y2": op(r"$y_2$", holds="label", lane=-1, alt="y 2"),
                "yn": op(r"$y_n$", holds="label", lane=1, alt="y n"),
            },
        ),
        ("mean", {"sum": op(r"$\Sigma$", lane=-0.5, alt="of the weighted labels")}),
        ("answer", {"y": out(r"$\hat y_q$", lane=-0.5, alt="the predicted label of the query")}),
    ],
    ["z1 z2 zn > k1 k2 kn > a1 a2 an > y1 y2 yn", "zq > G >> k1 k2 kn", "y1 y2 yn > sum > y"],
)

NAMES = ("linear attention", "averaging", "least squares", "Bayes")


def one_prompt(n: int = 10, noise: float = 0.5, seed: int = 0, longest: int = 100) -> Figure:
    """One prompt's own loss in one dimension with each predictor's weight, and the risks over the prompt's length.

    The layer is the best one for n examples, also where the prompt is longer or shorter. It is the live figure of the
    page as it stands still.
    """
    fig, (left, right) = plots.panels(2)
    drawn = LinearPrompts(n=n, d=1, noise=noise).draw(1, seed)
    x, y = drawn.context.x[0, :, 0].numpy(), drawn.context.y[0].numpy()
    gamma = theory.attention_optimum(n, np.eye(1), noise)
    predictors = (LinearAttention(torch.from_numpy(gamma)), Averaging(), LeastSquares(), Ridge(noise**2))
    one = torch.ones(1, 1, 1, dtype=torch.float64)  # the prediction at x = 1 is the weight
    weights = [predictor(drawn.context, one).item() for predictor in predictors]

    def loss(b):
        return ((y - np.multiply.outer(b, x)) ** 2).mean(-1) / 2

    task, looks = float(drawn.task[0, 0]), plots.looks(NAMES)
    ends = [min(0.0, task, *weights), max(0.0, task, *weights)]
    grid = np.linspace(ends[0] - 0.25 * (ends[1] - ends[0]), ends[1] + 0.25 * (ends[1] - ends[0]), 200)
    left.plot(grid, loss(grid), color=plots.TRAIN, lw=1.3)
    left.axvline(task, color="black", ls=":", lw=1.3, label="task")
    left.plot(0, loss(0.0), "o", color="black", mfc="white", ms=8, label="start")
    for name, weight in zip(NAMES, weights, strict=True):
        colour, marker = looks[name]
        left.plot(weight, loss(weight), marker, color=colour, ms=9, label=name)
    left.set(xlabel="weight b", ylabel="loss of this prompt", title="One step from zero")
    _risks(right, gamma, np.unique(np.geomspace(1, longest, 25).round().astype(int)), noise, looks)
    right.axvline(n, color=plots.TRAIN, ls=":", lw=1.3)
    right.set(xlabel="examples n of a prompt", ylabel="risk", title=f"A layer trained at {n}")
    handles = {
        text: handle for ax in (left, right) for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=3)
    return fig


def _risks(ax, gamma: np.ndarray, lengths: np.ndarray, noise: float, looks: dict) -> None:
    """Risks of the predictors over the prompt's length, in one dimension; of least squares where it is finite."""
    one = np.eye(1)
    risks = {
        "linear attention": [theory.attention_risk(gamma, k, one, noise) for k in lengths],
        "averaging": [theory.attention_risk(one, k, one, noise) for k in lengths],
        "least squares": [noise**2 / (k - 2) if k > 2 else np.nan for k in lengths],
        "Bayes": [theory.ridge_risk(int(k), one, noise).mean() for k in lengths],
    }
    for name, values in risks.items():
        colour, marker = looks[name]
        ax.plot(lengths, values, marker=marker, markevery=4, color=colour, label=name)
    ax.set(xscale="log", yscale="log")
    plots.log_ticks(ax)


def layers(stored: xr.Dataset) -> Figure:
    """Risk of one to four trained layers on both problems, beside the best use of as many gradient steps.

    stored: the larger run of the lecture, over (covariance, parts, layers, seed).
    """
    fig, axes = plots.panels(2, sharex=True, sharey=True)
    names = {"descent": "gradient steps", "preconditioned": "preconditioned steps"}
    looks = plots.looks([*names.values(), "linear attention"])
    for ax, kind in zip(axes, ("isotropic", "rotated"), strict=True):
        part = stored.sel(covariance=kind)
        for variable, name in names.items():
            colour, marker = looks[name]
            ax.plot(part.layers, part[variable], marker=marker, color=colour, label=f"L {name}, at best")
        ax.plot(part.layers, part.bent, color="black", ls="--", label="inputs moved, at best")
        trained, (colour, marker) = part.risk.sel(parts="descent"), looks["linear attention"]
        ax.vlines(part.layers, trained.min("seed"), trained.max("seed"), color=colour)
        ax.plot(part.layers, trained.median("seed"), marker, color=colour, ms=9, label="trained layers")
        ax.set(yscale="log", ylim=(1e-4, 4), ylabel="risk", title=kind.capitalize())
        ax.set_xticks(part.layers)
    axes[1].set_xlabel("layers L")
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def trained(history: xr.Dataset, least: float, plain: float, longer: xr.Dataset, covariance: np.ndarray) -> Figure:
    """The risk of one layer in training, and that of layers which are best for one length on prompts of others.

    history: of `attention`, over (step, seed). least, plain: risks of the best layer and of the best plain step.
    longer: as `lengths` of this lecture returns it.
    """
    fig, (left, right) = plots.panels(2)
    names, best, step = (
        {"attention": "trained"},
        {"best layer": lambda at: np.full(len(at), least)},
        {"plain step": plain},
    )
    plots.learning_curves(
        history, names, log="xy", theory=best, levels=step, title="In training", ylabel="risk", ax=left
    )

    def at_best(lengths):
        gammas = [theory.attention_optimum(n, covariance) for n in lengths]
        return [theory.attention_risk(gamma, n, covariance) for gamma, n in zip(gammas, lengths, strict=True)]

    curves = {f"N = {k}": longer.risk.sel(trained_at=k, drop=True) for k in longer.trained_at.values}
    labels, best = {name: name for name in curves}, {"best at n": at_best}
    title = "Each length has its own floor"
    plots.learning_curves(xr.Dataset(curves), labels, "n", log="xy", theory=best, title=title, ylabel="risk", ax=right)
    return fig
