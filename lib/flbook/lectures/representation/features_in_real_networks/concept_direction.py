r"""A concept inside a network: found as a direction, steered along it, erased, each time against random features.

Claim (Belrose et al. 2023): the smallest affine edit after which no linear probe finds a concept is known in closed
form. Claim of the tutorial's slide (Park et al. 2025): concepts are directions. The network answers two questions about
a picture of three coloured digits: which digit is red, and is the green digit odd? The second is the concept; the two
answers are independent by construction, so whatever an edit does to the first is damage.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices, rng
from flbook.domains import Count, Natural, Positive
from flbook.lectures.representation.features_in_real_networks import features
from flbook.lectures.representation.features_in_real_networks.coloured_digits import Coloured, ColouredDigits
from flbook.models import ConvNet, gelu
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit
from flbook.training.losses import SquaredClasses, squared_classes
from flbook.training.network import ScaledTraining
from flbook.training.optimizers import Momentum

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0)  # of steering, in differences of means
FOUND = {
    "along_means": "accuracy along the difference of means",
    "probe_accuracy": "accuracy of a linear probe",
    "cosine": "cosine with the read-out",
    "kernel_before": "accuracy of a kernel machine",
    "kernel_after": "accuracy of a kernel machine after erasing",
}
STEERED = {"flips": "even cases called odd", "names_red": "red digits named right"}
LEFT = {
    "left_probe": "accuracy of a probe fitted anew",
    "left_says": "parity told right",
    "left_names": "red digits named right",
    "left_moved": "share of variance moved",
}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: ten networks trained on two questions, and random features beside them.
    """

    model: tuple[Literal["trained", "frozen", "wide frozen"], ...] = axis(["trained", "frozen", "wide frozen"],
                                                                          "features")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 400  # training pictures
    probed: Count = 500  # pictures from which directions are found; as many unseen ones to test them on
    filters: Count = 16
    hidden: Count = 64
    wide: Count = 256  # hidden neurons of the wide frozen network
    steps: Natural = 120
    alpha: Positive = 0.001  # output scale: features move
    lr: Positive = 1e-5  # step size of the outputs; that of the weights is this over alpha^2


experiment = Experiment(
    Setting, version=1, loops=("model",), stored="longer",
    gives={name: (text, "fraction") for name, text in FOUND.items()}
    | {name: (text, "fraction", ("model", "direction", "seed", "strength")) for name, text in STEERED.items()}
    | {name: (text, "fraction", ("model", "edit", "seed")) for name, text in LEFT.items()},
    beside={
        "direction": (("concept", "random"), "direction of steering"),
        "strength": (STRENGTHS, "steering strength c"),
        "edit": (("none", "smallest", "orthogonal", "probe", "random"), "edit"),
    },
    presets={
        "tiny": ("Five steps of a few filters", dict(
            seed=(0, 1), n=60, probed=80, filters=4, hidden=10, wide=12, steps=5)),
        "longer": ("More pictures, more seeds, longer training", dict(
            seed=tuple(range(12)), n=800, probed=1000, filters=24, wide=1024, steps=150)),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Find, steer and erase in the networks of one kind; dimensions (seed), strength of steering, edit."""
    inside = Inside(s, s.model, device)
    way = features.mean_difference(inside.h, inside.z)
    weights, offset = features.probe(inside.h, inside.z)
    middle = torch.einsum("...k,...nk->...n", way, inside.h).mean(-1)
    chance = shaped_like(inside.h, way.norm(dim=-1), s.seed)
    flips, names = zip(*(steered(inside, one) for one in (way, chance)), strict=True)

    def project(direction):
        unit = direction / direction.norm(dim=-1, keepdim=True)
        return features.Eraser(inside.h.mean(-2), unit, unit)

    smallest, orthogonal = (features.eraser(inside.h, inside.z, smallest=small) for small in (True, False))
    edits = (lambda h: h, smallest, orthogonal, project(weights), project(chance))
    after = [erased(inside, edit) for edit in edits]
    return {
        "along_means": features.probed((way, middle), inside.h_test, inside.z_test),
        "probe_accuracy": features.probed((weights, offset), inside.h_test, inside.z_test),
        "cosine": torch.cosine_similarity(way, inside.read[0][..., 10], -1),
        "kernel_before": kernel_probe(inside, edits[0]),
        "kernel_after": kernel_probe(inside, smallest),
        "flips": torch.stack(flips),
        "names_red": torch.stack(names),
    } | {name: torch.stack([one[name] for one in after]) for name in LEFT}


run = experiment.run


class TwoQuestions(SquaredClasses):
    """Ten outputs for the red digit, an eleventh for the concept, +0.3 or -0.3, as large: label ``red + 10 * odd``."""

    def __call__(self, f: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample."""
        odd = 0.6 * (y >= 10) - 0.3
        return squared_classes(f[..., :10], y % 10) + (f[..., 10] - odd) ** 2 / 2


def question(pictures: Coloured) -> Tensor:
    """The concept: +1 where the green digit is odd, -1 where it is even."""
    return 2.0 * (pictures.digits[..., 1] % 2) - 1.0


class Inside:
    """Hidden features of an ensemble on pictures to find directions with and on unseen ones, and its two read-outs."""

    def __init__(self, setting: Setting, model: str, device: str):
        width, scale = (setting.wide if model == "wide frozen" else setting.hidden), setting.alpha
        data, where = ColouredDigits(setting.n), {"device": devices.device(device), "dtype": torch.float32}
        self.net = ConvNet((3, 8, 8), (setting.filters,), 5, 11, gelu, "none", hidden=(width,), padding=0,
                           seed=setting.seed).to(**where)
        params = {name: p.detach() for name, p in self.net.named_parameters()}
        train, found = data.draw(setting.seed), ColouredDigits(setting.probed).draw(setting.seed)
        unseen = data.draw_test(setting.probed, setting.seed)
        if model == "trained":
            y = train.y + 10 * (question(train) > 0)
            problem = ScaledTraining(self.net, train.x.to(**where), y, TwoQuestions(), scale)
            params = fit(problem, Momentum(setting.lr / scale**2), setting.steps).params
        self.h, self.h_test, at_train = (self._hidden(params, s.x.to(**where)) for s in (found, unseen, train))
        self.labels = question(found), question(unseen)  # on the CPU, for scikit-learn
        self.z, self.z_test, self.y_test = (part.to(self.h.device) for part in (*self.labels, unseen.y))
        answers = torch.cat([features.one_hot(train.y), question(train)[..., None]], -1)
        self.read = readout(at_train, answers.to(self.h))

    def _hidden(self, params, x) -> Tensor:
        with torch.no_grad():
            return torch.func.functional_call(self.net, params, (x,), {"every": True})[-1].double()

    def answers(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Shares of pictures that are given the right red digit, and that are called odd; h: ``(*E, n, k)``."""
        f = torch.einsum("...nk,...kc->...nc", h, self.read[0]) + self.read[1][..., None, :]
        return (f[..., :10].argmax(-1) == self.y_test).double(), (f[..., 10] > 0).double()


def readout(h: Tensor, targets: Tensor, ridge: float = 1e-2) -> tuple[Tensor, Tensor]:
    """Ridge regression of several targets at once: weights ``(*E, k, c)``, offsets ``(*E, c)``."""
    both = [features.probe(h, targets[..., c], ridge) for c in range(targets.shape[-1])]
    return torch.stack([w for w, _ in both], -1), -torch.stack([b for _, b in both], -1)


def shaped_like(h: Tensor, length: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """A random direction with the covariance of the features, of given length: what chance steering would do."""
    mix = rng.normal((h.shape[-2],), seeds, "random direction").to(h)
    way = torch.einsum("...n,...nk->...k", mix, h - h.mean(-2, keepdim=True))
    return way / way.norm(dim=-1, keepdim=True) * length[..., None]


def steered(inside: Inside, way: Tensor) -> tuple[Tensor, Tensor]:
    """Over strengths: share of even cases that are called odd, and share of all red digits still named right."""
    even = (inside.z_test < 0).double()
    called_odd, named_right = [], []
    for c in STRENGTHS:
        right, odd = inside.answers(inside.h_test + c * way[..., None, :])
        called_odd.append((odd * even).sum(-1) / even.sum(-1))
        named_right.append(right.mean(-1))
    return torch.stack(called_odd, -1), torch.stack(named_right, -1)


def erased(inside: Inside, edit) -> dict[str, Tensor]:
    """What is left after an edit: a probe fitted anew on half of the unseen pictures, and the read-outs."""
    h, half = edit(inside.h_test), inside.h_test.shape[-2] // 2
    right, odd = inside.answers(h)
    fresh = features.probe(h[..., :half, :], inside.z_test[..., :half])
    return {
        "left_probe": features.probed(fresh, h[..., half:, :], inside.z_test[..., half:]),
        "left_says": (odd == (inside.z_test > 0)).double().mean(-1),
        "left_names": right.mean(-1),
        "left_moved": (edit(inside.h) - inside.h).square().sum(-1).mean(-1) / inside.h.var(-2, correction=0).sum(-1),
    }


def kernel_probe(inside: Inside, edit) -> Tensor:
    """Accuracy of a radial kernel machine after an edit, one seed at a time: scikit-learn knows no ensembles."""
    from sklearn.svm import SVC

    sets = (edit(inside.h), inside.labels[0], edit(inside.h_test), inside.labels[1])
    parts = [[x.numpy() for x in part[:, ::2].cpu()] for part in sets]  # half of the pictures: it is slow
    return torch.tensor([SVC(C=10.0).fit(a, b).score(c, d) for a, b, c, d in zip(*parts, strict=True)])
