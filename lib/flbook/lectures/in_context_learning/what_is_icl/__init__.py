r"""A transformer learns to learn: linear regression from the examples of a prompt, without a change of its weights.

Claim (Garg et al. 2022, Section 3; an observation, not a theorem): a causal transformer, trained on prompts
:math:`x_1, y_1, \dots, x_n, y_n` with a fresh task each, predicts the next label about as well as least squares. What
it is held against is exact: without noise the risk of least squares, :math:`\max(0, d - k)` after k examples, is a
floor for every rule.

The literature's network has 12 layers of width 256 and sees 32 million prompts: the preset `gpu`. The presets `book`
and `longer` are what one core trains in seconds and in ten minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from flbook.data.prompts import LinearPrompts
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.estimators.in_context import Averaging, GradientStep, LeastSquares, NearestNeighbours, Ridge
from flbook.lectures.in_context_learning.what_is_icl import adaptation
from flbook.lectures.in_context_learning.what_is_icl.shifted_prompts import SHIFTS, Shift, ShiftedPrompts
from flbook.models.transformer import PromptTransformer
from flbook.runs import Experiment, Grid, axis, checkpoints, labelled
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, pretrain

Model = Literal["transformer", "frozen", "least squares", "ridge", "one gradient step", "averaging", "3 neighbours"]
BINS = 100  # of the loss over training steps
LONG = 10**6  # steps times layers times width from which training keeps checkpoints
READ_OUT_STEPS = 300  # of training for the frozen network, whose read-out alone learns


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: a network that one core trains in a quarter of a minute."""

    model: tuple[Model, ...] = axis(get_args(Model), "model")
    law: tuple[Shift, ...] = axis(SHIFTS, "law of the prompts")  # at the test; training always sees the first
    k: tuple[Count, ...] = axis(range(1, 9), "examples in the prompt k")  # before the query at the test
    seed: tuple[Natural, ...] = axis(range(12), "seed")  # of groups of test prompts
    points: Count = 100  # prompts of a group
    d: Count = 3  # dimension
    n: Count = 8  # examples of a training prompt
    width: Count = 32
    layers: Count = 3
    heads: Count = 2
    sigma_0: NonNegative = 0.1  # initial weights; GPT-2's 0.02 waits longer at the start
    steps: Count = 1500
    batch: Count = 64
    lr: Positive = 4e-3
    warmup: Natural = 100
    decay: Literal["cosine", "linear", "constant"] = "cosine"
    beta_2: Fraction = 0.98
    precision: Literal["float32", "bfloat16"] = "float32"
    start: Natural = 0  # seed of the initial weights and the training prompts


ERROR = ("squared error / variance of the answer", "1", ("model", "law", "seed", "k"))
experiment = Experiment(
    Setting, version=1, loops=("law", "k"), left=("model", "seed"), stored="longer",
    gives={
        "error": ERROR,
        "loss": ("mean squared error over all positions", "units of y²", ("step",)),
        "weights": ("weights of the transformer", "1", ("weight",)),
    },
    beside={"step": (lambda s: ends(s)[1:], "training step")},
    presets={
        "tiny": ("Every model and law, after twenty steps of one narrow layer", dict(
            seed=(0, 1), points=20, k=(1, 2, 6), width=8, layers=1, heads=2, steps=20, batch=8)),
        "longer": ("The network that one core trains in ten minutes", dict(
            d=8, n=16, k=(1, 2, 4, 6, 8, 10, 12, 14, 16), width=64, steps=13000, lr=2e-3)),
        "gpu": ("The literature's network and training, in half precision: hours on a GPU", dict(
            d=20, n=40, k=(1, 5, 10, 15, 20, 25, 30, 35, 40), width=256, layers=12, heads=8, sigma_0=0.02,
            steps=500_000, lr=1e-4, decay="constant", beta_2=0.999, precision="bfloat16")),
    },
)


class TrainedNetworks(NamedTuple):
    """The networks after training, with the loss of the transformer on the way and its weights."""

    networks: dict[str, nn.Module]
    loss: np.ndarray  # means over steps
    weights: Tensor


@experiment.shared()
def learned(s: Setting, device: str) -> TrainedNetworks:
    """The networks, which every law and length asks.

    Training that takes minutes or more keeps a checkpoint in the cache, and resumes from it after a kill.
    """
    long = s.steps * s.layers * s.width > LONG
    network, history = train(s, device, experiment.training_file(device, about(s)) if long else None)
    networks = {"transformer": network}
    if "frozen" in s.model:
        networks["frozen"] = frozen(s, device)
    means = [history.loss.values[a:b].mean() for a, b in pairwise(ends(s))]
    return TrainedNetworks(networks, np.array(means), nn.utils.parameters_to_vector(network.parameters()))


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor | np.ndarray]:
    """Errors under one law at one length; the loss while training, and the trained weights."""
    networks, loss, weights = learned(s, device)
    return {"error": asked(s, s.law, s.k, networks, device), "loss": loss, "weights": weights}


run = experiment.run


def ends(setting: Setting) -> np.ndarray:
    """The steps between which the loss is averaged."""
    return np.linspace(0, setting.steps, min(BINS, setting.steps) + 1).astype(int)


def recipe(setting: Setting) -> Recipe:
    """How the network is trained."""
    names = ("steps", "batch", "lr", "warmup", "decay", "beta_2", "precision")
    return Recipe(**{name: getattr(setting, name) for name in names})


def untrained(setting: Setting, seed: int | tuple[int, ...] | None = None) -> PromptTransformer:
    """The network before training; other seeds than the setting's give other starts, or an ensemble of them."""
    return PromptTransformer(setting.d, setting.n, setting.width, setting.layers, setting.heads, setting.sigma_0,
                             seed=setting.start if seed is None else seed)


def train(setting: Setting, device: str = "cpu", checkpoint=None) -> tuple[PromptTransformer, xr.Dataset]:
    """The network after training on fresh prompts, and its loss step by step."""
    data = LinearPrompts(setting.n, setting.d)
    return pretrain(untrained(setting), data, recipe(setting), setting.start, device, checkpoint=checkpoint)


def frozen(setting: Setting, device: str = "cpu") -> PromptTransformer:
    """The rival that learns no feature: the untrained network, its read-out trained."""
    network = untrained(setting)
    for name, p in network.named_parameters():
        p.requires_grad_(name.startswith("read_out"))
    short = Recipe(steps=READ_OUT_STEPS, batch=setting.batch, lr=0.02, warmup=10)
    return pretrain(network, LinearPrompts(setting.n, setting.d), short, setting.start, device).model


def predictor(network: nn.Module) -> Callable[[Context, Tensor], Tensor]:
    """A network called like an estimator: in its own precision, without gradients."""

    @torch.no_grad()
    def predict(context: Context, query: Tensor) -> Tensor:
        like = next(network.parameters())
        return network(Context(*(part.to(like) for part in context)), query.to(like)).to(query)

    return predict


def predictors(setting: Setting, k: int, networks: dict[str, nn.Module]) -> dict[str, Callable]:
    """Everything that answers a prompt of k examples, by name."""
    rules = {"least squares": LeastSquares(), "ridge": Ridge(1.0), "averaging": Averaging(),
             "one gradient step": GradientStep(k / (k + setting.d + 1)), "3 neighbours": NearestNeighbours(3)}
    return rules | {name: predictor(network) for name, network in networks.items()}


def asked(setting: Setting, law: str, k: int, networks: dict[str, nn.Module], device: str = "cpu") -> Tensor:
    """Squared error at the query over the answer's variance, after k examples under one law; shape (model, seed)."""
    if law == "orthogonal query" and k >= setting.d:
        return torch.full((len(setting.model), len(setting.seed)), torch.nan)  # there is none
    data, rules = ShiftedPrompts(k, setting.d, law), predictors(setting, k, networks)
    prompts = data.draw(setting.points, setting.seed, step=k, device=device)
    found = [(rules[name](prompts.context, prompts.query) - prompts.target).square().mean((-2, -1))
             for name in setting.model]
    return torch.stack(found) / data.variance


def errors(setting: Setting, networks: dict[str, nn.Module], device: str = "cpu") -> xr.DataArray:
    """The same of given networks under every law at every length; dimensions (model, law, seed, k)."""
    found = [[asked(setting, law, k, networks, device).cpu() for k in setting.k] for law in setting.law]
    table = torch.stack([torch.stack(row, -1) for row in found], 1)
    about, units, dims = ERROR
    return labelled({"error": (dims, table, about, units)}, setting.coordinates()).error.rename(None)


def mechanism(setting: Setting, networks: dict[str, nn.Module], device: str = "cpu", points: int = 16) -> xr.Dataset:
    """Which weights each model answers with: cosine to those of least squares, and how linear it is in the query.

    Dimensions (model, seed, k); means over `points` prompts a seed.
    """
    shape = [len(axis) for axis in (setting.model, setting.seed, setting.k)]
    cosine, linear = np.full(shape, np.nan), np.full(shape, np.nan)
    for column, k in enumerate(setting.k):
        context = LinearPrompts(k, setting.d).draw(points, setting.seed, step=k, device=device).context
        rules = predictors(setting, k, networks)
        best, _ = adaptation.implied_weights(rules["least squares"], context)
        for place, name in enumerate(setting.model):
            weights, share = adaptation.implied_weights(rules[name], context)
            cosine[place, :, column] = torch.cosine_similarity(weights, best, dim=-1).mean(-1).cpu().numpy()
            linear[place, :, column] = share.mean(-1).cpu().numpy()
    dims = ("model", "seed", "k")
    return labelled({"cosine": (dims, cosine, "cosine to least squares"),
                     "linear": (dims, linear, "share of a straight line")}, setting.coordinates(*dims))


def restored(setting: Setting, weights: xr.DataArray | np.ndarray) -> PromptTransformer:
    """The trained network, from what a run kept of it."""
    network = untrained(setting)
    nn.utils.vector_to_parameters(torch.from_numpy(np.array(weights)), network.parameters())
    return network.requires_grad_(False)


def about(setting: Setting) -> dict:
    """What a checkpoint's weights depend on: the setting without the axes of the test."""
    return {"experiment": "what_is_icl", "version": experiment.version, **{
        name: value for name, value in vars(setting).items() if name not in ("model", "law", "k", "seed", "points")}}


def opened(setting: Setting | None = None) -> PromptTransformer:
    """The network of the preset `longer`, from the checkpoint that comes with the library.

    Its weights are stored as float16 and computed with as float32. Raises ValueError for another setting.
    """
    setting = setting or experiment.setting("longer")
    network = untrained(setting)
    network.load_state_dict(checkpoints.load(experiment.path(".safetensors"), about(setting), dtype=torch.float32))
    return network.requires_grad_(False)


@experiment.kept
def kept(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of the larger run: errors in single precision here, the weights as its checkpoint."""
    setting = experiment.setting("longer")
    weights = restored(setting, dataset.weights).state_dict()
    checkpoints.save(experiment.path(".safetensors"), weights, about(setting), torch.float16)
    left = dataset.drop_vars("weights")
    return left.assign(error=left.error.astype("float32", keep_attrs=True))
