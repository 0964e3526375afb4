r"""A two-layer CNN on real digits beside noise patches: does it learn the image or memorise the noise?

Claim: with n training samples the signal-to-noise ratio decides two different things. The share of a training decision
that rests on the memorised noise patch is governed by :math:`n\,\mathrm{SNR}^2`, the test error by
:math:`r = n\|\mu\|^4/(\sigma_\xi^4 d) = n d\,\mathrm{SNR}^4` (Kou et al. 2023, Theorem 4.2, for images that are
:math:`y\mu` exactly). Here the images are handwritten digits, mu is half the difference of the class means.

Beside the network: what learns no feature (linear, lazy, frozen) and the averaging classifier.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr
from torch import Tensor, nn

from flbook import devices
from flbook.data.images import ImageNoise, Images, Moments, digits
from flbook.domains import Count, Natural, NonNegative, Positive, Range
from flbook.models.activations import identity, relu
from flbook.models.cnn import TwoLayerCNN
from flbook.rivals import RIVALS, FrozenCNN, Rival
from flbook.runs import Experiment, Grid, axis
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params

Digit = Annotated[int, Range(0, 9)]


def enlargement(d: int) -> int:
    """How often a digit of 8 x 8 pixels is enlarged to have d."""
    edge = math.isqrt(d // 64)
    if edge < 1 or 64 * edge**2 != d:
        raise ValueError(f"d must be 64 times a square, as in 64, 256, 576 or 1024, to enlarge 8 x 8 pixels; got {d}")
    return edge


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: one n and one d, from memorised to learned, with every rival.
    """

    model: tuple[Literal[Rival, "averaging"], ...] = axis(["network", *RIVALS, "averaging"], "model", "")
    n: tuple[Annotated[int, Range(2)], ...] = axis([40], "samples n")
    d: tuple[Count, ...] = axis([1024], "patch dimension d")  # 64 times a square: digits have 8 x 8 and are enlarged
    snr: tuple[Positive, ...] = axis([0.01, 0.02, 0.04, 0.06, 0.08, 0.11, 0.16, 0.24, 0.4],
                                     "signal-to-noise ratio SNR")
    seed: tuple[Natural, ...] = axis(range(10), "seed", "")
    plus: Digit = 3  # of label +1
    minus: Digit = 8  # of label -1
    variation: NonNegative = 1.0  # how much of what makes a digit differ from its class is kept; 0 is the model y mu
    m: Count = 10  # filters a sign
    sigma_0: NonNegative = 1e-3  # standard deviation of the initial weights
    lr: Positive = 4.0  # step size in units of nm / (sigma_xi^2 d (1 + n SNR^2)): what is learned takes O(1/lr) steps
    steps: Natural = 50
    points: Count = 200  # fresh noise patches, each beside every image

    def check(self) -> None:
        """Refuse pictures that are no enlarged digits."""
        for d in self.d:
            enlargement(d)


experiment = Experiment(
    Setting, version=1, loops=("n", "d", "model"), left=("seed", "snr"), chunk={"seed": 7}, stored="longer",
    gives={
        "train_error": ("training error", "fraction"),
        "test_error": ("test error", "fraction"),
        "new_noise_error": ("error on training images beside fresh noise", "fraction"),
        "noise_share": ("share of a training decision that rests on its noise patch", "fraction"),
    },
    presets={
        "tiny": ("Every model on six digits, memorised and learned", dict(
            n=(6,), d=(64, 256), snr=(0.1, 2.0), seed=(0, 1, 2), points=40, steps=10)),
        "longer": ("Sample sizes and picture sizes over a factor of four and sixteen, twenty seeds", dict(
            n=(20, 40, 80), d=(256, 1024, 4096), seed=tuple(range(20)), points=300,
            snr=(0.02, 0.03, 0.04, 0.055, 0.075, 0.1, 0.14, 0.19, 0.26, 0.36, 0.5))),
    },
)


@experiment.shared("n", "d")
def drawn(s: Setting, device: str) -> "Ensemble":
    """The data that every model trains on."""
    return ensemble(s, s.n, s.d, device)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train and judge one model on pictures of one size; its ensemble has one axis for all (seed, snr)."""
    data = drawn(s, device)
    judged = judge(*train(s.model, s, data), data)
    return {name: value.unflatten(0, (len(s.seed), -1)) for name, value in judged.items()}


run = experiment.run


class Ensemble(NamedTuple):
    """Data of all (seed, snr), in one ensemble axis, for one n and one d."""

    x: Float[Tensor, "E n 2 d"]  # training patches
    y: Float[Tensor, "E n"]
    unseen: Float[Tensor, "E N d"]  # images left out
    unseen_y: Float[Tensor, "E N"]
    noise: Float[Tensor, "E points d"]  # fresh noise patches
    snr: Float[Tensor, " E"]
    seed: tuple[int, ...]


def pictures(setting: Setting, d: int) -> Images:
    """The digits, enlarged to d pixels, their variation within a class scaled."""
    pixels, y = digits((setting.plus, setting.minus), enlarge=enlargement(d))
    mean = torch.where((y > 0)[:, None, None], pixels[y > 0].mean(0), pixels[y < 0].mean(0))
    return Images(mean + setting.variation * (pixels - mean), y)


def ensemble(setting: Setting, n: int, d: int, device: str = "cpu") -> Ensemble:
    """Draw it: images and noise depend on the seed only, the SNR scales the images."""
    data = ImageNoise(pictures(setting, d), n, snr=1.0)
    where, times = devices.device(device), len(setting.snr)
    snr = torch.tensor(setting.snr, dtype=torch.float32, device=where).repeat(len(setting.seed))

    def spread(part: Tensor) -> Tensor:
        return part.to(where, torch.float32).repeat_interleave(times, 0)

    train, rest = data.draw(setting.seed), torch.stack([data.split(seed)[1] for seed in setting.seed])
    x, unseen = spread(train.x), spread(data.patches.float()[rest])
    x[:, :, 0] *= snr[:, None, None]
    unseen *= snr[:, None, None]
    noise = spread(data.fresh_noise(setting.points, setting.seed))
    seeds = tuple(seed for seed in setting.seed for _ in range(times))
    return Ensemble(x, spread(train.y), unseen, spread(data.images.y[rest]), noise, snr, seeds)


def problem(model: str, setting: Setting, drawn: Ensemble) -> Training:
    """The training problem of the network or of a rival; averaging is linear, started at zero."""
    activation = identity if model in ("linear", "averaging") else relu
    cnn = TwoLayerCNN(drawn.x.shape[-1], setting.m, setting.sigma_0, activation, seed=drawn.seed).to(drawn.x.device)
    if model == "averaging":
        nn.init.zeros_(cnn.w)
    if model == "frozen":
        return Training(FrozenCNN(cnn, drawn.x), drawn.x, drawn.y)
    training = Training(cnn, drawn.x, drawn.y)
    return training.lazy() if model == "lazy" else training


def train(model: str, setting: Setting, drawn: Ensemble) -> tuple[Training, Params]:
    """Train every member; one step from zero of the linear model is the averaging classifier, at any step size."""
    n, d = drawn.x.shape[-3], drawn.x.shape[-1]
    lr = setting.lr * n * setting.m / (d * (1 + n * drawn.snr**2))
    # random features have mean square 1, so their curvature is at most k / 4 whatever n, d and the SNR are
    rule = GradientDescent(2.0 / setting.m if model == "frozen" else lr)
    chosen = problem(model, setting, drawn)
    return chosen, fit(chosen, rule, 1 if model == "averaging" else setting.steps).params


def judge(trained: Training, params: Params, drawn: Ensemble) -> dict[str, Float[Tensor, " E"]]:
    """Errors and the noise share of one model. All models add up over patches, so images and noise are judged apart."""
    def alone(patches: Tensor) -> Tensor:
        return trained.predict(params, patches[..., None, :])

    image, memory, fresh = alone(drawn.x[..., 0, :]), alone(drawn.x[..., 1, :]), alone(drawn.noise)
    from_image, from_noise = ((drawn.y * part).mean(-1) for part in (image, memory))
    return {
        "train_error": (drawn.y * (image + memory) <= 0).float().mean(-1),
        "test_error": pairs_wrong(alone(drawn.unseen), drawn.unseen_y, fresh),
        "new_noise_error": pairs_wrong(image, drawn.y, fresh),
        "noise_share": from_noise / (from_image + from_noise),
    }


def pairs_wrong(image: Float[Tensor, "E N"], y: Float[Tensor, "E N"], noise: Float[Tensor, "E points"]) -> Tensor:
    """Share of wrong signs over every image beside every fresh noise patch."""
    return (y[:, :, None] * (image[:, :, None] + noise[:, None, :]) <= 0).float().mean((-2, -1))


def averaging_error_on_images(n, snr, d, images: Moments):
    r"""Test error of the averaging classifier on images beside noise, :math:`\Phi(-1/\sqrt v)`, from moments alone.

    .. math:: v = \frac1r + \frac{1 + (1 + 2v_2)/n}{d\,\mathrm{SNR}^2} + v_1 + \frac{v_1 + v_3}n, \qquad
              r = n d\,\mathrm{SNR}^4

    with :math:`v_1, v_2, v_3` the moments of the images; without them this is `flbook.theory.averaging_error` up to
    terms of relative order 1/n. Derived in the lecture.
    """
    v_1, v_2, v_3 = images
    m = d * np.asarray(snr) ** 2
    v = d / (n * m**2) + (1 + (1 + 2 * v_2) / n) / m + v_1 + (v_1 + v_3) / n
    return ndtr(-1 / np.sqrt(v))


def averaging_noise_share(n, snr, images: Moments):
    r"""Share of the averaging classifier's training margin that rests on the noise patch.

    .. math:: \frac{1}{1 + \mathrm{SNR}^2\,(n + v_2)}, \qquad v_2 = \mathrm{tr}\,S / \|\mu\|^2

    On average: a sample meets its own noise patch, :math:`\|\xi_i\|^2 = \sigma_\xi^2 d`, its own image,
    :math:`(1 + v_2)\|\mu\|^2`, and the n - 1 other images, :math:`\|\mu\|^2` each. Derived in the lecture.
    """
    return 1 / (1 + np.asarray(snr) ** 2 * (n + images.total))
