r"""A four-layer ConvNet on colour crops of two photographs: filters against gradients, and a concept in its last layer.

Each crop of `flbook.data.crops` is shown as it is or with red and blue exchanged, at random. The network answers two
questions: which photograph is it, and are the colours exchanged? The second is the concept; the two answers are
independent by construction, so whatever an edit does to the first is damage.

Claim (Beaglehole et al. 2023): in trained convolutional networks a layer's :math:`W^\top W` resembles the average
gradient outer product over patches. Claim (Belrose et al. 2023): the smallest affine edit after which no linear probe
finds a concept is known in closed form.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.data.crops import TwoClassPictures
from flbook.domains import Count, Natural, Positive, Range
from flbook.lectures.representation.features_in_real_networks import features
from flbook.models import ConvNet
from flbook.observe import read_out
from flbook.runs import Experiment, Grid, axis
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam
from flbook.training.problem import Params

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0)  # of steering, in differences of means
MODELS = ("trained", "untrained", "wide untrained")
EDITS = ("none", "smallest", "probe", "random")


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one network from a small start."""

    start: tuple[Positive, ...] = axis([0.3], "start s")  # filters have variance 2 s²/fan-in
    seed: tuple[Natural, ...] = axis([0], "seed")
    n: Annotated[int, Range(4, 4000)] = 1000  # training crops
    fresh: Count = 1000  # test crops, half of them to find directions with
    width: Count = 16  # filters of the first two layers; the other two have twice as many
    epochs: Natural = 15
    batch: Count = 50
    lr: Positive = 0.003  # of Adam


class Crops(NamedTuple):
    """Crops and the answers to both questions."""

    x: Tensor  # (n, 3, 16, 16)
    y: Tensor  # +1 for the temple, -1 for the flower
    z: Tensor  # +1 where red and blue are exchanged, else -1


experiment = Experiment(
    Setting, version=1, loops=("start",), stored="longer",
    gives={
        "correlation": ("correlation of WᵀW with G", "1", ("start", "stage", "layer", "seed")),
        "pearson": ("Pearson correlation of all entries", "1", ("start", "stage", "layer", "seed")),
        "change": ("correlation of WᵀW − W₀ᵀW₀ with G", "1", ("start", "layer", "seed")),
        "accuracy": ("test accuracy", "fraction", ("start", "question", "seed")),
        "train_accuracy": ("training accuracy", "fraction", ("start", "question", "seed")),
        "probe": ("accuracy of a linear probe", "fraction", ("start", "model", "seed")),
        "flips": ("true-colour crops called exchanged", "fraction",
                  ("start", "model", "direction", "strength", "seed")),
        "kept": ("photographs told right", "fraction", ("start", "model", "direction", "strength", "seed")),
        "left": ("accuracy of a probe fitted anew", "fraction", ("start", "model", "edit", "seed")),
        "kernel": ("accuracy of a kernel machine", "fraction", ("start", "edit", "seed")),
        "filters": ("filters of the first layer", "1", ("start", "stage", "seed", "filter", "colour", "row", "column")),
        "matrix": ("WᵀW of the first layer", "1", ("start", "stage", "seed", "weight", "other")),
        "product": ("G of the first layer", "1", ("start", "stage", "seed", "weight", "other")),
    },
    beside={
        "stage": (("untrained", "trained"), "network"), "layer": ((1, 2, 3, 4), "layer"),
        "question": (("photograph", "exchanged"), "question"), "model": (MODELS, "features"),
        "direction": (("concept", "random"), "direction of steering"),
        "strength": (STRENGTHS, "steering strength c"), "edit": (EDITS, "edit"),
    },
    presets={
        "tiny": ("Two epochs of a few filters", dict(
            seed=(0, 1), n=40, fresh=80, width=2, epochs=2, batch=20)),
        "longer": ("Both starts, ten networks each", dict(start=(0.3, 1.0), seed=tuple(range(10)))),
    },
)  # fmt: skip


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train and look inside, one network after the other, so that no number depends on the others' rounding."""
    each = [one(s, s.start, seed, device) for seed in s.seed]
    last = {name for name, about in experiment.gives.items() if about[2][-1] == "seed"}
    return {name: torch.stack([found[name] for found in each], -1 if name in last else 1) for name in each[0]}


run = experiment.run


@experiment.kept
def kept(dataset):
    """Of a run: its numbers, without matrices and filters, in single precision."""
    return dataset.drop_vars(["filters", "matrix", "product"]).astype("float32")


class TwoAnswers:
    """Two logistic losses, one a question: labels 0 to 3, the first question in their last bit."""

    takes_classes: ClassVar[bool] = True

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample: outputs ``(*E, n, 2)``, labels ``(*#E, n)``."""
        return torch.nn.functional.softplus(-f * signs_of(y)).sum(-1)

    def check(self, labels: Tensor) -> None:
        """Refuse labels other than 0, 1, 2, 3."""
        if bool(((labels < 0) | (labels > 3)).any()):
            raise ValueError(f"labels must be 0, 1, 2 or 3; found {labels.min():g} to {labels.max():g}")


def signs_of(y: Tensor) -> Tensor:
    """Both answers, +1 or -1, of labels 0 to 3: ``(*E, n, 2)``."""
    return torch.stack([2 * (y % 2) - 1, 2 * (y // 2) - 1], -1)


def pictures(s: Setting, seed: int, role: str) -> Crops:
    """Crops to train or to test on, half of them at random with red and blue exchanged."""
    data = TwoClassPictures("colour crops", n=s.n, flip_prob=0.0, fresh=s.fresh)
    sample = data.draw(seed) if role == "train" else data.draw_test(seed)
    flips = torch.rand(len(sample.y), generator=rng.generator(seed, f"exchange, {role}")) < 0.5
    x = torch.where(flips[:, None, None, None], sample.x[:, [2, 1, 0]], sample.x)
    return Crops(x, sample.y, 2.0 * flips.double() - 1)


def network(s: Setting, start: float, seed: int, times: int = 1) -> ConvNet:
    """Four layers of 3 x 3 filters, each followed by ReLU and the largest of 2 x 2 pixels; two outputs."""
    m = times * s.width
    return ConvNet((3, 16, 16), (m, m, 2 * m, 2 * m), 3, 2, gain=2 * start**2, seed=seed)


def trained(s: Setting, start: float, seed: int, device: str = "cpu") -> tuple[Training, Params]:
    """A network's problem, and its parameters after training."""
    sample = pictures(s, seed, "train")
    labels = (sample.y > 0) + 2 * (sample.z > 0)
    problem = Training(network(s, start, seed), sample.x, labels, TwoAnswers()).to(devices.device(device))
    size = min(s.batch, s.n)
    return problem, fit(Batches(problem, size), Adam(s.lr), s.epochs * (s.n // size), at=[]).params


def one(s: Setting, start: float, seed: int, device: str) -> dict[str, Tensor]:
    """All numbers of one network."""
    problem, params = trained(s, start, seed, device)
    begin, test = problem.start(), pictures(s, seed, "test")
    x = test.x.to(begin["a"])
    stages = [features.layer_matrices(problem.model, p, x[:300]) for p in (begin, params)]
    y = torch.stack([test.y, test.z], -1).to(x)

    def each_layer(measure):
        return torch.stack([torch.stack([measure(w, g) for w, g in stage]) for stage in stages])

    first = [stage[0] for stage in stages]
    change = [features.correlation(now[0] - before[0], now[1]) for before, now in zip(*stages, strict=True)]
    return {
        "correlation": each_layer(features.correlation), "pearson": each_layer(features.pearson),
        "change": torch.stack(change),
        "accuracy": (problem.predict(params, x).detach() * y > 0).double().mean(0),
        "train_accuracy": (problem.predict(params).detach() * signs_of(problem.observed) > 0).double().mean(0),
        "filters": torch.stack([begin["w0"], params["w0"]]),
        "matrix": torch.stack([w for w, _ in first]), "product": torch.stack([g for _, g in first]),
    } | concept(s, problem, params, seed, test)  # fmt: skip


class Inside(NamedTuple):
    """Last-layer features of test crops: half of them to find directions with, half to measure on."""

    h: Tensor
    z: Tensor
    y: Tensor
    h_new: Tensor
    z_new: Tensor
    y_new: Tensor


def concept(s: Setting, problem: Training, params: Params, seed: int, test: Crops) -> dict[str, Tensor]:
    """Find, steer and erase in the trained network, in the same one untrained, and in a wider untrained one."""
    wide = network(s, 1.0, seed, times=4).to(problem.x.device)
    nets = (problem.model, params), (problem.model, problem.start()), (wide, dict(wide.named_parameters()))
    found = [edited(inside_of(net, p, test), seed) for net, p in nets]
    return {name: torch.stack([of[name] for of in found]) for name in ("probe", "flips", "kept", "left")} | {
        "kernel": kernel_probes(inside_of(*nets[0], test), test.z, seed)}  # fmt: skip


def inside_of(net: ConvNet, params: Params, test: Crops) -> Inside:
    """Features in the units of their own mean square: an untrained network may be of any size."""
    with torch.no_grad():
        h = torch.func.functional_call(net, params, (test.x.to(params["a"]),), {"every": True})[-1].double()
    h, half, z, y = h / h.square().mean().sqrt(), len(h) // 2, test.z.to(h), test.y.to(h)
    return Inside(h[:half], z[:half], y[:half], h[half:], z[half:], y[half:])


def edits_of(inside: Inside, seed: int) -> dict:
    """Maps of features: none, the smallest that erases, without the probe's direction, without a random one."""
    def project(direction):
        unit = direction / direction.norm()
        return read_out.Eraser(inside.h.mean(-2), unit[:, None], unit[:, None])

    weights, random = read_out.ridge_probe(inside.h, inside.z)[0], shaped_like(inside.h, 1.0, seed)
    smallest = read_out.erase(inside.h, inside.z)
    return dict(zip(EDITS, (lambda h: h, smallest, project(weights), project(random)), strict=True))


def edited(inside: Inside, seed: int) -> dict[str, Tensor]:
    """What a probe finds, what steering does to both answers, and what is left after each edit."""
    exchanged, photograph = (read_out.ridge_probe(inside.h, labels, 1e-2) for labels in (inside.z, inside.y))
    way = read_out.mean_difference(inside.h, inside.z)
    flips, kept = [], []
    for direction in (way, shaped_like(inside.h, way.norm(), seed)):
        moved = [inside.h_new + c * direction for c in STRENGTHS]
        flips.append(torch.stack([called_exchanged(exchanged, h, inside.z_new) for h in moved]))
        kept.append(torch.stack([read_out.probed(photograph, h, inside.y_new) for h in moved]))
    left = [probed_anew(edit(inside.h_new), inside.z_new) for edit in edits_of(inside, seed).values()]
    return {"probe": read_out.probed(exchanged, inside.h_new, inside.z_new), "flips": torch.stack(flips),
            "kept": torch.stack(kept), "left": torch.stack(left)}  # fmt: skip


def called_exchanged(probe: tuple[Tensor, Tensor], h: Tensor, z: Tensor) -> Tensor:
    """Share of the true-colour crops whose features a probe calls exchanged."""
    true = (z < 0).to(h)
    return ((h @ probe[0] > probe[1]).to(h) * true).sum() / true.sum()


def probed_anew(h: Tensor, z: Tensor) -> Tensor:
    """A probe fitted on half of the edited features, asked about the other half."""
    half = len(z) // 2
    return read_out.probed(read_out.ridge_probe(h[:half], z[:half], 1e-2), h[half:], z[half:])


def shaped_like(h: Tensor, length: Tensor | float, seed: int) -> Tensor:
    """A random direction with the covariance of the features, of given length: what chance steering would do."""
    mix = rng.normal(h.shape[:1], seed, "random direction").to(h)
    way = mix @ (h - h.mean(0))
    return way / way.norm() * length


def kernel_probes(inside: Inside, z: Tensor, seed: int) -> Tensor:
    """Accuracy of a radial kernel machine after each edit, fitted and asked like `probed_anew`; z on the CPU."""
    from sklearn.svm import SVC

    half, scores = len(inside.z_new) // 2, []
    z = z[-len(inside.z_new):].numpy()
    for edit in edits_of(inside, seed).values():
        h = edit(inside.h_new).cpu().numpy()
        scores.append(SVC(C=10.0).fit(h[:half], z[:half]).score(h[half:], z[half:]))
    return torch.tensor(scores, dtype=torch.float64)
