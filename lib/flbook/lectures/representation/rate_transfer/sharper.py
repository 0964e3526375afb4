r"""How much sharper the loss of a network on digits becomes by training, over its width.

Claim (derived in the lecture for linear networks of two layers): sharpness grows as far as the tangent kernel does,
by a share that does not depend on the width under the maximal update parametrisation, and falls like 1/n under the
neural tangent one.
"""

from dataclasses import dataclass

import torch
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
    samples: Count = 100
    rate: Positive = 1 / 128
    steps: Count = 200
    label: Positive = 1.0  # size of a centred one-hot label
    base: Count = 64

    def check(self) -> None:
        """Refuse training that is not known."""
        among("series", self.series, SERIES)


experiment = Experiment(
    Setting, version=1, loops=("series", "width", "seed"), stored="longer",
    gives={"before": ("sharpness at the start, for rates η", "1"), "after": ("sharpness at the end, for rates η", "1"),
           "loss": ("training loss at the end", "1")},
    presets={
        "tiny": ("Two narrow networks, a few steps", dict(width=(8, 16), seed=(0,), samples=10, steps=3, base=8)),
        "longer": ("Four widths, ten seeds", dict(width=(64, 128, 256, 512), seed=tuple(range(10)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train one network, and look at its Hessian before and after."""
    parametrisation, rule, loss, *_ = SERIES[s.series]
    digits = ten_digits(s.samples, s.seed)
    x, classes = digits.x.flatten(1).float().to(device), digits.y.to(device)
    net = ThreeLayers(s.width, parametrisation, rule, loss, s.base, label=s.label)
    start = [w.to(device) for w in net.start(x.shape[-1], 10, s.seed)]
    end = net.trained(start, x, classes, torch.tensor([s.rate], device=device), s.steps)
    f_0 = net.outputs(start, x)
    before, after = (sharpness(net, weights, f_0, x, classes) for weights in (start, [w[0] for w in end]))
    return {"before": before, "after": after, "loss": net.value(net.outputs(end, x)[0] - f_0, classes)}


run = experiment.run


def sharpness(net: ThreeLayers, weights: list[Tensor], f_0: Tensor, x: Tensor, classes: Tensor) -> Tensor:
    r"""The largest eigenvalue of the Hessian in the coordinates :math:`w/\sqrt{m^r}`, in which every rate is eta."""
    roots = [net.ratio ** (r / 2) for r in net.parametrisation.rates(net.rule)]
    params = {str(k): w / root for k, (w, root) in enumerate(zip(weights, roots, strict=True))}

    def loss(params: dict[str, Tensor]) -> Tensor:
        """The loss that descent sees, at weights in these coordinates."""
        return net.descended(net.outputs([params[str(k)] * root for k, root in enumerate(roots)], x) - f_0, classes)

    return torch.tensor(observe.sharpness(loss, params, steps=20, tol=3e-3).value)


def rise(found) -> object:
    """The share by which sharpness grew."""
    return found.after / found.before - 1
