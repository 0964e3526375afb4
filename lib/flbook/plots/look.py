"""The look of a figure: the book's colours, its style, and labels that come from the data's own attributes."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

SIGNAL = "#0072B2"
NOISE = "#D55E00"
TEST = "#009E73"
TRAIN = "#777777"
THEORY = "#000000"
CHANCE = "#000000"
OTHERS = ("#A3447A", "#8C6D00", "#2878A8", "#5A4FB0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

# One colour and one marker for each model, in the whole book. A label gets those of the longest name that it holds.
MODELS = {
    "network": ("#332288", "o"),
    "linear": ("#8A6A00", "s"),
    "lazy": ("#AA3377", "^"),
    "tangent kernel": ("#AA3377", "<"),
    "frozen": ("#5F6B76", "D"),
    "random features": ("#5F6B76", "d"),
    "kernel": ("#8B4513", "X"),
    "quadratic kernel": ("#B0413E", "X"),
    "mean field": ("#3F6F21", "P"),
    "attention": ("#00707A", "v"),
    "linear attention": ("#00707A", "v"),
    "transformer": ("#9A1B1E", "p"),
    "mamba": ("#556B00", ">"),
    "ridge": ("#3D5FA3", "h"),
    "least squares": ("#7A4B9A", "H"),
    "one gradient step": ("#B35900", "*"),
    "averaging": ("#6B5B00", "8"),
    "bayes": ("#000000", "_"),
}

# Series along a scale, such as one for each dimension. The light end, too, has a contrast of 3 with white, and with
# black where the page turns lightness round.
SHADES = LinearSegmentedColormap.from_list("shades", plt.get_cmap("plasma")(np.linspace(0, 0.6, 256)))

_LINE = 30  # characters a line of an axis label
_FILE = Path(__file__).with_name("flbook.mplstyle")
_MEANING = {"gamma": SIGNAL, "signal": SIGNAL, "rho": NOISE, "noise": NOISE, "test": TEST, "train": TRAIN}
SIZE = (5.2, 3.6)  # inches of one panel: on a phone its text is still readable


def style() -> None:
    """Draw all further figures of this session in the book's style; the functions of this package do so anyway."""
    plt.style.use(_FILE)


def styled(draw: Callable) -> Callable:
    """Make a plotting function draw in the book's style and leave the session's style alone.

    Parameters
    ----------
    draw
        The function.

    Returns
    -------
    Callable
        It takes and returns what `draw` does.
    """

    @wraps(draw)
    def wrapped(*args, **kwargs):
        with plt.style.context(_FILE):
            return draw(*args, **kwargs)

    return wrapped


@styled
def panels(count: int = 1, **kwargs) -> tuple[Figure, list[plt.Axes]]:
    """An empty figure of the book's size with one panel, or two above each other, and the list of its axes.

    Parameters
    ----------
    count
        1 or 2.
    **kwargs
        Further arguments of ``plt.subplots``.

    Returns
    -------
    tuple[Figure, list[Axes]]
        The figure, and its axes from the top.
    """
    if count not in (1, 2):
        raise ValueError(f"count must be 1 or 2 panels (more are not one message), not {count}")
    width, height = SIZE
    fig, axes = plt.subplots(count, 1, figsize=(width, (1, 1.7)[count - 1] * height), squeeze=False, **kwargs)
    vars(fig).update(flbook_panels=count)  # the page shows two beside each other where it has room
    return fig, list(axes[:, 0])


def shared_legend(axes: Sequence[plt.Axes], ncols: int = 2) -> None:
    """One legend for several panels, below them: every label once, in the order in which it comes.

    Parameters
    ----------
    axes
        The panels, of one figure.
    ncols
        Columns of the legend.
    """
    shown = {text: handle for ax in axes for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    axes[0].figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=ncols, fontsize=9)


def canvas(ax: plt.Axes | None) -> plt.Axes:
    """The axes to draw in: those given, or those of a new figure.

    Parameters
    ----------
    ax
        The axes, or None.

    Returns
    -------
    Axes
        Of the book's size if they are new.
    """
    return panels()[1][0] if ax is None else ax


def typeset(text: str) -> str:
    """Plain symbols with an index, such as σ_ξ, as mathematics; what stands between dollars already stays.

    Parameters
    ----------
    text
        What a label says.

    Returns
    -------
    str
        The same for mathtext.
    """
    parts = re.split(r"(\$[^$]*\$)", text)
    return "".join(re.sub(r"([^\W\d_])_([^\W\d_])(?![a-zA-Zα-ω])", r"$\1_\2$", part) if k % 2 == 0 else part
                   for k, part in enumerate(parts))  # fmt: skip


def label(da: xr.DataArray) -> str:
    """Axis label of a variable or coordinate: its ``long_name`` and, unless it is a pure number, its ``units``.

    Parameters
    ----------
    da
        The variable or coordinate.

    Returns
    -------
    str
        In lines of about thirty characters.
    """
    name, units = str(da.attrs.get("long_name") or da.name or ""), str(da.attrs.get("units", "1"))
    lines: list[str] = []
    name = typeset(name if units in ("1", "") else f"{name} [{units}]")
    for word in re.findall(r"(?:\$[^$]*\$|[^\s$])+", name):
        longer = " ".join([*lines[-1:], word])
        seen = re.sub(r"\\[a-zA-Z]+|\\.", "x", longer).replace("$", "")  # a command of mathtext is one sign
        lines[-1:] = [longer] if lines and len(seen) <= _LINE else [*lines[-1:], word]
    return "\n".join(lines)


def _plain(tick: float, _: int) -> str:
    return f"{tick:g}"


def _power(tick: float, _: int) -> str:
    return f"$10^{{{round(np.log10(tick))}}}$"


def geometric(values: np.ndarray) -> bool:
    """Are these values rather spaced by a factor than by a step?

    Parameters
    ----------
    values
        Sorted numbers, shape ``(n,)``.

    Returns
    -------
    bool
        False if there are fewer than three, or one is not above 0.
    """
    if len(values) < 3 or not (values > 0).all():
        return False
    steps, factors = np.ptp(np.diff(values)) / np.ptp(values), np.ptp(np.diff(np.log(values))) / np.ptp(np.log(values))
    return bool(factors < steps)


def log_ticks(ax: plt.Axes) -> None:
    """Ticks of logarithmic axes, at their present limits: plain numbers if these are short, powers of ten otherwise.

    Parameters
    ----------
    ax
        The axes; linear ones stay as they are.
    """
    for axis in (axis for axis in (ax.xaxis, ax.yaxis) if axis.get_scale() == "log"):
        low, high = sorted(axis.get_view_interval())
        for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
            powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high) + 1)
            ticks = [tick for tick in np.outer(powers, steps).ravel() if low * 0.999 <= tick <= high * 1.001]
            if len(ticks) >= 3:
                break
        plain = (low > 0.9e-3 and high < 2.1e4) or len(steps) > 1
        text = _plain if plain else _power
        stride = max(1, -(-len(ticks) // 6))
        if plain and axis is ax.xaxis:  # long numbers need room beside each other
            room = 10 * ax.get_position().width * cast(Figure, ax.figure).get_figwidth()  # characters
            while stride < len(ticks) and sum(len(text(tick, 0)) + 2 for tick in ticks[::stride]) > room:
                stride += 1
        axis.set_major_locator(FixedLocator(ticks[::stride]))
        axis.set_major_formatter(FuncFormatter(text))
        axis.set_minor_formatter(NullFormatter())


def model(name: str) -> str | None:
    """The model that a label is about: the longest name of `MODELS` that it holds as words, or None.

    Parameters
    ----------
    name
        The label.

    Returns
    -------
    str | None
        A key of `MODELS`.

    Examples
    --------
    >>> model("network_small"), model("tangent kernel without bias"), model("risk")
    ('network', 'tangent kernel', None)
    """
    words = f" {re.sub(r'[^a-z0-9]+', ' ', name.lower())} "
    return max((known for known in MODELS if f" {known} " in words), key=len, default=None)


def looks(names: list[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for every name: of its quantity (gamma..., rho..., test..., train...) or of its model.

    Several of one model share its colour and differ in the marker; what is neither gets a colour not yet taken.

    Parameters
    ----------
    names
        In the order of drawing.

    Returns
    -------
    dict[str, tuple[str, str]]
        ``(colour, marker)`` by name; no pair comes twice.
    """
    known = {name: next((c for word, c in _MEANING.items() if name.startswith(word)), None) for name in names}
    models = {name: MODELS[about] for name in names if not known[name] and (about := model(name))}
    taken = {colour for colour, _ in models.values()} | set(known.values())
    free = iter(
        [*(c for c in OTHERS if c not in taken), *(c for c in (SIGNAL, NOISE, TEST, TRAIN) if c not in taken)] * 4
    )
    found: dict[str, tuple[str, str]] = {}
    for k, name in enumerate(names):
        colour, marker = models.get(name, (known[name], MARKERS[k % len(MARKERS)]))
        if not colour or name not in models and colour in {c for c, _ in found.values()}:
            colour = next(free)
        while (colour, marker) in found.values():
            marker = MARKERS[(MARKERS.index(marker) + 1) % len(MARKERS)] if marker in MARKERS else MARKERS[0]
        found[name] = (colour, marker)
    return found


def ink(colour: str) -> str:
    """The colour for text: darker where it needs to be, until its contrast with white is 4.5.

    Parameters
    ----------
    colour
        As Matplotlib takes it.

    Returns
    -------
    str
        Hexadecimal.

    Examples
    --------
    >>> ink("#0072B2"), ink("#D55E00")
    ('#0072b2', '#c15500')
    """
    rgb = np.array(to_rgb(colour))
    while contrast(rgb) < 4.5:
        rgb = rgb * 0.98
    return to_hex(cast(Any, rgb))


def contrast(colour) -> float:
    """The contrast of a colour with white, as the Web Content Accessibility Guidelines define it.

    Parameters
    ----------
    colour
        As Matplotlib takes it.

    Returns
    -------
    float
        From 1, of white itself, to 21, of black.
    """
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ np.array([0.2126, 0.7152, 0.0722]) + 0.05))


def averaged(da: xr.DataArray, over: str, *dims: str) -> xr.DataArray:
    """The mean over the seeds (if `da` still has them), with exactly these dimensions, in this order.

    Raises ValueError, in one sentence, if other dimensions are left.

    Parameters
    ----------
    da
        Data with the dimensions `dims` and perhaps `over`.
    over
        The dimension of the seeds.
    *dims
        The dimensions of the mean, in order.

    Returns
    -------
    xarray.DataArray
        With the attributes of `da`.
    """
    mean = da.mean(over, keep_attrs=True) if over in da.dims else da
    if set(mean.dims) != set(dims):
        raise ValueError(f"{da.name or 'the data'} must have the dimensions {dims} and {over!r}, not {da.dims}; select")
    return mean.transpose(*dims)


def direct_labels(ax: plt.Axes, ends: list[tuple[float, str, str]], gap: float = 0.085) -> None:
    """Write (height in data units, text, colour) to the right of the axes, pushed apart where they would overlap.

    Parameters
    ----------
    ax
        The axes.
    ends
        The labels, in any order.
    gap
        Least distance of two labels, in heights of the axes.
    """
    to_axes = ax.transData + ax.transAxes.inverted()
    x, (low, high) = ax.get_xlim()[1], ax.get_ylim()
    inside = [(min(max(y, low), high), text, colour) for y, text, colour in ends]  # a zero on a logarithmic axis
    spots = sorted((float(to_axes.transform((x, y))[1]), text, colour) for y, text, colour in inside)
    heights: list[float] = []
    for height, _, _ in spots:
        heights.append(max(height, heights[-1] + gap) if heights else height)
    excess = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for k in reversed(range(len(heights))):
        ceiling = heights[k + 1] - gap if k + 1 < len(heights) else 1.0
        heights[k] = min(heights[k], ceiling) if excess else heights[k]
    for height, (_, text, colour) in zip(heights, spots, strict=True):
        ax.text(1.02, height, typeset(text), transform=ax.transAxes, color=ink(colour), fontweight="bold", va="center",
                ha="left")
