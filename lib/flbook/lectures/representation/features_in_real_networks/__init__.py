r"""What training changes inside a small convolutional network that has to find out which colour matters.

Claim (Chizat et al. 2019, Theorem 2.2): trained as :math:`F = \alpha (f(w) - f(w_0))`, weights move by
:math:`O(1/\alpha)`, so a network with a large :math:`\alpha` fits its data while what it computes inside stays as it
was drawn. Claim (Radhakrishnan et al. 2024): where the first layer does move, :math:`W^\top W` turns towards the
average gradient outer product of what has been learned.

Pictures are those of `coloured_digits`: the label is the class of the red digit, green and blue are there
to distract. So the feature that has to be learned is known.
"""

from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from flbook import devices, measures, rng
from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation.features_in_real_networks import features
from flbook.lectures.representation.features_in_real_networks.coloured_digits import COLOURS, ColouredDigits
from flbook.models import ConvNet, gelu
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import squared_classes
from flbook.training.network import ScaledTraining
from flbook.training.optimizers import Momentum

AT = (0, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200)  # steps that are looked at
LAYERS = ("pixels", "filters", "hidden")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: features that move beside features that stay."""

    alpha: tuple[Positive, ...] = axis([0.001, 100.0], "output scale α")  # small moves the features, large keeps them
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 500  # training pictures
    filters: Count = 16  # first layer, 5 x 5 pixels x 3 colours each
    hidden: Count = 64  # second layer
    steps: Natural = 100
    lr: Positive = 0.003  # step size of F where alpha is large; see step_size
    shuffled: bool = False  # are the training labels given to the wrong pictures?
    points: Count = 300  # test pictures

    def step_size(self, alpha: float) -> float:
        r"""Of the weights: that of F over :math:`\alpha^2`, smaller where a small alpha will have made weights large.

        Three layers that multiply up to an output :math:`1/\alpha` have grown by :math:`\alpha^{-1/3}` each, and the
        curvature of the loss with their fourth power.
        """
        return self.lr * min(1.0, (alpha / 0.07) ** (4 / 3)) / alpha**2


experiment = Experiment(
    Setting, version=1, loops=("alpha",), stored="longer",
    beside={"colour": (COLOURS, "colour"), "layer": (LAYERS, "layer")},
    presets={
        "tiny": ("Ten steps of a few filters, far from lazy and lazy", dict(
            alpha=(0.01, 1000.0), seed=(0, 1), n=40, filters=4, hidden=8, steps=10, points=30)),
        "lazy": ("Large output scales, over which the movement should fall as their inverse", dict(
            alpha=(3.0, 10.0, 30.0, 100.0), n=100, filters=8, steps=8, points=100)),
        "longer": ("The whole dial, longer training, more pictures and seeds", dict(
            alpha=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 100.0), seed=tuple(range(12)), n=1000, filters=24,
            steps=200, points=1000)),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Train at one output scale and look inside; dimensions (step, seed) and what a variable adds."""
    one, at = Network(s, s.alpha, device), [step for step in AT if step <= s.steps]
    return fit(one.problem, Momentum(s.step_size(s.alpha)), s.steps, one.quantities(), ("seed",), at).history


run = experiment.run


class Network:
    """The ensemble over seeds at one output scale: its training problem, its test pictures, and what to look at."""

    def __init__(self, setting: Setting, alpha: float, device: str, dtype: torch.dtype = torch.float32):
        data, where = ColouredDigits(setting.n), {"device": devices.device(device), "dtype": dtype}
        train, test = data.draw(setting.seed), data.draw_test(setting.points, setting.seed)
        y = _shuffled(train.y, setting.seed) if setting.shuffled else train.y
        self.net = network(setting).to(**where)
        self.problem = ScaledTraining(self.net, train.x.to(**where), y, squared_classes, alpha)
        self.alpha, self.x, self.y = alpha, test.x.to(**where), test.y.to(where["device"])
        self.few = self.x[:, :50]  # enough for an average over 16 places each
        self.begin, self.before = self.problem.start(), None
        self.before = features.patch_gradients(self.net, self.begin, self.few)
        self._latest: tuple = (None, None)  # filters, and the gradient matrix there: three quantities ask for it

    def gradient_matrix(self, params) -> Tensor:
        """Average gradient outer product of F."""
        if self._latest[0] is not params["w0"]:
            now = features.patch_gradients(self.net, params, self.few)
            self._latest = params["w0"], features.gradient_outer_product(self.alpha * (now - self.before))
        return self._latest[1]

    def alignment(self, params) -> Tensor:
        """Of the kernel of the pixels, the filters and the hidden layer, on test pictures."""
        y, layers = features.one_hot(self.y).to(self.x), layers_of(self.net, params, self.x)
        return torch.stack([features.kernel_alignment(h, y) for h in (self.x.flatten(-3), *layers)], -1)

    def quantities(self) -> list[Quantity]:
        """What is recorded while training."""
        matrix, start = features.feature_matrix, features.feature_matrix(self.begin["w0"])

        def moved(params):
            change = {name: p - self.begin[name] for name, p in params.items()}
            return self.problem.norm(change) / self.problem.norm(self.begin)

        def accuracy(params):
            return 1 - measures.class_error(self.problem, params, self.x, self.y)

        def change(params):
            return matrix(params["w0"]) - start  # before training 0, so its correlation is no number

        return [
            Quantity("test_accuracy", accuracy, (), "test accuracy", "fraction"),
            Quantity("train_loss", self.problem.train_loss, (), "training loss"),
            Quantity("movement", moved, (), "relative movement of the weights"),
            Quantity("filter_share", lambda p: features.trace_shares(matrix(p["w0"]), 3), ("colour",),
                     "share of filter energy", "fraction"),
            Quantity("gradient_share", lambda p: features.trace_shares(self.gradient_matrix(p), 3), ("colour",),
                     "share of the gradient's energy", "fraction"),
            Quantity("correlation", lambda p: features.correlation(matrix(p["w0"]), self.gradient_matrix(p)), (),
                     "correlation of WᵀW with G"),
            Quantity("correlation_change", lambda p: features.correlation(change(p), self.gradient_matrix(p)), (),
                     "correlation of WᵀW - W₀ᵀW₀ with G"),
            Quantity("alignment", self.alignment, ("layer",), "kernel-target alignment"),
            Quantity("filters", lambda p: p["w0"], ("filter", "colour", "row", "column"), "filter weights"),
        ]


def network(setting: Setting) -> ConvNet:
    """Filters of 5 x 5 pixels wherever they fit, a hidden layer, ten outputs."""
    return ConvNet((3, 8, 8), (setting.filters,), 5, 10, gelu, "none", hidden=(setting.hidden,), padding=0,
                   seed=setting.seed)


def layers_of(net: ConvNet, params: dict[str, Tensor], x: Tensor) -> list[Tensor]:
    """Responses of every layer at given parameters."""
    with torch.no_grad():
        return torch.func.functional_call(net, params, (x,), {"every": True})


def _shuffled(y: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """The same labels, given to other pictures."""
    order = [torch.randperm(y.shape[-1], generator=rng.generator(seed, "shuffle")) for seed in seeds]
    return torch.stack([row[places] for row, places in zip(y, order, strict=True)])


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """Of a run: every number but the filters, as 32-bit floats."""
    return dataset.drop_vars("filters").astype("float32")


def fixed_features(setting: Setting) -> xr.Dataset:
    """Test accuracy of what learns no feature: ridge regression, kernels, random features; dimensions (model, seed).

    Every regularisation is chosen on the test pictures, in the rival's favour.
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.svm import SVC

    data = ColouredDigits(setting.n)
    train, test = data.draw(setting.seed), data.draw_test(setting.points, setting.seed)
    net = network(setting).double()
    sets = [[h.flatten(2).numpy() for h in (s.x, *layers_of(net, dict(net.named_parameters()), s.x))]
            for s in (train, test)]
    pixels, filters, hidden = zip(*sets, strict=True)
    red = tuple(part[..., :64] for part in pixels)
    ridges = [RidgeClassifier(alpha=ridge) for ridge in (3.0, 30.0, 300.0)]
    kernels = [SVC(C=10.0, gamma=g / 192) for g in (0.1, 0.2, 0.4)]
    told = [SVC(C=10.0, gamma=0.4 / 64)]
    models = {"linear": (ridges, pixels), "frozen filters": (ridges, filters), "frozen hidden": (ridges, hidden),
              "kernel": (kernels, pixels), "kernel told red": (told, red)}
    best = [
        [max(m.fit(h[0][k], train.y[k].numpy()).score(h[1][k], test.y[k].numpy()) for m in choice)
         for k in range(len(setting.seed))]
        for choice, h in models.values()
    ]
    return labelled({"test_accuracy": (("model", "seed"), best, "test accuracy", "fraction")},
                    {"model": list(models), **setting.coordinates("seed")})


@experiment.also
def laziness(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """What is left of movement when the output scale grows, and how far from its tangent it ends; (alpha, seed).

    After the same steps: relative movement of the weights, relative change of the hidden kernel on test pictures, and
    relative distance of the test outputs from those of the exactly linearised network. In float64, because a large
    alpha enlarges rounding errors, too.
    """
    nets = [Network(setting, alpha, device, torch.float64) for alpha in setting.alpha]
    tangent = _ends(setting, nets[-1], nets[-1].problem.lazy())[1]
    columns = []
    for one in nets:
        params, outputs = _ends(setting, one, one.problem)
        moved = one.problem.norm({k: p - one.begin[k] for k, p in params.items()}) / one.problem.norm(one.begin)
        now, before = (layers_of(one.net, p, one.x)[-1].double() for p in (params, one.begin))
        kernels = [torch.einsum("...nk,...mk->...nm", h, h).flatten(-2) for h in (now, before)]
        columns.append([moved, _apart(*kernels), _apart(outputs.double(), tangent.double())])
    movement, kernel, tangent = zip(*columns, strict=True)
    dims = ("alpha", "seed")
    return labelled({"movement": (dims, movement, "movement of the weights"),
                     "kernel": (dims, kernel, "change of the hidden kernel"),
                     "tangent": (dims, tangent, "distance to the linearised network")}, setting.coordinates())


def _ends(setting: Setting, one: Network, problem) -> tuple[dict[str, Tensor], Tensor]:
    params = fit(problem, Momentum(setting.step_size(one.alpha)), setting.steps).params
    return params, problem.predict(params, one.x).detach().flatten(1)


def _apart(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).norm(dim=-1) / b.norm(dim=-1)
