"""What a report finds: a figure and a sentence each, with every word made from the numbers.

A finding that a network does not allow (it is constant, it cannot be differentiated sample by sample, its first layer
is of another kind) is left out, with a sentence that says why.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap

from flbook import observe, rng
from flbook.observe.functions import derivable, outputs
from flbook.observe.jacobians import centred_kernel
from flbook.plots.look import CHANCE, NOISE, SIGNAL, THEORY, log_ticks, panels, styled
from flbook.report.given import Given, first_line

KERNEL = 256  # samples of a tangent kernel at most
LARGEST = 4096  # inputs of a network whose feature matrix is held
ROOM = 3e7  # numbers that a chunk of Jacobians may hold
DIRECTIONS = 10
Layers = nn.Linear | nn.modules.conv._ConvNd


class Finding(NamedTuple):
    """A figure with its sentence; without a figure, why it is left out."""

    title: str
    sentence: str
    how: str = ""  # what is measured, in a formula, and its source
    figure: Figure | None = None


def all_of(given: Given) -> Iterator[Finding]:
    """All that is found of a network at its present parameters.

    Parameters
    ----------
    given
        The network and the samples.

    Yields
    ------
    Finding
        In the order of the report.
    """
    for title, act in (("Feature matrix", feature_matrix), ("First layer", first_layer), ("Tangent kernel", kernel),
                       ("Curvature of the loss", curvature)):
        yield from tried(title, act, given)


def tried(title: str, act: Callable, *given) -> list[Finding]:
    """Findings, or a sentence that says why there are none.

    Parameters
    ----------
    title
        Of that sentence.
    act
        Returns findings.
    *given
        Its arguments.

    Returns
    -------
    list[Finding]
        At least one.
    """
    try:
        return act(*given)
    except (ValueError, RuntimeError, TypeError, IndexError) as error:
        return [Finding(title, f"Left out: {first_line(error)}.".replace("..", "."))]


def feature_matrix(given: Given) -> list[Finding]:
    """The spectrum of the average gradient outer product.

    Parameters
    ----------
    given
        The network and the samples.

    Returns
    -------
    list[Finding]
        One.
    """
    d, k = given.x[0].numel(), given.labels.shape[1]
    if not given.x.is_floating_point():
        raise ValueError("the inputs are whole numbers, along which there is no gradient")
    if d > LARGEST:
        raise ValueError(f"a sample has {d} numbers, and a matrix of more than {LARGEST} rows is not made here")
    values = spectrum(observe.agop(given.f, given.params, given.x, chunk=_chunk(d * k)), "the outputs do not vary with "
                      "the inputs: all gradients are 0")
    most = int(np.searchsorted(np.cumsum(values), 0.9) + 1)
    text = (f"Along the inputs' {d} dimensions, {percent(values[0])} of the outputs' squared gradient lies in one "
            f"direction and 90 % in {most}; the effective number of directions is {number(effective(values))}.")
    how = ("Eigenvalues of the average gradient outer product, M = (1/n) Σ J(x)ᵀJ(x) with J = ∂f/∂x, over their sum; "
           "the effective number is (Σλ)²/Σλ². Radhakrishnan et al. (2024).")
    return [Finding("Feature matrix", text, how, _drawn_spectrum(values, "eigenvalue of the feature matrix"))]


def first_layer(given: Given) -> list[Finding]:
    """How alike are the feature matrix of the first layer's inputs and that layer's W'W?

    Parameters
    ----------
    given
        The network and the samples.

    Returns
    -------
    list[Finding]
        One.
    """
    name, layer = first_of(given.module, given.x)
    weight = layer.weight.detach().flatten(1)
    squared = weight.T @ weight
    outer = weight.T @ gradients_of(given, layer) @ weight
    if not outer.any():
        raise ValueError("the outputs do not vary with the first layer's outputs: all gradients are 0")
    size = len(squared)
    alike = observe.alignment(outer, squared).item()
    plain = observe.alignment(torch.eye(size).to(squared), squared).item()
    shared = overlaps(outer, squared, min(DIRECTIONS, size))
    place = "inputs" if isinstance(layer, nn.Linear) else f"patches of {size} numbers"
    text = (f"The cosine between the feature matrix of the first layer’s {place} and WᵀW of that layer (“{name}”) is "
            f"{alike:.2f}; if the outputs varied alike along all of them it would be {plain:.2f}. "
            f"The squared cosine between their first directions is {number(shared[0])} ({number(1 / size)} by chance).")
    how = ("WᵀSW with S the mean outer product of the gradients at the layer’s outputs, summed over outputs and places;"
           " for a layer that sees the whole input it is M. The dots are |VᵀU|²/r for the first r eigenvectors V of it "
           "and U of WᵀW, beside r over the dimension. Both matrices live in the rows of W, so that the cosine is "
           "above 0 before training. Radhakrishnan et al. (2024).")
    return [Finding("First layer", text, how, _drawn_overlaps(shared, size))]


def kernel(given: Given) -> list[Finding]:
    """The spectrum of the tangent kernel, and how much of the labels lies in its first directions.

    Parameters
    ----------
    given
        The network and the samples.

    Returns
    -------
    list[Finding]
        Two.
    """
    tangent = kernel_of(given)
    x = given.x[:len(tangent)]
    values = spectrum(tangent, "no output varies with the parameters")
    few = "" if len(x) == len(given.x) else f"On {len(x)} of the samples, "
    text = (f"{few}the first eigenvalue is {percent(values[0])} of the tangent kernel’s trace, and the effective "
            f"number of directions is {number(effective(values))} of {len(x)}.")
    how = ("Eigenvalues of K(x, x′) = Σ ⟨∇f(x), ∇f(x′)⟩, summed over the outputs, over their sum. Jacot, Gabriel and "
           "Hongler (2018).")
    found = [Finding("Tangent kernel", text[:1].upper() + text[1:], how,
                     _drawn_spectrum(values, "eigenvalue of the tangent kernel"))]
    return found + tried("Tangent kernel and labels", labels_in, tangent, x, given.labels[:len(x)])


def kernel_of(given: Given) -> Tensor:
    """The tangent kernel of as many samples as there is room for.

    Parameters
    ----------
    given
        The network and the samples.

    Returns
    -------
    Tensor
        Of the first m samples, shape ``(m, m)``.
    """
    chunk = _chunk(sum(p.numel() for p in given.params.values()) * given.labels.shape[1])
    return observe.ntk(given.f, given.params, given.x[:min(KERNEL, 16 * chunk)], chunk=chunk)


def labels_in(tangent: Tensor, x: Tensor, labels: Tensor) -> list[Finding]:
    """How much of the labels lies in the first directions of a kernel, and of the inputs' own.

    Parameters
    ----------
    tangent
        Kernel, shape ``(n, n)``.
    x, labels
        Samples and their labels, ``(n, ...)`` and ``(n, k)``.

    Returns
    -------
    list[Finding]
        One.
    """
    plain = x.flatten(1).to(tangent)
    theirs = plain @ plain.T
    y = varied(labels)
    aligned, rival = (observe.alignment(k, y @ y.T, centred=True).item() for k in (tangent, theirs))
    shares, others = (labels_along(k, y) for k in (tangent, theirs))
    r = min(DIRECTIONS, len(x) - 1)
    more = "higher than" if aligned > rival + 0.01 else "lower than" if aligned < rival - 0.01 else "within 0.01 of"
    text = (f"The first {r} directions of the tangent kernel hold {percent(shares[r - 1])} of the labels (those of the "
            f"inputs’ own kernel {percent(others[r - 1])}, chance {percent(r / (len(x) - 1))}). Its alignment with the "
            f"labels is {aligned:.2f}, {more} the {rival:.2f} of the inputs’ kernel xᵀx′, which learns nothing.")
    how = ("Share of the labels’ squared length, their mean taken off, in the span of the first eigenvectors of the "
           "centred kernel. Alignment: the cosine between the kernel and YYᵀ, both centred. Cortes, Mohri and "
           "Rostamizadeh (2012).")
    return [Finding("Tangent kernel and labels", text, how, _drawn_shares(shares, others))]


def varied(labels: Tensor) -> Tensor:
    """Labels less their mean.

    Parameters
    ----------
    labels
        Shape ``(n, k)``.

    Returns
    -------
    Tensor
        The same shape.

    Raises
    ------
    ValueError
        If nothing is left.
    """
    y = labels - labels.mean(0)
    if not y.any():
        raise ValueError("all labels are alike")
    return y


def curvature(given: Given) -> list[Finding]:
    """Sharpness and trace of the Hessian, and the loss along its first direction.

    Parameters
    ----------
    given
        The network and the samples.

    Returns
    -------
    list[Finding]
        One.
    """
    weights = sum(p.numel() for p in given.params.values())
    steps = int(min(40, max(10, 2e8 // weights)))  # as many vectors are held
    top = observe.sharpness(given.loss, given.params, steps=steps)
    trace = observe.hessian_trace(given.loss, given.params)
    low, high = trace.interval
    text = (f"The largest eigenvalue of the loss’s Hessian is {number(top.value)} (residual {number(top.residual)}), "
            f"and its trace is {number(trace.value)} (95 % interval {number(low)} to {number(high)}).")
    if top.value > 0:
        text += (f" Gradient descent with a rate above 2/λ = {number(2 / top.value)} grows along that direction, as "
                 "far as the loss is quadratic.")
    with derivable():
        gradient = grad(given.loss)(given.params)
    if any(g.any() for g in gradient.values()):
        along = observe.curvature_along(given.loss, given.params, gradient)
        text += f" Along the gradient, the curvature is {number(along)}."
    how = ("Lanczos’ method with full reorthogonalisation; an eigenvalue lies within the residual. The trace is "
           "Hutchinson’s, with 32 draws and its 95 % interval. Dashed: the quadratic with this slope and eigenvalue. "
           "Cohen et al. (2021).")
    return [Finding("Curvature of the loss", text, how, _drawn_loss(given, top, gradient))]


def first_of(module: nn.Module, x: Tensor) -> tuple[str, Layers]:
    """The linear or convolutional layer that is called first.

    Parameters
    ----------
    module
        The network.
    x
        Samples.

    Returns
    -------
    tuple[str, nn.Module]
        Its name, and the layer.

    Raises
    ------
    ValueError
        If there is none, it is called more than once, or it is convolutional by groups.
    """
    called: list[tuple[str, Layers]] = []

    def keep(name: str, part: Layers) -> Callable:
        return lambda *_: called.append((name or type(part).__name__, part))

    hooks = [part.register_forward_hook(keep(name, part)) for name, part in module.named_modules()
             if isinstance(part, Layers)]
    try:
        with torch.no_grad(), derivable():
            module(x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    if not called:
        raise ValueError("the network calls no linear or convolutional layer")
    name, layer = called[0]
    if sum(part is layer for _, part in called) > 1 or getattr(layer, "groups", 1) > 1 or \
            getattr(layer, "transposed", False):
        raise ValueError(f"its first layer, {name}, is called more than once, transposed or split into groups")
    return name, layer


def gradients_of(given: Given, layer: Layers) -> Tensor:
    """Mean outer product of the gradients of the network's outputs at the outputs of a layer, summed over its places.

    Parameters
    ----------
    given
        The network and the samples.
    layer
        Linear or convolutional, and called once.

    Returns
    -------
    Tensor
        Shape ``(m, m)`` for a layer of m neurons or channels.
    """
    axis = -1 if isinstance(layer, nn.Linear) else 2  # of the channels, behind that of the network's outputs
    shape: list[tuple[int, ...]] = []
    hook = layer.register_forward_hook(lambda _module, _inputs, out: shape.append(tuple(out.shape)))
    outputs(given.f, given.params, given.x[:1])
    hook.remove()

    def shifted(shift: Tensor, one: Tensor) -> Tensor:
        def add(_module: nn.Module, _inputs: tuple, out: Tensor) -> Tensor:
            return out + shift

        moved = layer.register_forward_hook(add)
        try:
            return outputs(given.f, given.params, one[None]).reshape(-1)
        finally:
            moved.remove()

    zero = torch.zeros(shape[0]).to(next(iter(given.params.values())))
    jacobian = vmap(jacrev(shifted), in_dims=(None, 0))
    total = zero.new_zeros(())
    for some in given.x.split(_chunk(zero.numel() * given.labels.shape[1])):
        rows = jacobian(zero, some).flatten(0, 1).movedim(axis, -1).flatten(0, -2)
        total = total + rows.T @ rows
    return total / len(given.x)


def spectrum(matrix: Tensor, empty: str) -> np.ndarray:
    """Eigenvalues of a positive semidefinite matrix over their sum, the largest first.

    Parameters
    ----------
    matrix
        Shape ``(n, n)``.
    empty
        What a matrix of zeros means.

    Returns
    -------
    ndarray
        Shape ``(n,)``.

    Raises
    ------
    ValueError
        If the matrix is 0.
    """
    values = np.clip(torch.linalg.eigvalsh(matrix.double().cpu()).flip(0).numpy(), 0, None)
    if not values[0] > 0:
        raise ValueError(empty)
    return values / values.sum()


def effective(values: np.ndarray) -> float:
    """Effective number of directions of a spectrum, 1/Σp² with p the shares.

    Parameters
    ----------
    values
        Shares, which sum to 1.

    Returns
    -------
    float
        From 1 to how many there are.
    """
    return float(1 / np.square(values).sum())


def overlaps(one: Tensor, other: Tensor, most: int) -> np.ndarray:
    """How much the spans of the first r eigenvectors of two matrices share, for r from 1.

    Parameters
    ----------
    one, other
        Symmetric, shape ``(n, n)``.
    most
        The largest r.

    Returns
    -------
    ndarray
        From 0 to 1, shape ``(most,)``.
    """
    first, second = (torch.linalg.eigh(m.double().cpu())[1].flip(1)[:, :most] for m in (one, other))
    shared = (first.T @ second).square()
    return np.array([shared[:r, :r].sum().item() / r for r in range(1, most + 1)])


def labels_along(tangent: Tensor, y: Tensor) -> np.ndarray:
    """Share of the labels in the span of the first eigenvectors of a centred kernel, by their number.

    Parameters
    ----------
    tangent
        Kernel, shape ``(n, n)``.
    y
        Labels of mean 0, shape ``(n, k)``.

    Returns
    -------
    ndarray
        Rising to 1, shape ``(n,)``.
    """
    along = torch.linalg.eigh(centred_kernel(tangent.double().cpu()))[1].flip(1).T @ y.double().cpu()
    lengths = along.square().sum(1)
    return (lengths.cumsum(0) / lengths.sum()).numpy()


def number(value: float) -> str:
    """A number with three digits, as one writes it.

    Parameters
    ----------
    value
        The number.

    Returns
    -------
    str
        With a true minus, and powers of ten where they are shorter.

    Examples
    --------
    >>> number(-0.01234), number(12345.0), number(3.2e-7), number(0.0)
    ('−0.0123', '12300', '3.2 × 10⁻⁷', '0')
    """
    if not math.isfinite(value):
        return "not finite"
    if value and not 1e-3 <= abs(value) < 1e5:
        digits, _, power = f"{value:.2e}".partition("e")
        raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{float(digits):g} × 10{raised}".replace("-", "−")
    return f"{float(f'{value:.3g}'):.10g}".replace("-", "−")


def percent(value: float) -> str:
    """A share in per cent.

    Parameters
    ----------
    value
        The share.

    Returns
    -------
    str
        With two digits.

    Examples
    --------
    >>> percent(0.4567), percent(0.00123), percent(-0.03), percent(1.0)
    ('46 %', '0.12 %', '−3 %', '100 %')
    """
    return (f"{100 * value:.0f} %" if abs(value) >= 0.0995 else f"{100 * value:.2g} %").replace("-", "−")


def _chunk(numbers: int) -> int:
    """How many samples' Jacobians may be held at once."""
    return int(min(256, max(1, ROOM // max(1, numbers))))


@styled
def _drawn_spectrum(values: np.ndarray, name: str) -> Figure:
    """A spectrum on two logarithmic axes, without what is zero up to rounding."""
    kept = values[values > 1e-7]  # float32 gives no smaller ones
    fig, (ax,) = panels()
    ax.plot(range(1, len(kept) + 1), kept, "o-", color=SIGNAL, markersize=4, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="rank", ylabel=f"{name},\nshare of the sum")
    ax.set_xlim(0.8, max(len(kept), 2) * 1.25)
    if len(kept) == 1:
        ax.set_ylim(0.1, 2)
    log_ticks(ax)
    return fig


@styled
def _drawn_overlaps(shared: np.ndarray, size: int) -> Figure:
    """What first directions share, beside chance."""
    ranks = np.arange(1, len(shared) + 1)
    fig, (ax,) = panels()
    ax.plot(ranks, shared, "o-", color=SIGNAL, linewidth=1, label="feature matrix and WᵀW")
    ax.plot(ranks, ranks / size, ":", color=CHANCE, linewidth=1.5, label="chance")
    ax.set(xlabel="first directions of each, r", ylabel="shared squared length", ylim=(0, 1.05), xticks=ranks)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9)
    return fig


@styled
def _drawn_shares(shares: np.ndarray, others: np.ndarray) -> Figure:
    """How much of the labels the first directions of two kernels hold."""
    n = len(shares) - 1  # the last direction is the mean's
    ranks = np.arange(1, n + 1)
    fig, (ax,) = panels()
    ax.plot(ranks, shares[:n], color=SIGNAL, label="tangent kernel")
    ax.plot(ranks, others[:n], "--", color=NOISE, label="inputs’ kernel xᵀx′")
    ax.plot(ranks, ranks / n, ":", color=CHANCE, linewidth=1.5, label="chance")
    ax.set(xscale="log", xlabel="first directions", ylabel="share of the labels", ylim=(0, 1.05))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    log_ticks(ax)
    fig.legend(loc="outside lower center", ncols=3, fontsize=9)
    return fig


@styled
def _drawn_loss(given: Given, top: observe.TopEigenvalue, gradient: dict[str, Tensor], points: int = 41) -> Figure:
    """The loss along the first eigenvector and along a random direction, over a length of both sides."""
    here = given.loss(given.params).item()
    slope = sum((gradient[name] * v).sum() for name, v in top.vector.items())
    assert isinstance(slope, Tensor)
    scale = max(here, 1e-12)
    reach = math.sqrt(2 * scale / abs(top.value)) if top.value else 1.0  # where the quadratic has doubled the loss
    steps = np.linspace(-reach, reach, points)
    fig, (ax,) = panels()
    for vector, look in ((top.vector, (SIGNAL, "-", "first direction")), (_random(given), (NOISE, "-.", "random one"))):
        ax.plot(steps, [_at(given, vector, step) for step in steps], color=look[0], linestyle=look[1], label=look[2])
    ax.plot(steps, here + slope.item() * steps + top.value * steps**2 / 2, "--", color=THEORY, linewidth=1.3,
            label="quadratic")
    ax.set(xlabel="distance along the direction", ylabel=f"{given.loss_name} loss")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9)
    return fig


@torch.no_grad()
def _at(given: Given, vector: dict[str, Tensor], step: float) -> float:
    """The loss at some distance from the parameters."""
    return given.loss({name: p + step * vector[name] for name, p in given.params.items()}).item()


def _random(given: Given) -> dict[str, Tensor]:
    """A random direction of length 1."""
    drawn = {name: rng.normal(tuple(p.shape), 0, f"direction of {name}").to(p) for name, p in given.params.items()}
    length = sum(v.square().sum() for v in drawn.values()) ** 0.5
    return {name: v / length for name, v in drawn.items()}
