r"""One network at two scalings: lazy, where neurons stay and the kernel is frozen, and mean field, where they align.

Claim (Chizat, Oyallon and Bach 2019, Theorem 2.2): trained by gradient flow on :math:`R(\alpha h(w))/\alpha^2` for a
fixed time, from :math:`h(w_0) = 0`, the weights move by :math:`O(1/\alpha)`, and :math:`\alpha h` stays within
:math:`O(1/\alpha)` of its linearisation. A network of N neurons of output weight :math:`N^{-\kappa}` is
:math:`\alpha = N^{1-\kappa}` times the mean-field network, so relative to their size the weights move like
:math:`N^{-(1-\kappa)}`: 1/2 is lazy, 1 mean field. All are trained for the same flow time, not for the same steps.

Differs from the paper: only the first layer is trained, tanh in place of ReLU.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.domains import Count, Natural, Positive
from flbook.dynamics.tangent_kernel import kernel_descent, kernel_ridge, neuron_kernel, relative_change
from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher, TeacherSample
from flbook.models.two_layer import TwoLayer
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

MODELS = ("network", "tangent", "kernel", "frozen", "linear")
GIVES = {
    "train_error": ("training error", "fraction"),
    "test_error": ("test error", "fraction"),
    "moved": ("‖W(t) − W(0)‖ / ‖W(0)‖", "1"),
    "distance": ("‖W(t) − W(0)‖", "1"),
    "kernel_change": ("‖Θ(t) − Θ(0)‖ / ‖Θ(0)‖", "1"),
    "aligned": ("share of ‖W‖² on the teacher's directions", "fraction"),
    "nonlinearity": ("distance to the linearised network", "fraction"),
}
AXES = ("power", "width", "seed")
RIDGES = torch.logspace(-5, 3, 33, dtype=torch.float64)


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: four widths, twelve seeds."""

    power: tuple[float, ...] = axis([0.5, 0.75, 1.0], "power κ of the output weights")  # these are N^-κ
    width: tuple[Count, ...] = axis([64, 128, 256, 512], "neurons N")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 100  # training samples
    d: Count = 20
    directions: Count = 1  # K, of the teacher
    sharpness: Positive = 2.0
    start: Literal["paired", "centred", "plain"] = "paired"  # see TwoLayer
    lr: Positive = 1.0  # flow time of a step
    time: Positive = 60.0
    points: Count = 500  # fresh samples to measure the test error on

    def check(self) -> None:
        """Refuse an odd width, directions that do not fit, and a step longer than the training."""
        _ = self.teacher
        for width in self.width:
            TwoLayer(1, width)
        if self.steps < 1:
            raise ValueError(f"lr must be at most time; got lr={self.lr:g}, time={self.time:g}")

    @property
    def teacher(self) -> Teacher:
        """The target."""
        return Teacher(self.n, self.d, self.directions, self.sharpness, spread=self.directions > self.d)

    @property
    def steps(self) -> int:
        """Steps of gradient descent: the same flow time at every scaling."""
        return round(self.time / self.lr)


experiment = Experiment(
    Setting, version=1, loops=("width",), chunk={"width": 1, "seed": 3}, stored="longer",
    gives={name: (*about, ("model", *AXES) if name.endswith("error") else AXES) for name, about in GIVES.items()},
    beside={"model": (MODELS, "model")},
    presets={
        "tiny": ("Two scalings of two small networks", dict(
            power=(0.5, 1.0), width=(16, 64), seed=(0, 1, 2), n=20, d=5, lr=0.5, time=10.0, points=50)),
        "enlarged": ("One width, the output enlarged by α = 1, 2, 4, ..., 64: from mean field to far beyond lazy", dict(
            width=(64,), power=tuple(1 - k / 6 for k in range(7)))),
        "plane": ("Two dimensions and three directions, for pictures of every neuron", dict(
            power=(0.5, 1.0), width=(200,), seed=(0,), n=200, d=2, directions=3, time=300.0)),
        "longer": ("Eight widths up to 8192 and twenty seeds", dict(
            width=tuple(2**k for k in range(6, 14)), seed=tuple(range(20)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train the networks of one width to the end; errors of all models, of which a rival knows no power."""
    training = problem(s, s.width, device)
    fresh = fresh_samples(s, training)
    params = fit(training, rule(s, training), s.steps).params
    others = rivals(s, training, fresh)
    found = {quantity.name: quantity.of(params) for quantity in quantities(s, training, fresh)}
    for name, truth, place in (("train_error", training.observed, 0), ("test_error", fresh.y, 1)):
        errors = [error(outputs[place], truth).expand_as(found[name]) for outputs in others.values()]
        found[name] = torch.stack([found[name], *errors])
    tangent = others["tangent"][1]
    gap = (training.predict(params, fresh.x) - tangent).square().mean(-1).sqrt()
    return found | {"nonlinearity": gap / tangent.square().mean(-1).sqrt()}


run = experiment.run


def alpha(setting: Setting, width: int) -> xr.DataArray:
    """How many times the mean-field output each scaling is: N^(1 - κ)."""
    about = {"long_name": "output scale α", "units": "1"}
    return xr.DataArray([width ** (1 - p) for p in setting.power], dims="power", name="alpha", attrs=about)


def problem(setting: Setting, width: int, device: str = "cpu") -> Training:
    """The training problems of all (power, seed), in that order of ensemble axes."""
    data = setting.teacher.draw(setting.seed)
    scale = torch.tensor([width**-p for p in setting.power], dtype=torch.float64)[:, None]
    model = TwoLayer(setting.d, width, scale, setting.start, seed=setting.seed).to(devices.device(device))
    return Training(model, data.x, data.y, squared)


def rule(setting: Setting, training: Training) -> GradientDescent:
    """Gradient descent in flow time."""
    return GradientDescent(training.model.step(setting.lr))


def error(outputs: Tensor, y: Tensor) -> Tensor:
    """Mean squared error relative to the mean square of the target; 1 is what predicting 0 gives."""
    return (outputs - y).square().mean(-1) / y.square().mean(-1)


def quantities(setting: Setting, training: Training, fresh: TeacherSample) -> list[Quantity]:
    """What is recorded: errors, how far weights and kernel have moved, and what of the weights lies on the teacher."""
    w_0, y = training.start()["w"], training.observed
    basis = torch.linalg.qr(setting.teacher.u.to(training.x).T).Q
    kernel_0 = neuron_kernel(training.model, w_0, training.x)

    def kernel_change(params):
        return relative_change(neuron_kernel(training.model, params["w"], training.x), kernel_0)

    def aligned(params):
        w = params["w"]
        return torch.einsum("...kd,db->...kb", w, basis).square().sum((-2, -1)) / w.square().sum((-2, -1))

    of = {
        "train_error": lambda p: error(training.predict(p), y),
        "test_error": lambda p: error(training.predict(p, fresh.x), fresh.y),
        "moved": lambda p: relative_change(p["w"], w_0),
        "distance": lambda p: (p["w"] - w_0).square().sum((-2, -1)).sqrt(),
        "kernel_change": kernel_change,
        "aligned": aligned,
    }
    return [Quantity(name, value, (), *GIVES[name]) for name, value in of.items()]


def fresh_samples(setting: Setting, training: Training) -> TeacherSample:
    """Test samples on the network's device."""
    return TeacherSample(*(part.to(training.x) for part in setting.teacher.draw_test(setting.points, setting.seed)))


def rivals(setting: Setting, training: Training, fresh: TeacherSample) -> dict[str, tuple[Tensor, Tensor]]:
    """Outputs on training and on fresh samples of what learns no feature, each of shape (seed, n).

    tangent: the network's linearisation, trained for the same time; kernel: its kernel with the best ridge; frozen: the
    starting neurons as random features with the best ridge; linear: least squares. The best ridge is chosen on the
    fresh samples themselves, in favour of the rival.
    """
    w = training.start()["w"][0]
    x, y, both = training.x, training.observed, torch.cat([training.x, fresh.x], -2)
    kernel = neuron_kernel(training.model, w, both, x)
    features = training.model.activation(torch.einsum("...nd,...kd->...nk", both, w))
    random = torch.einsum("...nk,...pk->...np", features, features[..., : setting.n, :]) / w.shape[-2]
    line = torch.linalg.lstsq(x, y[..., None]).solution[..., 0]
    outputs = {
        "tangent": kernel_descent(kernel[..., : setting.n, :], kernel, y, setting.steps, setting.lr),
        "kernel": best_ridge(kernel, y, fresh.y),
        "frozen": best_ridge(random, y, fresh.y),
        "linear": torch.einsum("...d,...nd->...n", line, both),
    }
    return {name: (f[..., : setting.n], f[..., setting.n :]) for name, f in outputs.items()}


def line_then_curve(setting: Setting) -> Tensor:
    """Test error of each seed of a polynomial in the least-squares line, of the degree (up to 9) that is best there.

    The strongest of the rivals here: Gaussian samples show the direction of a monotone target to linear regression.
    """
    data, fresh = setting.teacher.draw(setting.seed), setting.teacher.draw_test(setting.points, setting.seed)
    line = torch.linalg.lstsq(data.x, data.y[..., None]).solution[..., 0]
    z, z_fresh = (torch.einsum("...d,...nd->...n", line, x) for x in (data.x, fresh.x))
    size, found = z.square().mean(-1, keepdim=True).sqrt(), []
    for degree in range(1, 10):
        powers, fresh_powers = ((at / size)[..., None] ** torch.arange(degree + 1) for at in (z, z_fresh))
        curve = torch.linalg.lstsq(powers, data.y[..., None]).solution
        found.append(error((fresh_powers @ curve)[..., 0], fresh.y))
    return torch.stack(found).amin(0)


def best_ridge(kernel: Tensor, y: Tensor, y_fresh: Tensor) -> Tensor:
    """Outputs on all samples, at the ridge whose error on the fresh ones is least for each member."""
    n = y.shape[-1]
    outputs = kernel_ridge(kernel[..., :n, :], kernel, y, RIDGES)
    best = error(outputs[..., n:], y_fresh[..., None, :]).argmin(-1)
    return torch.take_along_dim(outputs, best[..., None, None], -2)[..., 0, :]


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training over flow time at the first width; dimensions (time, power, seed), with the tangent model's error."""
    training = problem(setting, setting.width[0], device)
    fresh = fresh_samples(setting, training)
    at = sorted({round(setting.steps ** (k / 30)) for k in range(31)} | {0})
    record = quantities(setting, training, fresh)
    history = fit(training, rule(setting, training), setting.steps, record, ("power", "seed"), at).history
    w = training.start()["w"][0]
    kernel, cross = neuron_kernel(training.model, w, training.x), neuron_kernel(training.model, w, fresh.x, training.x)
    rows = [error(kernel_descent(kernel, cross, training.observed, s, setting.lr), fresh.y) for s in at]
    tangent = (("step", "seed"), torch.stack(rows).cpu().numpy(), {"long_name": "test error", "units": "fraction"})
    history = history.assign(tangent=tangent).assign_coords(step=history.step * setting.lr).rename(step="time")
    history.time.attrs = {"long_name": "flow time", "units": "1"}
    return history.assign_coords(setting.coordinates("power", "seed"))


def paths(setting: Setting, times: tuple[float, ...], device: str = "cpu") -> xr.Dataset:
    """Where every neuron is at some flow times, first width and seed; dimensions (time, power, neuron, axis)."""
    training = problem(setting, setting.width[0], device)

    def train_error(params):
        return error(training.predict(params), training.observed)[:, 0]

    record = [Quantity("w", lambda params: params["w"][:, 0], ("neuron", "axis"), "neuron w"),
              Quantity("train_error", train_error, (), "training error", "fraction")]
    at = [round(time / setting.lr) for time in times]
    history = fit(training, rule(setting, training), max(at), record, ("power",), at).history
    sign = ("neuron", [1] * (training.model.width // 2) + [-1] * (training.model.width // 2))
    history = history.assign_coords(step=history.step * setting.lr, sign=sign).rename(step="time")
    return history.assign_coords(power=list(setting.power))
