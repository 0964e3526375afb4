"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flbook import plots
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.plots.look import MODELS
from flbook.plots.schematic import Schematic, box, op, out, strip

MODEL = Schematic(
    "Linear attention on features of a function's inputs",
    [
        ("prompt", {
            "x": strip("$x_i$", "examples", "grey*1", lane=-1, alt="inputs x i of the examples"),
            "q": strip("$x_q$", "query", "grey*1", lane=0, alt="the query x q"),
            "y": strip("$y_i$", "labels", "label*1", lane=1, alt="labels y i of the examples"),
        }),
        ("features", {
            "f": strip(r"$\phi$", "N of them", "signal*5", lane=-1, alt="N features phi of an example"),
            "p": strip(r"$\phi$", "", "signal*5", lane=0, alt="the same features of the query"),
        }),
        ("averages", {"b": op(r"$\hat b$", "mean", lane=-1, alt="of labels times features, over the prompt")}),
        ("match", {"g": box(r"$\Gamma$", "from T prompts", holds="context", lane=-0.5, alt="the matrix Gamma")}),
        ("answer", {"o": out(r"$\hat y$", lane=-0.5, alt="the predicted value of the function")}),
    ],
    ["x > f > b > g", "q > p > g > o", "y > b"],
    says="Pretraining learns the matrix; a prompt brings only its averages.",
)  # fmt: skip
PATHS = {  # label -> colour, marker
    r"$N=5,\ T=250$ fixed": (plots.TRAIN, "D"),
    r"$N=n^{1/3},\ T=2n$": (plots.NOISE, "s"),
    r"$N=n^{1/3},\ T=n^{4/3}$": (plots.SIGNAL, "o"),
}
_LEVELS = {"kernel": ("kernel", "-."), "Bayes": ("bayes", ":"), "attention": ("linear attention", "--"),
           "ridge": ("ridge", (0, (5, 1)))}  # fmt: skip
Path = tuple[Sequence[float], Sequence[np.ndarray], Sequence[float]]  # n; measured risks by seed; the formula


def growth(paths: Sequence[Path], floor: tuple[np.ndarray, np.ndarray]) -> Figure:
    """Risk over the prompt's length along the three paths, and the least risk of all methods that know the basis."""
    fig, (ax,) = plots.panels()
    for (n, risks, formula), (label, (colour, marker)) in zip(paths, PATHS.items(), strict=True):
        ax.plot(n, formula, "--", color=plots.THEORY, lw=1.2)
        _spread(ax, n, risks, marker, color=colour, label=label)
    ax.plot(*floor, ":", color=plots.CHANCE, label="no method below")
    ax.set(xscale="log", yscale="log", xlabel="examples of a prompt $n$", ylabel="risk $R$")
    plots.log_ticks(ax)
    ax.set_title("A longer prompt alone soon stops helping")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def terms(variance: np.ndarray, noise: float, n: int, T: int, measured: Mapping[int, np.ndarray]) -> Figure:
    """The three terms of the risk over the number of features at one T, with measured risks by N and seed."""
    N = [k for k in range(1, 24, 2) if T > k**2 + 1]
    parts = np.array([theory.risk_terms(variance, noise, n, k, T) for k in N]).T
    looks = {"features left out": (plots.SIGNAL, "-."), "prompt too short": (plots.NOISE, (0, (5, 1))),
             "too few prompts": (plots.TRAIN, ":")}  # fmt: skip
    fig, (ax,) = plots.panels()
    for one, (label, (colour, style)) in zip(parts, looks.items(), strict=True):
        ax.plot(N, one, ls=style, color=colour, lw=2, label=label)
    ax.plot(N, parts.sum(0), "--", color=plots.THEORY, label="their sum")
    own = [k for k in measured if k in N]
    _spread(ax, own, [measured[k] for k in own], "o", color=plots.TEST, label="measured")
    ax.set(yscale="log", xlim=(0, 24), ylim=(1e-3, 10), xlabel="features $N$", ylabel="risk $R$")
    plots.log_ticks(ax)
    ax.set_title(f"$T = {T}$ prompts: their sum is least at $N = {N[parts.sum(0).argmin()]}$")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def against_noise(found: xr.Dataset, forms: Mapping[str, np.ndarray]) -> Figure:
    """Risks of attention and of ridge regression over the noise, with the exact risk and the bound of all methods."""
    fig, (ax,) = plots.panels()
    for name, model in {"attention": "linear attention", "ridge regression": "ridge"}.items():
        colour, marker = MODELS[model]
        _spread(ax, found.noise.values, found.risk.sel(predictor=name).values, marker, color=colour, label=name)
    for (label, heights), style in zip(forms.items(), ("--", ":"), strict=True):
        ax.plot(found.noise, heights, style, color=plots.THEORY, label=label)
    ax.set(xscale="log", yscale="log", xlabel=r"label noise $\sigma_y$", ylabel="risk $R$")
    ax.set_title("Averaging pays for the signal as well")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def hidden(risk: xr.DataArray, levels: Mapping[str, float]) -> Figure:
    """Pretrained attention over the number of prompts, and rivals as levels: label -> height."""
    fig, (ax,) = plots.panels()
    colour, marker = MODELS["linear attention"]
    risks = risk.transpose("T", "seed").values
    _spread(ax, risk["T"].values, risks, marker, color=colour, label="pretrained attention")
    for label, height in levels.items():
        model, style = _LEVELS[label.split(",")[0]]
        ax.axhline(height, color=MODELS[model][0], ls=style, label=label)
    ax.set(xscale="log", yscale="log", xlabel="pretraining prompts $T$", ylabel="risk $R$")
    plots.log_ticks(ax)
    ax.set_title("A hidden basis, 64 examples")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def _spread(ax: Axes, x: Sequence[float], risks: Sequence[np.ndarray], marker: str, **looks) -> None:
    """Means over seeds as dots, with bars from the 10 % to the 90 % quantile. risks: one array of seeds for each x."""
    low, mean, high = (np.array([of(np.asarray(one)) for one in risks]) for of in (_tenth, np.mean, _ninetieth))
    bars = np.maximum(0, [mean - low, high - mean])
    ax.errorbar(x, mean, bars, fmt=marker, ms=6, mec="white", capsize=2, **looks)


def _tenth(one: np.ndarray) -> float:
    return float(np.quantile(one, 0.1))


def _ninetieth(one: np.ndarray) -> float:
    return float(np.quantile(one, 0.9))
