r"""Which rule a network reads prompts by is decided by the law of the prompts that it was trained on.

Claim (Garg et al. 2022, Section 4, and Raventos et al. 2023; observations): training on prompts of one law leaves a
network close to the Bayes rule of that law, and of no other. Ten starts for each of three laws, tested on laws that
training showed and on others.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
import xarray as xr
from torch import Tensor, nn

from flbook import rng
from flbook.data.prompts import Prompts, map_tensors
from flbook.domains import Count, Natural
from flbook.lectures.in_context_learning import what_is_icl
from flbook.lectures.in_context_learning.what_is_icl.shifted_prompts import Shift, ShiftedPrompts
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, checkpoints, single_precision
from flbook.training.pretrain import pretrain

Law = Literal["plain", "noisy labels", "inputs × 1 or 3"]
Model = Literal["transformer", "least squares", "ridge", "one gradient step", "averaging", "3 neighbours"]
TESTED: tuple[Shift, ...] = ("as in training", "noisy labels", "inputs × 3", "inputs × ⅓", "labels × 3")
OTHERS = 1000  # added to a seed: training prompts are none of the test's


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; the networks are those of `what_is_icl`. In the book: a short training."""

    trained_on: tuple[Law, ...] = axis(get_args(Law), "law of the training prompts")
    law: tuple[Shift, ...] = axis(TESTED, "law of the test prompts")
    model: tuple[Model, ...] = axis(get_args(Model), "model")
    k: tuple[Count, ...] = axis((3, 6), "examples in the prompt k")
    seed: tuple[Natural, ...] = axis(range(2), "seed")  # of a network's start, of its training and of its test
    points: Count = 100  # test prompts of a seed
    d: Count = 3
    n: Count = 8  # examples of a training prompt
    width: Count = 32
    layers: Count = 3
    steps: Count = 100


experiment = Experiment(
    Setting, version=1, loops=("trained_on", "law"), left=("model", "seed", "k"), stored="longer",
    gives={
        "error": what_is_icl.ERROR[:2],
        "cosine": ("cosine to the weights of least squares", "1", ("trained_on", "model", "seed", "k")),
        "weights": ("weights of the transformers", "1", ("trained_on", "seed", "weight")),
    },
    presets={
        "tiny": ("Two laws, twenty steps of one narrow layer", dict(
            trained_on=("plain", "inputs × 1 or 3"), law=TESTED[:2], points=10, k=(2,), width=8, layers=1, steps=20)),
        "longer": ("Ten starts, each trained for what one core does in a quarter of a minute", dict(
            k=tuple(range(1, 9)), seed=tuple(range(10)), steps=1500)),
    },
)  # fmt: skip


@dataclass(frozen=True)
class TwoScales:
    """Prompts of n examples in d dimensions, of which half have inputs three times as large."""

    n: int
    d: int

    def draw(self, batch: int, seed: int | tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float64) -> Prompts:
        """One batch, a pure function of (seed, step)."""
        plain, large = (ShiftedPrompts(self.n, self.d, law).draw(batch, seed, step, device, dtype)
                        for law in ("as in training", "inputs × 3"))
        grow = rng.normal((batch,), seed, f"scale, step {step}", device, dtype) > 0
        return map_tensors(plain, lambda one, other: torch.where(
            grow.reshape(*grow.shape, *[1] * (one.ndim - grow.ndim)), other, one), large)


def base(s: Setting) -> what_is_icl.Setting:
    """The setting of the lecture's experiment with these sizes."""
    names = ("model", "k", "seed", "points", "d", "n", "width", "layers", "steps")
    return what_is_icl.Setting(**{name: getattr(s, name) for name in names})


def law_of(s: Setting) -> TwoScales | ShiftedPrompts:
    """The training prompts of a cell."""
    if s.trained_on == "inputs × 1 or 3":
        return TwoScales(s.n, s.d)
    return ShiftedPrompts(s.n, s.d, "as in training" if s.trained_on == "plain" else s.trained_on)


@experiment.shared("trained_on")
def learned(s: Setting, device: str) -> tuple[PromptTransformer, Tensor]:
    """One network for each seed, trained on one law, and the cosines of the weights that all models imply."""
    plain = base(s)
    network, seeds = what_is_icl.untrained(plain, s.seed), tuple(seed + OTHERS for seed in s.seed)
    network = pretrain(network, law_of(s), what_is_icl.recipe(plain), seeds, device).model
    return network, torch.from_numpy(what_is_icl.mechanism(plain, {"transformer": network}, device).cosine.values)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Errors of the networks of one law on prompts of another, and the weights that they imply."""
    network, cosine = learned(s, device)
    weights = torch.cat([p.detach().flatten(1) for p in network.parameters()], -1)
    return {"error": errors(s, s.law, network, device), "cosine": cosine, "weights": weights}


def errors(s: Setting, law: Shift, network: nn.Module, device: str = "cpu") -> Tensor:
    """Squared errors over the answer's variance of given networks under a law, shape (model, seed, k)."""
    plain = base(s)
    return torch.stack([what_is_icl.asked(plain, law, k, {"transformer": network}, device) for k in s.k], -1)


run = experiment.run


def about(s: Setting) -> dict:
    """What the weights of the plain law depend on."""
    names = ("seed", "d", "n", "width", "layers", "steps")
    return {"experiment": "training_laws", "version": experiment.version} | {n: getattr(s, n) for n in names}


def opened(seed: tuple[int, ...] | None = None) -> PromptTransformer:
    """The networks of the plain law from the checkpoint that comes with the library, those of some seeds or all.

    Their weights are stored as float16 and computed with as float32.
    """
    s = experiment.setting("longer")
    network = what_is_icl.untrained(base(s), seed or s.seed)
    kept = checkpoints.load(experiment.path(".safetensors"), about(s), dtype=torch.float32)
    places = [s.seed.index(one) for one in seed or s.seed]
    network.load_state_dict({name: tensor[places] for name, tensor in kept.items()})
    return network.requires_grad_(False)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of the larger run: errors in single precision here, weights of the plain law elsewhere."""
    s = experiment.setting("longer")
    network = what_is_icl.untrained(base(s), s.seed)
    flat = torch.from_numpy(dataset.weights.sel(trained_on="plain").values)
    sizes = [p[0].numel() for p in network.parameters()]
    weights = {name: part.reshape(p.shape) for (name, p), part in
               zip(network.named_parameters(), flat.split(sizes, -1), strict=True)}
    checkpoints.save(experiment.path(".safetensors"), weights, about(s), torch.float16)
    return single_precision(dataset.drop_vars("weights"))
