r"""How sharp the loss of a network on digits is along its training, over its width.

Claim (derived in the lecture for linear networks of two layers): sharpness grows as far as the tangent kernel does,
by a share that does not depend on the width under the maximal update parametrisation, and falls like 1/n under the
neural tangent one.
"""

from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from flbook import observe
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation.rate_transfer.three_layers import ThreeLayers
from flbook.lectures.representation.rate_transfer.tuned_rates import SERIES
from flbook.runs import Experiment, Grid, among, axis, single_precision


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    series: tuple[str, ...] = axis(["tangent", "maximal"], "training")
    width: tuple[Count, ...] = axis([64, 128], "neurons N of a layer")
    seed: tuple[Natural, ...] = axis(range(2), "seed")
    step: tuple[Natural, ...] = axis([0, 25, 50, 100, 200], "step")
    samples: Count = 100
    rate: Positive = 1 / 128
    label: Positive = 1.0  # size of a centred one-hot label
    base: Count = 64

    def check(self) -> None:
        """Refuse training that is not known, and steps out of order: the first is the start, the last the end."""
        among("series", self.series, SERIES)
        if list(self.step) != sorted(set(self.step)):
            raise ValueError(f"step must increase, as `rise` compares the last with the first; got {self.step}")


experiment = Experiment(
    Setting, version=2, loops=("series", "width", "seed", "step"), stored="longer",
    gives={"sharpness": ("sharpness λ, for rates η", "1"), "loss": ("training loss", "1")},
    presets={
        "tiny": ("Two narrow networks, a few steps", dict(width=(8, 16), seed=(0,), step=(0, 3), samples=10, base=8)),
        "longer": ("Four widths, ten seeds", dict(width=(64, 128, 256, 512), seed=tuple(range(10)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one network for so many steps, always from its start, and look at its Hessian."""
    parametrisation, rule, loss, *_ = SERIES[s.series]
    digits = ten_digits(s.samples, s.seed)
    x, classes = digits.x.flatten(1).float().to(device), digits.y.to(device)
    net = ThreeLayers(s.width, parametrisation, rule, loss, s.base, label=s.label)
    start = [w.to(device) for w in net.start(x.shape[-1], 10, s.seed)]
    weights = [w[0] for w in net.trained(start, x, classes, torch.tensor([s.rate], device=device), s.step)]
    f_0 = net.outputs(start, x)
    value = net.value(net.outputs(weights, x) - f_0, classes)
    return {"sharpness": sharpness(net, weights, f_0, x, classes), "loss": value}


run = experiment.run


def sharpness(net: ThreeLayers, weights: list[Tensor], f_0: Tensor, x: Tensor, classes: Tensor) -> Tensor:
    r"""The largest eigenvalue of the Hessian in the coordinates :math:`w/\sqrt{m^r}`, in which every rate is eta."""
    roots = [net.ratio ** (r / 2) for r in net.parametrisation.rates(net.rule)]
    params = {str(k): w / root for k, (w, root) in enumerate(zip(weights, roots, strict=True))}

    def loss(params: dict[str, Tensor]) -> Tensor:
        """The loss that descent sees, at weights in these coordinates."""
        return net.descended(net.outputs([params[str(k)] * root for k, root in enumerate(roots)], x) - f_0, classes)

    return torch.tensor(observe.sharpness(loss, params, steps=20, tol=3e-3).value)


def rise(found: xr.Dataset) -> xr.DataArray:
    """The share by which sharpness grew from the first step to the last."""
    path = found.sharpness
    return path.isel(step=-1, drop=True) / path.isel(step=0, drop=True) - 1
