"""What a report finds over training: the checkpoints one after the other."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from flbook import observe
from flbook.plots.look import NOISE, SIGNAL, TEST, TRAIN, panels, styled
from flbook.report.findings import ROOM, Finding, kernel_of, number, percent, varied
from flbook.report.given import LOSSES, Given, each

MOST = 12  # checkpoints; of more, as many are looked at, evenly spaced and the last among them
PARTS = {"signal": SIGNAL, "memorised": NOISE, "neither": TRAIN}


def chosen(files: Sequence[Path]) -> list[Path]:
    """The checkpoints that are looked at.

    Parameters
    ----------
    files
        All of them, in order.

    Returns
    -------
    list[Path]
        At most `MOST`, the first and the last among them.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    if len(files) < 2:
        raise ValueError("a single checkpoint shows no course of training")
    places = np.linspace(0, len(files) - 1, min(MOST, len(files))).round().astype(int)
    return [files[place] for place in places]


def alignments(files: Sequence[Path], start: Given) -> list[Finding]:
    """The tangent kernel's alignment with the labels, and with itself at the first checkpoint.

    Parameters
    ----------
    files
        Checkpoints, in order.
    start
        The network.

    Returns
    -------
    list[Finding]
        One.
    """
    y = varied(start.labels)
    names, with_labels, with_first = [], [], []
    first = None
    for name, here in each(chosen(files), start):
        tangent = kernel_of(here)
        first = tangent if first is None else first
        few = y[:len(tangent)]
        names.append(name)
        with_labels.append(observe.alignment(tangent, few @ few.T, centred=True).item())
        with_first.append(observe.alignment(tangent, first, centred=True).item())
    text = (f"From {names[0]} to {names[-1]} the tangent kernel’s alignment with the labels goes from "
            f"{with_labels[0]:.2f} to {with_labels[-1]:.2f}, and its alignment with the kernel of {names[0]} to "
            f"{with_first[-1]:.2f} (1 if the network is lazy).")
    how = ("The cosine between two centred kernels, on the same samples at every checkpoint. Cortes, Mohri and "
           "Rostamizadeh (2012); Chizat, Oyallon and Bach (2019) for laziness.")
    curves = {"with the labels": (with_labels, SIGNAL), f"with that of {names[0]}": (with_first, TRAIN)}
    figure = _drawn(names, curves, "alignment of the tangent kernel")
    return [Finding("Tangent kernel over training", text, how, figure)]


def curvatures(files: Sequence[Path], start: Given) -> list[Finding]:
    """Loss and sharpness.

    Parameters
    ----------
    files
        Checkpoints, in order.
    start
        The network.

    Returns
    -------
    list[Finding]
        One.
    """
    names, losses, tops = [], [], []
    for name, here in each(chosen(files), start):
        names.append(name)
        losses.append(here.loss(here.params).item())
        tops.append(observe.sharpness(here.loss, here.params))
    values, worst = [top.value for top in tops], max(top.residual for top in tops)
    most = int(np.argmax(values))
    text = (f"From {names[0]} to {names[-1]} the loss goes from {number(losses[0])} to {number(losses[-1])} and the "
            f"sharpness from {number(values[0])} to {number(values[-1])}; it is largest at {names[most]}, with "
            f"{number(values[most])}.")
    how = f"The Hessian’s largest eigenvalue at each checkpoint; residuals are at most {number(worst)}."
    curves = {"sharpness": (values, NOISE), "loss": (losses, TEST)}
    log = min(*values, *losses) > 0
    return [Finding("Sharpness over training", text, how, _drawn(names, curves, "loss, sharpness", log))]


def movement(files: Sequence[Path], start: Given) -> list[Finding]:
    """How much of the way that training went is signal that all data share, and how much memorises single samples.

    Parameters
    ----------
    files
        Checkpoints, in order.
    start
        The network, with samples that it was not trained on.

    Returns
    -------
    list[Finding]
        Two: over training, and by layer at its end.
    """
    if start.held_out is None:
        raise ValueError("signal and noise are told apart by samples that were not trained on, and the data hold no "
                         "x_test and y_test")
    n = int(min(len(start.x), max(2, ROOM // max(p.numel() for p in start.params.values()))))  # gradients are held
    steps, samples = chosen(files), (start.x[:n], start.y[:n])
    parts: dict[str, list[Tensor]] = {}  # of each layer, from the start: signal, memorised, outside
    names, curve = [], []
    for (_, before), (name, after) in pairwise(each(steps, start)):
        found = observe.signal_and_noise(before.f, [before.params, after.params], samples, start.held_out,
                                         LOSSES[start.loss_name])
        for layer, one in found.items():
            so_far = parts.get(layer, [torch.zeros_like(one.signal)] * 3)
            parts[layer] = [whole + part for whole, part in zip(so_far, one[:3], strict=True)]
        names.append(name)
        curve.append(shares(list(parts.values())))
    layers = {layer: shares([three]) for layer, three in parts.items()}
    few = "" if n == start.total else f", {n} of the {start.total} samples"
    return _moved(steps[0].stem, names, curve, layers, few)


def shares(layers: Sequence[Sequence[Tensor]]) -> list[float]:
    """Shares of the parts of some layers' movement in its squared length.

    Parameters
    ----------
    layers
        For each layer the parts of its movement, which add up to it.

    Returns
    -------
    list[float]
        One a part; they add up to 1, and are nan where nothing has moved.
    """
    whole = [torch.stack(list(parts)).sum(0) for parts in layers]
    square = sum(move.square().sum().item() for move in whole)
    along = [sum((part * move).sum().item() for part, move in zip(column, whole, strict=True))
             for column in zip(*layers, strict=True)]
    return [value / square if square else math.nan for value in along]


def _moved(first: str, names: list[str], curve: list[list[float]], layers: dict[str, list[float]], few: str
           ) -> list[Finding]:
    """The two findings on how far signal and noise have gone."""
    signal, memorised, outside = curve[-1]
    text = (f"Of the way from {first} to {names[-1]}, {percent(signal)} is signal, along the gradient of samples that "
            f"were not trained on, {percent(memorised)} memorises single training samples{few}, and "
            f"{percent(outside)} is neither.")
    how = ("From one checkpoint to the next, each layer’s step is split by gradients at the first of the two: the part "
           "along the held-out loss’s gradient (none where it rises), what is left in the span of the training "
           "samples’ gradients, and the rest, which momentum, weight decay and skipped steps leave unexplained. Shares "
           "are of the squared length of the whole way, all layers together. After Cao et al. (2022), Definition 5.1.")
    columns = zip(*curve, strict=True)
    curves = {part: (list(column), colour) for (part, colour), column in zip(PARTS.items(), columns, strict=True)}
    found = [Finding("Signal and noise over training", text, how, _drawn(names, curves, "share of the way so far"))]
    moved = {layer: three for layer, three in layers.items() if not math.isnan(three[0])}
    most, least = (pick(moved, key=lambda layer: moved[layer][0]) for pick in (max, min))
    text = (f"Of the layers, {most} has the largest share of signal, {percent(moved[most][0])}, and {least} the "
            f"smallest, {percent(moved[least][0])}.")
    how = ("The same shares for each layer’s whole way. A layer that has not moved has none; in one with fewer numbers "
           "than there are samples nothing is left outside their span.")
    return [*found, Finding("Signal and noise by layer", text, how, _drawn_layers(moved))]


@styled
def _drawn_layers(layers: dict[str, list[float]], most: int = 16) -> Figure:
    """Three dots a layer; of more layers than there is room for, the first and the last."""
    names = list(layers) if len(layers) <= most else [*list(layers)[:most // 2], *list(layers)[-most // 2:]]
    fig, (ax,) = panels()
    fig.set_figheight(max(fig.get_figheight(), 1.2 + 0.26 * len(names)))
    for k, (part, colour) in enumerate(PARTS.items()):
        ax.plot([layers[name][k] for name in names], range(len(names)), "os^"[k], color=colour, label=part)
    ax.set_yticks(range(len(names)), [name if len(name) < 20 else f"…{name[-18:]}" for name in names], fontsize=9)
    ax.set(xlabel="share of the layer’s way", ylim=(len(names) - 0.5, -0.5))
    fig.legend(loc="outside lower center", ncols=3, fontsize=9)
    return fig


@styled
def _drawn(names: list[str], curves: dict, ylabel: str, log: bool = False) -> Figure:
    """Curves over the checkpoints."""
    fig, (ax,) = panels()
    for label, (values, colour) in curves.items():
        ax.plot(range(len(names)), values, "o-", color=colour, markersize=5, linewidth=1.3, label=label)
    every = -(-len(names) // 4)
    ax.set_xticks(range(0, len(names), every), [name[-14:] for name in names[::every]])
    ax.set(ylabel=ylabel, yscale="log" if log else "linear")
    if not log:
        ax.set_ylim(min(0, ax.get_ylim()[0]), max(1.05, ax.get_ylim()[1]))
    fig.legend(loc="outside lower center", ncols=len(curves), fontsize=9)
    return fig
