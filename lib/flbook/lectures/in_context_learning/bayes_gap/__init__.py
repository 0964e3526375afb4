r"""The risk of in-context learning is a Bayes gap plus a posterior variance; pretraining moves only the first.

Claims (Wakayama and Suzuki 2025, as reported): the two parts add up exactly; the gap of a uniform-attention network
falls with the number N of pretraining prompts; of the posterior variance, what comes from not knowing the task's type
falls exponentially in the number of examples, the rest as for who knows the type.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from flbook import devices
from flbook.data.prompt_pool import PromptPool
from flbook.data.prompts import Prompts
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import PlanePrompts, SignPrompts
from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.runs import settings
from flbook.runs.sweep import sweep
from flbook.training.pretrain import Recipe, pretrain

VERSION = 1
MODELS = {"told k": {}, "not told k": {"told": False}, "frozen features": {"frozen": True}}
NOISE = {"discrete": ((-2.0, 0.0, 2.0), (0.25, 0.5, 0.25))}  # beside "Gaussian"


@dataclass(frozen=True)
class Setting:
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    model: tuple[str, ...] = ("told k",)
    N: tuple[int, ...] = (64, 256, 1024, 4096)  # pretraining prompts; 0: fresh ones at every step
    seed: tuple[int, ...] = tuple(range(10))
    n: int = 16  # longest context, and every shorter one
    noise: float = 2.0  # sigma_y
    law: str = "Gaussian"  # of the noise, or "discrete"
    features: int = 8
    width: int = 24
    steps: int = 400
    batch: int = 48
    lr: float = 0.01
    points: int = 4000  # test prompts

    @classmethod
    def book(cls) -> "Setting":
        """Four numbers of pretraining prompts."""
        return cls()

    @classmethod
    def rivals(cls) -> "Setting":
        """Other networks at the largest number of prompts."""
        return cls(model=("not told k", "frozen features"), N=(4096,))

    @classmethod
    def counting(cls) -> "Setting":
        """Noise of three values, contexts of one to four examples, fresh prompts: who is told k and who is not."""
        return cls(model=("told k", "not told k"), N=(0,), n=4, law="discrete", steps=700, batch=96)

    @classmethod
    def paper(cls) -> "Setting":
        """Up to 65536 prompts and longer training."""
        return cls(model=("told k", "not told k"), N=(64, 256, 1024, 4096, 16384, 65536), steps=1500, batch=64)

    def thinned(self, **fields) -> "Setting":
        """The same setting with some fields changed."""
        return replace(self, **fields)

    def data(self) -> SignPrompts:
        """The prompts."""
        return SignPrompts(self.n, self.noise, *NOISE.get(self.law, ((), ())))


def at_every_length(model: UniformAttention, prompts: Prompts) -> Tensor:
    """Mean squared error of a new label, over contexts of 1 to n examples; one number a seed."""
    x = prompts.query.expand(*prompts.context.x.shape)
    return (model.every(prompts.context, x) - prompts.observed).square().mean((-2, -1))


def trained(setting: Setting, name: str, N: int, device: str = "cpu") -> UniformAttention:
    """A network for every seed, pretrained on N prompts."""
    model = UniformAttention(1, setting.features, setting.width, seed=setting.seed, **MODELS[name])
    recipe = Recipe(setting.steps, setting.batch, setting.lr, warmup=20)
    return pretrain(model, PromptPool(setting.data(), N), recipe, setting.seed, device, at_every_length).model


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    r"""Parts of the risk on fresh prompts, mean over contexts of 1 to n; dimensions (model, N, seed).

    ``risk`` is :math:`E(M - f)^2`, ``gap`` :math:`E(M - E[f|P])^2`, ``variance`` :math:`E(E[f|P] - f)^2` and ``cross``
    twice the mean product of the two differences, which should be 0.
    """
    check(setting)
    where = devices.device(device)
    test = setting.data().draw(setting.points, setting.seed, -1, where, torch.float32)
    bayes = setting.data().bayes(test.context.y)[..., 1:]
    rows = []
    for name in setting.model:
        for N in setting.N:
            model = trained(setting, name, N, device)
            with torch.no_grad():
                guess = model.every(test.context, test.query.expand(*test.context.x.shape))
            rows.append(parts(guess, bayes, test.target))
    shape = (len(setting.model), len(setting.N))
    values = torch.stack(rows).unflatten(0, shape).movedim(2, 0).cpu().numpy()
    names = {"risk": "risk R", "gap": "Bayes gap", "variance": "posterior variance", "cross": "cross term"}
    labels = {"model": "network", "N": "pretraining prompts N", "seed": "seed"}
    return xr.Dataset(
        {name: (("model", "N", "seed"), value, {"long_name": text, "units": "1"})
         for (name, text), value in zip(names.items(), values, strict=True)},
        coords={name: (name, list(getattr(setting, name)), {"long_name": text, "units": "1"})
                for name, text in labels.items()})


def parts(guess: Tensor, bayes: Tensor, target: Tensor) -> Tensor:
    """Risk, Bayes gap, posterior variance and cross term of predictions (*S, batch, n), stacked; (4, *S)."""
    near, far = guess - bayes, bayes - target
    means = ((guess - target).square(), near.square(), far.square(), 2 * near * far)
    return torch.stack([one.mean((-2, -1)) for one in means])


@dataclass(frozen=True)
class Planes:
    """Two types of tasks; tuples are axes."""

    noise: tuple[float, ...] = (0.7, 1.0, 1.5)  # sigma_y
    seed: tuple[int, ...] = tuple(range(20))
    n: int = 48
    batch: int = 400  # prompts of a seed


def planes(setting: Planes, device: str = "cpu") -> xr.Dataset:
    """Posterior variance and its two parts after k = 0 ... n examples; dimensions (noise, seed, k)."""
    columns = []
    for noise in setting.noise:
        data = PlanePrompts(setting.n, noise, angles=96)
        for seed in setting.seed:
            prompts = data.draw(setting.batch, seed, 0, devices.device(device), torch.float32)
            found = data.posterior(prompts.context)
            columns.append(torch.stack([found.variance, found.known, found.cost]).double().mean(1))
    values = torch.stack(columns).unflatten(0, (len(setting.noise), -1)).movedim(2, 0).cpu().numpy()
    names = {"variance": "posterior variance", "known": "posterior variance, type known",
             "cost": "cost of not knowing the type"}
    labels = {"noise": "noise σ", "seed": "seed"}
    coords = {name: (name, list(getattr(setting, name)), {"long_name": text, "units": "1"})
              for name, text in labels.items()}
    return xr.Dataset(
        {name: (("noise", "seed", "k"), value, {"long_name": text, "units": "1"})
         for (name, text), value in zip(names.items(), values, strict=True)},
        coords={**coords, "k": ("k", np.arange(setting.n + 1), {"long_name": "examples k", "units": "1"})})


def check(setting: Setting) -> None:
    """Refuse what cannot be trained, before anything is."""
    settings.among("model", setting.model, MODELS)
    settings.among("law", (setting.law,), ("Gaussian", *NOISE))
    if min(setting.N) < 0:
        raise ValueError(f"N must not be negative, pretraining prompts (0: fresh ones at every step); got "
                         f"{min(setting.N)}")
    setting.data()
    Recipe(setting.steps, setting.batch, setting.lr)


def run(setting: Setting, device: str = "cpu", **how) -> xr.Dataset:
    """The sweep over all axes, cached and resumable; `how` goes to `flbook.runs.sweep.sweep`."""
    check(setting)
    return sweep(measure, setting, device=device, split=("model", "N"), cell_bytes=1, memory=len(setting.seed), **how)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """Of the paper's grid, what the package keeps: every run, in single precision."""
    return dataset.astype("float32", keep_attrs=True)
