r"""The loss path kernel of a training run, and what it says about the gap between training and test loss.

Claims (Chen et al. 2023; Chen et al. 2025): along the gradient flow the loss of every sample is its start less
the mean of the loss path kernel K over the training set, so :math:`L_S(0) - L_S(T) = n^{-2}\sum_{ij} K_{ij}`. The
kernel's ball bounds the gap by :math:`\frac2n\sqrt{(L_S(0) - L_S(T))\,\mathrm{tr} K}` up to a term of confidence, and
the bound follows the gap as labels become noise.

Beside it: the frozen tangent kernel's bound, the bound of the distance travelled, and that of the norms.
Differs from the papers: small digits and small samples, tanh, and only the first layer is trained.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.data.images import digits
from flbook.domains import Count, Natural, Positive, Probability, Range
from flbook.dynamics.tangent_kernel import neuron_kernel
from flbook.lectures.representation.loss_path_kernel.path_kernel import (
    Probe,
    ball_bound,
    loss_path,
    resampled_bound,
    trace,
)
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import RedrawnLabels
from flbook.models.two_layer import TwoLayer
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.training.losses import logistic
from flbook.training.network import Training

BOUNDS = ("lpk", "ntk", "distance", "norm")
LABELS = {
    "train_loss": "training loss", "train_error": "training error", "test_loss": "test loss",
    "gap": "gap: test less training loss", "explained": "mean of the loss path kernel",
    "own": "own work tr K / n²", "lpk": "loss path kernel's bound",
    "ntk": "frozen tangent kernel's bound", "distance": "distance's bound", "norm": "norms' bound",
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: sixty images."""

    power: tuple[float, ...] = axis([0.5, 1.0], "power κ of the output weights")  # N^-κ, lazy and mean field
    portion: tuple[Probability, ...] = axis([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], "portion of redrawn labels")  # test too
    n: tuple[Count, ...] = axis([60], "training images n")
    seed: tuple[Natural, ...] = axis(range(20), "seed")
    first: Annotated[int, Range(0, 9)] = 1  # the two digits
    second: Annotated[int, Range(0, 9)] = 7
    width: Count = 64  # neurons N
    time: Positive = 32.0  # flow time
    steps: Count = 100

    def check(self) -> None:
        """Refuse an odd width, one digit twice, and samples that leave no image to test on."""
        TwoLayer(1, self.width)
        for n in self.n:
            self.data(n)

    def data(self, n: int) -> RedrawnLabels:
        """The images."""
        return RedrawnLabels(digits((self.first, self.second)), n)

    @property
    def times(self) -> list[float]:
        """Stops of the integration, closest at the start, where the loss is steepest."""
        return [self.time * (k / self.steps) ** 1.5 for k in range(self.steps + 1)]

    @property
    def recorded(self) -> list[int]:
        """The stops that are kept: twelve, at about equal ratios."""
        return sorted({max(1, round(self.steps ** (k / 11))) for k in range(12)})

    @property
    def moments(self) -> list[float]:
        """The flow times that are kept."""
        return [self.times[k] for k in self.recorded]


AXES = ("time", "power", "portion", "n", "seed")
experiment = Experiment(
    Setting, version=1, loops=("n",), chunk={"n": 1, "seed": 5}, stored="longer",
    gives={name: (text, "fraction" if name == "train_error" else "nats", AXES) for name, text in LABELS.items()},
    beside={"time": (lambda setting: setting.moments, "flow time")},
    presets={
        "tiny": ("A short path of eight neurons", dict(
            portion=(0.0, 0.5, 1.0), n=(12, 20), seed=(0, 1, 2), width=8, time=4.0, steps=40)),
        "longer": ("Three sample sizes, eleven portions, forty seeds", dict(
            portion=tuple(k / 10 for k in range(11)), n=(30, 60, 120), seed=tuple(range(40)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Follow the runs on samples of one size, through the moments that are kept."""
    training = problem(s, s.n, device)
    fresh = s.data(s.n).draw_test(s.portion, s.seed)
    test, frozen = (fresh.x.to(training.x), fresh.y.to(training.x)), frozen_bound(training)
    rows = [record(training, test, point, frozen) for k, point in enumerate(loss_path(training, s.times))
            if k in s.recorded]
    return {name: torch.stack([row[name] for row in rows]).double() for name in LABELS}


run = experiment.run


def problem(setting: Setting, n: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Training:
    """The training problems of all (power, portion, seed), in that order; all of them start from the same weights."""
    sample = setting.data(n).draw(setting.portion, setting.seed)
    scale = torch.tensor([setting.width**-p for p in setting.power])
    scale = scale[:, None, None].expand(-1, len(setting.portion), len(setting.seed))
    model = TwoLayer(sample.x.shape[-1], setting.width, scale, dtype=dtype).to(devices.device(device))
    return Training(model, sample.x, sample.y, logistic)


def frozen_bound(training: Training) -> Tensor:
    r"""The tangent kernel's: its ball that holds the interpolating function, :math:`B^2 = y^\top \Theta^{-1} y`."""
    kernel = neuron_kernel(training.model, training.start()["w"], training.x).double()
    y = training.observed.double().expand(kernel.shape[:-1])
    return ball_bound((y * torch.linalg.solve(kernel, y[..., None])[..., 0]).sum(-1), kernel)


def distance_bound(training: Training, w: Tensor) -> Tensor:
    """The tangent kernel's again, of the ball that the weights have travelled: B their distance, in units of flow."""
    start = training.start()["w"]
    kernel = neuron_kernel(training.model, start, training.x)
    return ball_bound((w - start).square().sum((-2, -1)) / training.model.step(1.0), kernel)


def norm_bound(training: Training, w: Tensor) -> Tensor:
    r"""Of all networks with such norms: :math:`4\, c \sum_i \|w_i\| \max_j \|x_j\| / \sqrt n`."""
    n, longest = training.x.shape[-2], training.x.norm(dim=-1).amax(-1)
    return 4 * training.model.scale * w.norm(dim=-1).sum(-1) * longest / math.sqrt(n)


def record(training: Training, test: tuple[Tensor, Tensor], point, frozen: Tensor) -> dict[str, Tensor]:
    """Losses, what the kernel says of them, and the four bounds, at one moment of the flow."""
    w, kernel, n = point.params["w"], point.kernel, training.x.shape[-2]
    train, start = training.train_loss(point.params), training.train_loss(training.start())
    test_loss = training.loss(training.predict(point.params, test[0]), test[1]).mean(-1)
    wrong = (training.predict(point.params) * training.observed <= 0).to(w).mean(-1)
    return {
        "train_loss": train, "train_error": wrong, "test_loss": test_loss, "gap": test_loss - train,
        "explained": kernel.mean((-2, -1)), "own": trace(kernel) / n**2,
        "lpk": ball_bound(start - train, kernel), "ntk": frozen.to(w),
        "distance": distance_bound(training, w), "norm": norm_bound(training, w),
    }


@experiment.also
def resampled(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """The bound that retrains on other samples, for the first seed's sample, with all seeds' samples as S'.

    Dimensions (power, portion), first n; beside it the bound that the sample's own run gives.
    """
    training = problem(setting, setting.n[0], device)
    own = Probe(training.x[:1], training.observed[:, :1], within=True)
    *_, end = loss_path(training, setting.times, own)
    fall = training.train_loss(training.start()) - training.train_loss(end.params)
    losses = training.loss(training.predict(end.params, own.x), own.y)
    found = {
        "resampled": resampled_bound(end.kernel, fall, losses),
        "lpk": ball_bound(fall[..., 0], end.kernel[..., 0, :, :]),
    }
    texts, dims = {"resampled": "bound by retraining", "lpk": LABELS["lpk"]}, ("power", "portion")
    return labelled({name: (dims, value, texts[name], "nats") for name, value in found.items()},
                    setting.coordinates(*dims))


@experiment.also
def explain(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Every test image's loss along one run, computed and explained, and what each training image did for it.

    Dimensions (time, image) and (image, sample); first power, portion, n and seed, in double precision.
    """
    one = setting.thinned(power=setting.power[:1], portion=setting.portion[:1], seed=setting.seed[:1])
    training, data = problem(one, one.n[0], device, torch.float64), one.data(one.n[0])
    train, fresh = data.draw(one.portion, one.seed), data.draw_test(one.portion, one.seed)
    probe = Probe(fresh.x.to(training.x), fresh.y.to(training.x))
    losses, explained, start = [], [], None
    for k, point in enumerate(loss_path(training, one.times, probe)):
        loss = training.loss(training.predict(point.params, probe.x), probe.y).flatten()
        start = loss if k == 0 else start
        if k in one.recorded:
            losses.append(loss)
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
    return labelled(table, {"time": ("time", one.moments, "flow time")})


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a longer run: every seed of the end, and the means over time, in single precision."""
    with xr.set_options(keep_attrs=True):
        end = dataset.isel(time=-1)
        path = dataset[["gap", *BOUNDS]].mean("seed").rename({name: f"{name}_path" for name in ("gap", *BOUNDS)})
    return xr.merge([end.drop_vars("time"), path]).astype("float32")
