r"""Denoising from scratch: what a network adds to the loss it is trained on, on handwritten digits.

Claim (derived on the page): over all functions, the minimiser of the denoising loss on a training set is the Bayes
denoiser of that set, which samples training pictures. A convolutional network trained on the same loss (Ho et al. 2020,
equation 14) does not come near it, and denoises new pictures better where the noise is small.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from flbook import rng
from flbook.data.ten_digits import ten_digits
from flbook.domains import Count, Natural, Positive
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_networks import PictureDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_problem import (
    NoisePrediction,
    TrainingSet,
    predictor,
)
from flbook.lectures.foundation_models.denoising_from_scratch.gaussian_denoisers import GaussianDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import PointMixture
from flbook.lectures.foundation_models.denoising_from_scratch.reverse_diffusion import reverse_path
from flbook.runs import Experiment, Grid, axis, checkpoints
from flbook.training.fit import fit
from flbook.training.optimizers import Adam
from flbook.training.problem import Params

SCHEDULE = NoiseSchedule()
REPEATS = 3  # noises for each picture, where a loss is measured
WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3)  # of the smoothed memoriser: the best in hindsight counts
Denoise = Callable[[Tensor, int], Tensor]  # noisy pictures and their step -> the noise in them


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: one network, trained for some seconds."""

    n: tuple[Count, ...] = axis((1500,), "training pictures n")
    seed: tuple[Natural, ...] = axis((0,), "seed")  # of the split, the network, its batches and the test noise
    t: tuple[Count, ...] = axis((20, 60, 120, 200, 300, 500), "noising steps t")
    channels: Count = 16
    steps: Count = 300
    batch: Count = 32
    lr: Positive = 5e-3
    samples: Count = 50
    sampling_steps: Count = 100

    def check(self) -> None:
        """Refuse what the pictures and the schedule do not have."""
        if max(self.n) > 1500:
            raise ValueError(f"n must be at most 1500, so that pictures are left to test on; got {max(self.n)}")
        if max(self.t) > SCHEDULE.steps or self.sampling_steps > SCHEDULE.steps:
            raise ValueError(f"t and sampling_steps must be at most {SCHEDULE.steps}, the steps of the schedule; got "
                             f"{max(self.t)} and {self.sampling_steps}")


LOSSES = {"network_test": "network, new pictures", "network_train": "network, training pictures",
          "memoriser_test": "memoriser, new pictures", "memoriser_train": "memoriser, training pictures",
          "smoothed_test": "smoothed memoriser, new pictures", "wiener_test": "Wiener filter, new pictures",
          "class_gaussians_test": "Gaussian per class, new pictures"}  # fmt: skip

experiment = Experiment(
    Setting, version=2, loops=("n", "seed", "t"), chunk={"n": 1, "seed": 1}, stored="longer",
    gives={name: (f"loss per pixel: {words}", "1") for name, words in LOSSES.items()}
    | {f"distance_{name}": (f"distance of {name} to the nearest training picture, median", "1", ("n", "seed"))
       for name in ("network", "memoriser", "test")}
    | {f"seen_{name}": (f"share of {words} nearer to a training picture than to every test picture", "1", ("n", "seed"))
       for name, words in (("network", "the network's samples"), ("noisy", "copies as far off, by noise"))}
    | {"weights": ("weights of the trained network", "1", ("n", "seed", "weight"))},
    presets={
        "tiny": ("Two networks of two channels after three steps", dict(
            n=(40, 60), seed=(0, 1), t=(60, 300), channels=2, steps=3, batch=4, samples=3, sampling_steps=4)),
        "longer": ("Ten networks on many pictures, and ten on few: ten minutes of one core", dict(
            n=(100, 1500), seed=tuple(range(10)), steps=2500, samples=200)),
        "gpu": ("Wider networks, trained forty times as long, on more sizes of the training set", dict(
            n=(30, 100, 300, 1000, 1500), seed=tuple(range(10)), channels=64, steps=100_000, lr=1e-3, batch=128)),
    },
)


class Pictures(NamedTuple):
    """Training and test pictures; the test pictures are the same for every n."""

    x: Tensor  # (n, 1, 8, 8)
    y: Tensor  # (n,)
    x_test: Tensor  # (297, 1, 8, 8)


def pictures(n: int, seed: int) -> Pictures:
    """The first n of 1500 training pictures, and those left to test on."""
    split = ten_digits(1500, seed)
    return Pictures(split.x[:n].float(), split.y[:n], split.x_test.float())


def untrained(setting: Setting, seed: int) -> PictureDenoiser:
    """The network before training."""
    return PictureDenoiser(setting.channels, seed)


def train(setting: Setting, n: int, seed: int, device: str = "cpu") -> Params:
    """The network's parameters after training on n pictures."""
    data = TrainingSet(pictures(n, seed).x)
    problem = NoisePrediction(untrained(setting, seed).to(device), data, SCHEDULE, seed, setting.batch)
    return fit(problem, Adam(setting.lr, horizon=setting.steps), setting.steps).params


def rivals(shown: Pictures, t: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Denoisers in closed form, fitted to the training pictures: noisy pictures -> noise, both flat."""
    flat, kept = shown.x.flatten(1), SCHEDULE.kept(t)
    known = {"memoriser": PointMixture(flat), "wiener": GaussianDenoiser.fitted(flat),
             "class_gaussians": GaussianDenoiser.fitted(flat, shown.y, ridge=0.01)}
    known |= {f"smoothed {width}": PointMixture(flat, width) for width in WIDTHS}
    return {name: lambda x, rule=rule: rule.noise(x, kept) for name, rule in known.items()}


def loss(rule: Denoise, x: Tensor, t: int, seed: int) -> float:
    """Denoising loss a pixel on given pictures at one step, each under `REPEATS` noises."""
    x = x.repeat(REPEATS, *[1] * (x.ndim - 1))
    noise = rng.normal(tuple(x.shape), seed, f"test noise {t}", dtype=x.dtype)
    return float((rule(SCHEDULE.noised(x, torch.tensor(t), noise), t) - noise).square().mean())


def on_pictures(rule: Callable[[Tensor], Tensor]) -> Denoise:
    """A denoiser of flat pictures, called like a network."""
    return lambda x, t: rule(x.flatten(1)).reshape(x.shape)


def nearest(x: Tensor, training: Tensor) -> Tensor:
    """Distance of each picture to the nearest training picture."""
    return torch.cdist(x.flatten(1).double(), training.flatten(1).double()).amin(-1)


def seen(x: Tensor, shown: Pictures) -> float:
    """Share of pictures whose nearest one, of training and test pictures together, is a training picture.

    Without memory it is n over n + 297: which pictures were trained on was drawn.
    """
    return float((nearest(x, shown.x) < nearest(x, shown.x_test)).double().mean())


def noisy_copies(shown: Pictures, count: int, distance: float, seed: int) -> Tensor:
    """Training pictures with as much Gaussian noise as brings them to about this distance from the training set."""
    places = torch.randint(len(shown.x), (count,), generator=rng.generator(seed, "pictures to copy"))
    x = shown.x[places]
    return x + distance / math.sqrt(x[0].numel()) * rng.normal(tuple(x.shape), seed, "noise on copies", dtype=x.dtype)


def drawn(rule: Denoise, setting: Setting, seed: int) -> Tensor:
    """Pictures sampled from pure noise, in `sampling_steps` steps."""
    times = np.linspace(SCHEDULE.steps, 0, setting.sampling_steps + 1).round().astype(int)[:-1]
    *_, (_, x) = reverse_path(rule, SCHEDULE, (setting.samples, 1, 8, 8), seed, times.tolist())
    return x


def memoriser(shown: Pictures) -> Denoise:
    """The exact minimiser of the training loss, called like a network."""
    mixture = PointMixture(shown.x.flatten(1).double())
    return lambda x, t: mixture.noise(x.flatten(1).double(), SCHEDULE.kept(t)).reshape(x.shape).to(x)


class TrainedDenoiser(NamedTuple):
    """A network that was trained on some pictures."""

    shown: Pictures
    predict: Denoise
    facts: dict[str, float | Tensor]  # its weights; how far its samples, and its rivals', are from training pictures


@experiment.shared("n", "seed")
def trained(s: Setting, device: str) -> TrainedDenoiser:
    """The network, whose losses are asked for at every t."""
    shown, params = pictures(s.n, s.seed), train(s, s.n, s.seed, device)
    predict = predictor(untrained(s, s.seed).to(device), params)
    made = {"network": drawn(predict, s, s.seed), "memoriser": drawn(memoriser(shown), s, s.seed),
            "test": shown.x_test}
    far = {f"distance_{name}": float(nearest(x, shown.x).median()) for name, x in made.items()}
    noisy = noisy_copies(shown, s.samples, far["distance_network"], s.seed)
    far |= {"seen_network": seen(made["network"], shown), "seen_noisy": seen(noisy, shown)}
    return TrainedDenoiser(shown, predict, far | {"weights": nn.utils.parameters_to_vector(params.values())})


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, float | Tensor]:
    """Losses at one t of a network and its rivals; distances to the nearest training picture, and the weights."""
    shown, predict, facts = trained(s, device)
    rules = {name: on_pictures(rule) for name, rule in rivals(shown, s.t).items()} | {"network": predict}
    found = {f"{name}_test": loss(rule, shown.x_test, s.t, s.seed) for name, rule in rules.items()}
    found |= {f"{name}_train": loss(rules[name], shown.x[:300], s.t, s.seed) for name in ("network", "memoriser")}
    found["smoothed_test"] = min(value for name, value in found.items() if name.startswith("smoothed"))
    return {name: found[name] for name in LOSSES} | facts


run = experiment.run


def about(setting: Setting) -> dict:
    """What the checkpoint depends on: the setting of one network."""
    names = ("channels", "steps", "batch", "lr")
    return {"experiment": "denoising_from_scratch", "version": experiment.version, "n": 1500, "seed": 0,
            **{name: getattr(setting, name) for name in names}}


def opened() -> Denoise:
    """The network of 1500 pictures and seed 0 of the stored run, from the checkpoint that comes with the library.

    Its weights are stored as float16 and computed with as float32.
    """
    longer = experiment.setting("longer")
    weights = checkpoints.load(experiment.path(".safetensors"), about(longer), dtype=torch.float32)
    return predictor(untrained(longer, 0), weights)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of the larger run: losses and distances, and one network as its checkpoint."""
    longer = experiment.setting("longer")
    network = untrained(longer, 0)
    vector = torch.from_numpy(np.array(dataset.weights.sel(n=1500, seed=0)))
    nn.utils.vector_to_parameters(vector, network.parameters())
    checkpoints.save(experiment.path(".safetensors"), network.state_dict(), about(longer), torch.float16)
    return dataset.drop_vars("weights").astype("float32")
