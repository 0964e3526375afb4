"""The coordinate check: by how much does each layer move in training, as a power of the width?"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import xarray as xr
from torch import Tensor, nn

from flbook import fits
from flbook.domains import Count, checked_arguments
from flbook.observe.functions import derivable

FLAT = 0.1  # exponents nearer to 0 count as none: at widths of some hundred, corrections to the limit are as large


class CoordinateCheck(NamedTuple):
    """What a coordinate check finds."""

    moved: xr.DataArray  # root mean square change of a layer's outputs, dimensions (layer, width, seed)
    exponents: dict[str, fits.Fit]  # of it in the width, one a layer
    verdict: str  # a sentence a layer


@checked_arguments
def coordinate_check(
    make: Callable[[int, int], nn.Module],
    widths: Sequence[int],
    rule: Callable[[nn.Module, int], torch.optim.Optimizer],
    loss: Callable[[nn.Module], Tensor],
    x: Tensor,
    steps: Count = 1,
    seeds: Sequence[int] = (0, 1, 2, 3),
) -> CoordinateCheck:
    r"""Train networks of several widths for a few steps, and fit how the change of each layer's outputs scales.

    .. math:: \Delta h_l(x) = h_l(x; \theta_t) - h_l(x; \theta_0), \qquad
              \sqrt{E\,(\Delta h_l)^2} \sim \text{width}^{\,s_l}

    Where :math:`s_l = 0` a layer moves by the same at every width; where it is negative it stands still in wide
    networks, which then are kernel methods; where it is positive, wide networks explode at this rate.

    Parameters
    ----------
    make
        Called with a width and a seed, returns a network. Its layers are the modules that hold parameters themselves.
    widths
        At least two.
    rule
        Called with the network and its width, returns the optimizer, whose rates may depend on both.
    loss
        Of the network, one number; it knows its data.
    x
        Inputs on which the outputs of the layers are compared.
    steps
        Training steps.
    seeds
        Handed to `make`, at least two.

    Returns
    -------
    CoordinateCheck
        Changes, exponents with 95 % intervals over the seeds, and what they say.

    Raises
    ------
    ValueError
        If there are not two widths or seeds, or two networks have other layers.

    Source: Yang and Hu (2021); Yang et al. (2022), appendix on the coordinate check.

    Examples
    --------
    >>> def make(width, seed):
    ...     torch.manual_seed(seed)
    ...     return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))
    >>> x = torch.eye(4)
    >>> found = coordinate_check(make, [64, 256], lambda net, width: torch.optim.SGD(net.parameters(), lr=1 / width),
    ...                          lambda net: (net(x)[:, 0] - x[:, 0]).square().mean(), x)
    >>> list(found.exponents), found.moved.dims
    (['0', '2'], ('layer', 'width', 'seed'))
    """
    if len(set(widths)) < 2 or len(set(seeds)) < 2:
        raise ValueError(f"an exponent needs at least two widths and two seeds; got {widths} and {seeds}")
    found = [[_change(make(width, seed), width, rule, loss, x, steps) for seed in seeds] for width in widths]
    layers = list(found[0][0])
    if any(list(one) != layers for row in found for one in row):
        raise ValueError("all networks must have the same layers, by name")
    moved = xr.DataArray([[[one[layer] for one in row] for row in found] for layer in layers],
                         {"layer": layers, "width": list(widths), "seed": list(seeds)}, ("layer", "width", "seed"),
                         attrs={"long_name": "root mean square change of a layer's outputs", "units": "1"})
    exponents = {layer: fits.exponent(moved.sel(layer=layer, drop=True).transpose("width", "seed"), "width")
                 for layer in layers}
    return CoordinateCheck(moved, exponents, "\n".join(_said(*item) for item in exponents.items()))


def _change(module: nn.Module, width: int, rule: Callable, loss: Callable, x: Tensor, steps: int) -> dict[str, float]:
    """The change of the outputs of each layer by a few steps."""
    before, optimizer = _outputs(module, x), rule(module, width)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(module).backward()
        optimizer.step()
    after = _outputs(module, x)
    return {name: (after[name] - h).square().mean().sqrt().item() for name, h in before.items()}


@torch.no_grad()
def _outputs(module: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The outputs of every module that holds parameters itself, in the order in which they are called."""
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable:
        def hook(_module: nn.Module, _inputs: tuple, output: Any) -> None:
            first = output[0] if isinstance(output, tuple) else output  # attention returns its weights beside it
            if isinstance(first, Tensor):
                kept[name] = first.clone()

        return hook

    hooks = [part.register_forward_hook(keep(name or type(part).__name__))
             for name, part in module.named_modules() if any(True for _ in part.parameters(recurse=False))]
    try:
        with derivable():  # fused, a transformer would not call its layers
            module(x)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def _said(layer: str, fit: fits.Fit) -> str:
    """The exponent of a layer, and what it means."""
    low, high = fit.interval
    if -FLAT <= fit.value <= FLAT:
        meaning = "moves alike at every width"
    else:
        meaning = "explodes with the width" if fit.value > 0 else "stands still in wide networks"
    return f"{layer}: exponent {fit.value:+.2f} [{low:+.2f}, {high:+.2f}], {meaning}"
