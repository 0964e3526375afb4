r"""The loss path kernel of a training run, and what it says about the gap between training and test loss.

Claims (Chen et al. 2023; Chen et al. 2025): along the gradient flow the loss of every sample is its start less
the mean of the loss path kernel K over the training set, so :math:`L_S(0) - L_S(T) = n^{-2}\sum_{ij} K_{ij}`. The
kernel's ball bounds the gap by :math:`\frac2n\sqrt{(L_S(0) - L_S(T))\,\mathrm{tr} K}` up to a term of confidence, and
the bound follows the gap as labels become noise. Ours: at a fixed time it does so for small samples only.

Beside it: the frozen tangent kernel's bound, that of the neurons' distances, and half of the sample held out.
Differs from the papers: small digits and small samples, tanh, and only the first layer is trained.
"""

import math
from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive, Probability
from flbook.dynamics.tangent_kernel import neuron_kernel
from flbook.lectures.representation.loss_path_kernel.path_kernel import (
    Probe,
    ball_bound,
    loss_path,
    resampled_bound,
)
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import Redrawn, RedrawnLabels, even_or_odd
from flbook.models.two_layer import TwoLayer
from flbook.runs import Experiment, Grid, axis, labelled, single_precision
from flbook.training.losses import logistic
from flbook.training.network import Training

LABELS = {
    "train_loss": "training loss", "test_loss": "test loss", "gap": "gap: test less training loss",
    "train_error": "training error", "own": "own work tr K / n²", "lpk": "loss path kernel's bound",
    "ntk": "frozen tangent kernel's bound",
    "distance": "bound by the neurons' distances", "held_out": "loss on the half held out",
}  # fmt: skip
PACE = 0.032  # stops of the integration at PACE k^(3/2): closest at the start, where the loss is steepest
SHOWN = 240  # test images that `explain` follows


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: all labels true, or all of them coins."""

    time: tuple[Positive, ...] = axis([32.0], "flow time")
    portion: tuple[Probability, ...] = axis([0.0, 1.0], "portion of redrawn labels")  # in the test set, too
    n: tuple[Count, ...] = axis([30, 60, 120, 240], "training images n")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    width: Count = 64  # neurons N

    def check(self) -> None:
        """Refuse an odd width, and samples that leave no image to test on."""
        TwoLayer(1, self.width)
        for n in self.n:
            self.data(n)

    def data(self, n: int) -> RedrawnLabels:
        """The images."""
        return RedrawnLabels(even_or_odd(), n)

    @property
    def stops(self) -> list[float]:
        """Where the integration stops: at the times that are asked for, and at a fixed sequence between them."""
        steps = math.ceil((max(self.time) / PACE) ** (2 / 3))
        return sorted({*self.time, *(PACE * k**1.5 for k in range(steps))})


experiment = Experiment(
    Setting, version=2, loops=("n",), chunk={"n": 1, "seed": 5}, stored="longer",
    gives={name: (text, "fraction" if name == "train_error" else "nats") for name, text in LABELS.items()},
    presets={
        "tiny": ("A short path of eight neurons", dict(
            time=(1.0, 4.0), portion=(0.0, 0.5, 1.0), n=(12, 20), seed=(0, 1, 2), width=8)),
        "moments": ("One sample size, followed in time", dict(
            time=(0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), n=(60,))),
        "coins": ("Many images and a short time, where coins have a closed form", dict(
            time=(2.0,), n=(960,), seed=tuple(range(24)))),
        "longer": ("Six sample sizes, six portions, three times", dict(
            time=(8.0, 32.0, 128.0), portion=tuple(k / 5 for k in range(6)), n=(30, 60, 120, 240, 480, 960),
            seed=tuple(range(20)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Follow the runs on samples of one size, and those on half of each sample."""
    training, fresh = problem(s, s.n, device), s.data(s.n).draw_test(s.portion, s.seed)
    first, second = halves(training)
    test, frozen = (fresh.x.to(training.x), fresh.y.to(training.x)), frozen_bound(training)
    whole, half = (loss_path(part, s.stops, diagonal=True) for part in (training, first))
    rows = []
    for point, other in zip(whole, half, strict=True):
        if point.time in s.time:
            rows.append(record(training, test, point, frozen) | {"held_out": mean_loss(training, other.params, second)})
    return {name: torch.stack([row[name] for row in rows]).double() for name in LABELS}


run = experiment.run


def problem(setting: Setting, n: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Training:
    """The training problems of all (portion, seed), in that order; all of them start from the same weights."""
    return mean_field(setting.data(n).draw(setting.portion, setting.seed), setting.width, device, dtype)


def mean_field(sample: Redrawn, width: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Training:
    """A mean-field network for each member of the sample, with the logistic loss."""
    scale = torch.full(sample.y.shape[:-1], 1 / width)
    model = TwoLayer(sample.x.shape[-1], width, scale, dtype=dtype).to(devices.device(device))
    return Training(model, sample.x, sample.y, logistic)


def halves(training: Training) -> tuple[Training, tuple[Tensor, Tensor]]:
    """A problem on every second sample, and the other samples: a part of redrawn labels is spread over both."""
    x, y = training.x, training.observed
    return Training(training.model, x[..., ::2, :], y[..., ::2], training.loss), (x[..., 1::2, :], y[..., 1::2])


def mean_loss(training: Training, params: dict[str, Tensor], samples: tuple[Tensor, Tensor]) -> Tensor:
    """Mean loss on other samples than those of the training."""
    return training.loss(training.predict(params, samples[0]), samples[1]).mean(-1)


def frozen_bound(training: Training) -> Tensor:
    r"""The tangent kernel's: its ball that holds the interpolating function, :math:`B^2 = y^\top \Theta^{-1} y`."""
    y = training.observed.double()  # (portion, seed, n); all portions have one kernel
    kernel = neuron_kernel(training.model, training.start()["w"][0], training.x).double()
    solved = torch.linalg.solve(kernel, y.movedim(0, -1)).movedim(-1, 0)
    return ball_bound((y * solved).sum(-1), kernel.diagonal(dim1=-2, dim2=-1))


def distance_bound(training: Training, w: Tensor) -> Tensor:
    r"""Of all networks with neurons as far from their start: :math:`2c\sum_i\|w_i-w_i(0)\|\,(\overline{x^2}/n)^{1/2}`.

    By contraction of the loss and of tanh, for distances that were fixed before the data were seen.
    """
    far = training.model.scale * (w - training.start()["w"]).norm(dim=-1).sum(-1)
    return 2 * far * (training.x.square().sum(-1).mean(-1) / training.x.shape[-2]).sqrt()


def record(training: Training, test: tuple[Tensor, Tensor], point, frozen: Tensor) -> dict[str, Tensor]:
    """Losses, each sample's own work, and three bounds, at one moment of the flow."""
    n = training.x.shape[-2]
    train, start = training.train_loss(point.params), training.train_loss(training.start())
    test_loss = mean_loss(training, point.params, test)
    wrong = (training.predict(point.params) * training.observed <= 0).to(train).mean(-1)
    return {
        "train_loss": train, "train_error": wrong, "test_loss": test_loss, "gap": test_loss - train,
        "own": point.kernel.sum(-1) / n**2, "lpk": ball_bound(start - train, point.kernel), "ntk": frozen.to(train),
        "distance": distance_bound(training, point.params["w"]),
    }  # fmt: skip


@experiment.also
def resampled(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The bound that retrains on other samples, for the first seed's sample, with all seeds' samples as S'.

    Dimension portion, first n and time; beside it the bound that the sample's own run gives, and the gap of that run.
    """
    one = setting.thinned(n=setting.n[:1], time=setting.time[:1])
    training, fresh = problem(one, one.n[0], device), one.data(one.n[0]).draw_test(one.portion, one.seed[:1])
    own = Probe(training.x[:1], training.observed[:, :1], within=True)
    *_, end = loss_path(training, one.stops, own)
    fall = training.train_loss(training.start()) - training.train_loss(end.params)
    losses = training.loss(training.predict(end.params, own.x), own.y)
    test = mean_loss(training, end.params, (fresh.x.to(training.x), fresh.y.to(training.x)))
    found = {
        "resampled": resampled_bound(end.kernel, fall, losses),
        "lpk": ball_bound(fall[..., 0], end.kernel[..., 0, :, :].diagonal(dim1=-2, dim2=-1)),
        "gap": test[..., 0] - losses[..., 0, :].mean(-1),
    }
    texts = {"resampled": "bound by retraining", "lpk": LABELS["lpk"], "gap": LABELS["gap"]}
    return labelled({name: ("portion", value, texts[name], "nats") for name, value in found.items()},
                    one.coordinates("portion"))  # fmt: skip


@experiment.also
def explain(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Losses of test images along one run, computed and explained, and what each training image did for them.

    Dimensions (time, image) and (image, sample); first portion, n and seed, in double precision.
    """
    one = setting.thinned(portion=setting.portion[:1], n=setting.n[:1], seed=setting.seed[:1])
    training, data = problem(one, one.n[0], device, torch.float64), one.data(one.n[0])
    train, fresh = data.draw(one.portion, one.seed), data.draw_test(one.portion, one.seed)
    fresh = Redrawn(fresh.x[:, -SHOWN:], fresh.y[..., -SHOWN:], fresh.clean[:, -SHOWN:])
    probe = Probe(fresh.x.to(training.x), fresh.y.to(training.x))
    losses, explained = [], []
    start = training.loss(training.predict(training.start(), probe.x), probe.y).flatten()
    for point in loss_path(training, one.stops, probe):
        if point.time in one.time:
            losses.append(training.loss(training.predict(point.params, probe.x), probe.y).flatten())
            explained.append(start - point.kernel.mean(-1).flatten())
    share = point.kernel.flatten(0, -3)[0] / one.n[0]
    table = {
        "loss": (("time", "image"), torch.stack(losses), "test loss", "nats"),
        "explained": (("time", "image"), torch.stack(explained), "start less kernel", "nats"),
        "share": (("image", "sample"), share, "loss taken off K/n", "nats"),
    }
    for name, some in (("image", fresh), ("sample", train)):
        table |= {
            f"x_{name}": ((name, "pixel"), some.x[0], "image, centred and scaled"),
            f"y_{name}": (name, some.y[0, 0], "label observed"),
            f"clean_{name}": (name, some.clean[0], "true label"),
        }
    return labelled(table, {"time": ("time", list(one.time), "flow time")})
