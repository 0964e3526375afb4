"""Pictures of this lecture: what a page should not have to spell out."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from flbook import plots

GROUNDS = {"signal-noise, ReLU": "ReLU", "signal-noise, squared ReLU": "ReLU²", "margins": "margins",
           "strong and weak": "weak", "sparse noise": "sparse", "rare features": "rare, 5 %",
           "common and rare": "rare, 10 %", "environments": "shift"}  # fmt: skip
RULES = {"gradient descent": "GD", "label noise: 0.2": "label noise, p = 0.2", "SAM, then GD: 3": "SAM, radius 3"}
HOME = {("signal-noise, ReLU", "SAM, then GD"), ("signal-noise, squared ReLU", "label noise"), ("margins", "momentum"),
        ("strong and weak", "gradient descent"), ("sparse noise", "gradient descent")}  # the lectures' own rules


def main_table(errors: xr.DataArray) -> Figure:
    """Test errors of every rule on every ground: mean and standard deviation over data sets, in print and as colours.

    A frame is around the rule that a ground's own lecture praises.
    """
    errors = errors.transpose("rule", "ground", "seed")
    mean, spread = errors.mean("seed").to_numpy(), errors.std("seed", ddof=1).to_numpy()
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 6.2)
    badness = np.clip(mean / 0.5, 0, 1)
    ax.pcolormesh(badness, cmap="viridis", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
    for (row, column), value in np.ndenumerate(mean):
        text = f"{_short(value)}\n±{_short(spread[row, column])}"
        colour = "white" if badness[row, column] < 0.6 else "black"
        ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=9, linespacing=1.0, color=colour)
        if (errors.ground.values[column], errors.rule.values[row]) in HOME:
            ax.add_patch(Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, fill=False, color=plots.NOISE, linewidth=2))
    ax.set_xticks(np.arange(mean.shape[1]) + 0.5, [GROUNDS[name] for name in errors.ground.values], rotation=50,
                  ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(mean.shape[0]) + 0.5, errors.rule.values)
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.set_title("Test error, judge: held-out samples")
    return fig


def _short(value: float) -> str:
    """.05, and 1.00."""
    return f"{abs(value):.2f}"[1 if abs(value) < 0.995 else 0 :]


def two_judges(by_held: xr.DataArray, by_loss: xr.DataArray) -> Figure:
    """Test error of each rule, a mean over grounds, by either judge. Both over (rule, seed)."""
    fig, (ax,) = plots.panels(1)
    fig.set_size_inches(5.2, 3.9)
    for errors, name, face, marker in ((by_loss, "training loss", "none", "s"),
                                       (by_held, "held-out samples", plots.TEST, "o")):
        ax.errorbar(errors.mean("seed"), errors.rule.values, xerr=errors.std("seed", ddof=1), fmt=marker,
                    color=plots.TEST, markerfacecolor=face, markersize=8, label=name)
    ax.axvline(0.5, color=plots.CHANCE, linestyle=":")
    ax.invert_yaxis()
    ax.set(xlabel="test error, mean of seven data sets [fraction]", xlim=(-0.02, 0.55),
           title="What the judge is worth")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def dots(errors: Mapping[str, np.ndarray]) -> Figure:
    """Test errors of every data set, a row for each rule."""
    fig, (ax,) = plots.panels()
    for name, error in errors.items():
        ax.plot(error, [name] * len(error), "o", color=plots.TEST, alpha=0.6)
    ax.axvline(0.5, color=plots.CHANCE, linestyle=":")
    ax.invert_yaxis()
    ax.set(xlabel="test error [fraction]", xlim=(-0.02, 0.55), title="Six rules on the same ten data sets")
    return fig


def judged(table: xr.Dataset, names: tuple[str, ...] = tuple(RULES)) -> Figure:
    """Training loss and test error over the step size, a line for each rule; only steps at which they all train."""
    fig, axes = plots.panels(2)
    trained = np.isfinite(table.train_loss.sel(variant=list(names))).all(("variant", "seed"))
    table = table.isel(lr=trained.values)
    for ax, what, log, title in zip(axes, ("train_loss", "test_error"), ("xy", "x"),
                                    ("What the judge sees", "What it cannot see"), strict=True):
        lines = {RULES[name]: table[what].sel(variant=name, drop=True).assign_attrs(table[what].attrs)
                 for name in names}  # fmt: skip
        plots.series(lines, "lr", log=log, joined=True, title=title, legend=False, ax=ax)
        ax.set_xlabel("step size η")
    axes[0].set_ylim(1e-6, 2)
    axes[1].legend(loc="lower left", fontsize=9, frameon=False)
    return fig


def choices(table: xr.Dataset, own: Mapping[str, tuple]) -> str:
    """The chosen hyperparameters as text: a row for each rule, a column for each ground."""
    names = [GROUNDS[name] for name in table.ground.values]
    lines = []
    for what, title in (("lr", "step size"), ("own", "own hyperparameter")):
        lines.append(f"{title:22}" + "".join(f"{name:>11}" for name in names))
        for rule in table.rule.values:
            if what == "lr" or own[rule][1]:
                values = table[what].sel(rule=rule).transpose("ground").values
                lines.append(f"{rule:22}" + "".join(f"{value:11.3g}" for value in values))
    return "\n".join(lines)


def switched(courses: Mapping[str, xr.Dataset], titles: tuple[str, str]) -> Figure:
    """Active noise neurons and test error over training, a line for each rule."""
    fig, axes = plots.panels(2, sharex=True)
    for ax, what, title in zip(axes, ("active", "test_error"), titles, strict=True):
        lines = xr.Dataset({name: one[what] for name, one in courses.items()})
        plots.learning_curves(lines, {name: name for name in courses}, title=title,
                              ylabel=next(iter(courses.values()))[what].attrs["long_name"], ax=ax)
    return fig
