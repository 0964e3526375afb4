r"""A transformer learns to learn: linear regression from the examples of a prompt, without a change of its weights.

Claim (Garg et al. 2022, Section 3; an observation, not a theorem): a causal transformer, trained on prompts
:math:`x_1, y_1, \dots, x_n, y_n` with a fresh task each, predicts the next label about as well as least squares. What
it is held against is exact: without noise the risk of least squares, :math:`\max(0, d - k)` after k examples, is a
floor for every rule.

The literature's network has 12 layers of width 256 and sees 32 million prompts: `Setting.standard`, for a GPU. The
presets `book` and `paper` are what one core trains in seconds and in ten minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

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
from flbook.runs import Grid, axis, checkpoints, labelled, results, sweeps
from flbook.runs.sweep import training_file
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, pretrain

VERSION = 1

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

    @classmethod
    def tiny(cls) -> "Setting":
        """Every model and law, after twenty steps of one narrow layer."""
        return cls(seed=(0, 1), points=20, k=(1, 2, 6), width=8, layers=1, heads=2, steps=20, batch=8)

    @classmethod
    def paper(cls) -> "Setting":
        """The network that one core trains in ten minutes: not the literature's, `standard` is."""
        return cls(d=8, n=16, k=(1, 2, 4, 6, 8, 10, 12, 14, 16), width=64, steps=13000, lr=2e-3)

    @classmethod
    def standard(cls) -> "Setting":
        """The literature's network and training, in half precision: hours on a GPU."""
        return cls(d=20, n=40, k=(1, 5, 10, 15, 20, 25, 30, 35, 40), width=256, layers=12, heads=8, sigma_0=0.02,
                   steps=500_000, lr=1e-4, decay="constant", beta_2=0.999, precision="bfloat16")


def measure(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Train the networks and test everything; the trained weights are among the variables.

    Training that takes minutes or more keeps a checkpoint in the cache, and resumes from it after a kill.
    """
    long = setting.steps * setting.layers * setting.width > LONG
    network, history = train(setting, device, training_file(device, about(setting)) if long else None)
    networks = {"transformer": network}
    if "frozen" in setting.model:
        networks["frozen"] = frozen(setting, device)
    ends = np.linspace(0, setting.steps, min(BINS, setting.steps) + 1).astype(int)
    means = np.array([history.loss.values[a:b].mean() for a, b in zip(ends[:-1], ends[1:], strict=True)])
    weights = nn.utils.parameters_to_vector(network.parameters()).detach().cpu().numpy()
    return xr.Dataset(
        {
            "error": errors(setting, networks, device),
            "loss": ("step", means, {"long_name": "mean squared error over all positions", "units": "units of y²"}),
            "weights": ("weight", weights, {"long_name": "weights of the transformer", "units": "1"}),
        },
        {"step": ("step", ends[1:], {"long_name": "training step", "units": "1"})},
    )


run = sweeps(measure)


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


def errors(setting: Setting, networks: dict[str, nn.Module], device: str = "cpu") -> xr.DataArray:
    """Squared error at the query over the answer's variance; dimensions (model, law, seed, k)."""
    found = np.full([len(axis) for axis in (setting.model, setting.law, setting.seed, setting.k)], np.nan)
    for column, k in enumerate(setting.k):
        rules = predictors(setting, k, networks)
        for row, law in enumerate(setting.law):
            if law == "orthogonal query" and k >= setting.d:
                continue  # there is none
            data = ShiftedPrompts(k, setting.d, law)
            prompts = data.draw(setting.points, setting.seed, step=k, device=device)
            for place, name in enumerate(setting.model):
                error = (rules[name](prompts.context, prompts.query) - prompts.target).square().mean((-2, -1))
                found[place, row, :, column] = (error / data.variance).cpu().numpy()
    return xr.DataArray(found, setting.coordinates(), ("model", "law", "seed", "k"),
                        attrs={"long_name": "squared error / variance of the answer", "units": "1"})


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


def fine_tuned(setting: Setting, network: nn.Module, k: int, steps: int = 200, points: int = 10) -> xr.DataArray:
    """Squared error at the query over the answer's variance if each prompt fine-tunes a copy of its own on k examples.

    Means over `points` prompts a seed; dimension (seed).
    """
    prompts = LinearPrompts(k, setting.d).draw(points, setting.seed, step=k, dtype=torch.float32)
    context, query, target = prompts[:3]
    copies = untrained(setting, tuple(range(target.numel())))
    predict = predictor(adaptation.fine_tune(copies, network, context, Recipe(steps, 1, warmup=0)))
    query = query.flatten(0, 1)[:, None]
    error = (predict(Context(query[..., :0, :], query[..., :0, 0]), query).reshape(target.shape) - target).square()
    return xr.DataArray(error.mean((-2, -1)).numpy() / setting.d, {"seed": list(setting.seed)}, ("seed",),
                        attrs={"long_name": "squared error / variance of the answer", "units": "1"})


def restored(setting: Setting, weights: xr.DataArray | np.ndarray) -> PromptTransformer:
    """The trained network, from what `measure` kept of it."""
    network = untrained(setting)
    nn.utils.vector_to_parameters(torch.from_numpy(np.array(weights)), network.parameters())
    return network.requires_grad_(False)


def about(setting: Setting) -> dict:
    """What a checkpoint's weights depend on: the setting without the axes of the test."""
    return {"experiment": "what_is_icl", "version": VERSION, **{
        name: value for name, value in vars(setting).items() if name not in ("model", "law", "k", "seed", "points")}}


def opened(setting: Setting | None = None) -> PromptTransformer:
    """The network of the paper scale, from the checkpoint that comes with the library.

    Its weights are stored as float16 and computed with as float32. Raises ValueError for another setting.
    """
    setting = setting or Setting.paper()
    network = untrained(setting)
    network.load_state_dict(checkpoints.stored("what_is_icl", about(setting)))
    return network.requires_grad_(False)


def stored(dataset: xr.Dataset) -> xr.Dataset:
    """What the package keeps of the paper scale: errors in single precision here, the weights as its checkpoint."""
    setting = Setting.paper()
    weights = restored(setting, dataset.weights).state_dict()
    checkpoints.save(results.path("what_is_icl", ".safetensors"), weights, about(setting), torch.float16)
    kept = dataset.drop_vars("weights")
    return kept.assign(error=kept.error.astype("float32", keep_attrs=True))
