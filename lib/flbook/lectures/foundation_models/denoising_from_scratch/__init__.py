r"""Denoising from scratch: what a network adds to the loss it is trained on, on handwritten digits.

Claim (derived on the page): over all functions, the minimiser of the denoising loss on a training set is the Bayes
denoiser of that set, which samples training pictures. A convolutional network trained on the same loss (Ho et al. 2020,
equation 14) does not come near it, and denoises new pictures better where the noise is small.
"""

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
from flbook.runs import Grid, axis, checkpoints, labelled, results, sweeps
from flbook.training.fit import fit
from flbook.training.optimizers import Adam
from flbook.training.problem import Params

VERSION = 1

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

    @classmethod
    def tiny(cls) -> "Setting":
        """Two networks of two channels after three steps."""
        return cls(n=(40, 60), seed=(0, 1), t=(60, 300), channels=2, steps=3, batch=4, samples=3,
                   sampling_steps=4)

    @classmethod
    def paper(cls) -> "Setting":
        """Ten networks on many pictures, and ten on few: ten minutes of one core."""
        return cls(n=(100, 1500), seed=tuple(range(10)), steps=2500)

    @classmethod
    def longer(cls) -> "Setting":
        """Wider networks, trained forty times as long, on more sizes of the training set: for a GPU."""
        return cls(n=(30, 100, 300, 1000, 1500), seed=tuple(range(10)), channels=64, steps=100_000, lr=1e-3,
                   batch=128)

    def check(self) -> None:
        """Refuse what the pictures and the schedule do not have."""
        if max(self.n) > 1500:
            raise ValueError(f"n must be at most 1500, so that pictures are left to test on; got {max(self.n)}")
        if max(self.t) > SCHEDULE.steps or self.sampling_steps > SCHEDULE.steps:
            raise ValueError(f"t and sampling_steps must be at most {SCHEDULE.steps}, the steps of the schedule; got "
                             f"{max(self.t)} and {self.sampling_steps}")


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


def drawn(rule: Denoise, setting: Setting, seed: int) -> Tensor:
    """Pictures sampled from pure noise, in `sampling_steps` steps."""
    times = np.linspace(SCHEDULE.steps, 0, setting.sampling_steps + 1).round().astype(int)[:-1]
    *_, (_, x) = reverse_path(rule, SCHEDULE, (setting.samples, 1, 8, 8), seed, times.tolist())
    return x


def memoriser(shown: Pictures) -> Denoise:
    """The exact minimiser of the training loss, called like a network."""
    mixture = PointMixture(shown.x.flatten(1).double())
    return lambda x, t: mixture.noise(x.flatten(1).double(), SCHEDULE.kept(t)).reshape(x.shape).to(x)


def cell(setting: Setting, n: int, seed: int, device: str) -> tuple[dict[str, list], dict[str, float], np.ndarray]:
    """Losses by t, distances to the nearest training picture, and the weights, of one network and its rivals."""
    shown, params = pictures(n, seed), train(setting, n, seed, device)
    predict = predictor(untrained(setting, seed).to(device), params)
    seen, losses = shown.x[:300], {}
    for t in setting.t:
        rules = {name: on_pictures(rule) for name, rule in rivals(shown, t).items()} | {"network": predict}
        at = {f"{name}_test": loss(rule, shown.x_test, t, seed) for name, rule in rules.items()}
        at |= {f"{name}_train": loss(rules[name], seen, t, seed) for name in ("network", "memoriser")}
        at["smoothed_test"] = min(value for name, value in at.items() if name.startswith("smoothed"))
        for name, value in at.items():
            losses.setdefault(name, []).append(value)
    distance = {"network": drawn(predict, setting, seed), "memoriser": drawn(memoriser(shown), setting, seed),
                "test": shown.x_test}
    medians = {name: float(nearest(x, shown.x).median()) for name, x in distance.items()}
    return losses, medians, nn.utils.parameters_to_vector(params.values()).cpu().numpy()


LOSSES = {"network_test": "network, new pictures", "network_train": "network, training pictures",
          "memoriser_test": "memoriser, new pictures", "memoriser_train": "memoriser, training pictures",
          "smoothed_test": "smoothed memoriser, new pictures", "wiener_test": "Wiener filter, new pictures",
          "class_gaussians_test": "Gaussian per class, new pictures"}  # fmt: skip


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Losses a pixel over (n, seed, t); distances and the trained weights over (n, seed)."""
    cells = [cell(setting, n, seed, device) for n in setting.n for seed in setting.seed]
    shape = (len(setting.n), len(setting.seed))
    variables = {name: (("n", "seed", "t"), np.array([losses[name] for losses, _, _ in cells]).reshape(*shape, -1),
                        f"loss per pixel: {words}") for name, words in LOSSES.items()}
    variables |= {f"distance_{name}": (("n", "seed"), np.array([median[name] for _, median, _ in cells]).reshape(shape),
                                       f"distance of {name} to the nearest training picture, median")
                  for name in ("network", "memoriser", "test")}
    weights = np.array([vector for *_, vector in cells]).reshape(*shape, -1)
    variables["weights"] = (("n", "seed", "weight"), weights, "weights of the trained network")
    return labelled(variables, setting.coordinates())


run = sweeps(measure, chunk={"n": 1, "seed": 1})


def about(setting: Setting) -> dict:
    """What the checkpoint depends on: the setting of one network."""
    names = ("channels", "steps", "batch", "lr")
    return {"experiment": "denoising_from_scratch", "version": VERSION, "n": 1500, "seed": 0,
            **{name: getattr(setting, name) for name in names}}


def opened() -> Denoise:
    """The network of 1500 pictures and seed 0 at the paper's scale, from the checkpoint that comes with the library.

    Its weights are stored as float16 and computed with as float32.
    """
    paper = Setting.paper()
    network = untrained(paper, 0)
    return predictor(network, checkpoints.stored("denoising_from_scratch", about(paper)))


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of the paper scale: losses and distances, and one network as its checkpoint."""
    paper = Setting.paper()
    network = untrained(paper, 0)
    vector = torch.from_numpy(np.array(dataset.weights.sel(n=1500, seed=0)))
    nn.utils.vector_to_parameters(vector, network.parameters())
    checkpoints.save(results.path("denoising_from_scratch", ".safetensors"), network.state_dict(), about(paper),
                     torch.float16)
    return dataset.drop_vars("weights").astype("float32")
