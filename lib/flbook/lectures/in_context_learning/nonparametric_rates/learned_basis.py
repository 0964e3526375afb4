r"""Functions in context when the basis has to be learned: a small network under linear attention, pretrained on T prompts.

The functions are random combinations of eight hidden features, products of order-2 splines in two of eight inputs. The
network (8, 32, 32, 32) and Adam at rate 0.02 are those of Kim, Nakamaki and Suzuki (2024), Section 5; T, n and the
number of steps are smaller in the book's preset. Rivals: the same attention on features left at their random start,
kernel ridge regression on the prompt alone at its best width and ridge, and what knows the hidden features.
"""  # noqa: E501

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flbook import devices
from flbook.data.prompts import Prompts, map_tensors
from flbook.domains import Count, Natural, NonNegative, Positive
from flbook.estimators import KernelRidge, Ridge
from flbook.lectures.in_context_learning.nonparametric_rates import power_laws as theory
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import FunctionPrompts
from flbook.lectures.in_context_learning.nonparametric_rates.splines import HiddenSplines
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.lectures.in_context_learning.shared.prompt_pool import PromptPool, taken
from flbook.models import kernels
from flbook.models.activations import relu
from flbook.models.layers import MLP
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, pretrain

MODELS = ("learned features", "frozen features", "kernel ridge", "attention on the basis", "ridge on the basis")
TEST_PROMPTS = 128


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: short prompts, few of them and many."""

    n: tuple[Count, ...] = axis([64], "examples n")  # of a prompt
    T: tuple[Count, ...] = axis([64, 1024], "pretraining prompts T")
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # each has hidden features of its own
    d: Count = 8
    hidden: Count = 8  # features that the functions are made of
    width: Count = 32  # neurons of either hidden layer, and learned features
    s: Positive = 0.5  # decay of the coefficients, variances j^(-2s-1), adding up to 1
    noise: NonNegative = 0.1  # sigma_y
    queries: Count = 8  # labelled queries on each context
    steps: Count = 240
    batch: Count = 32
    lr: Positive = 0.02

    def check(self) -> None:
        """Refuse more hidden features than there are."""
        self.data(self.n[0], self.seed[0])

    def data(self, n: int, seed: int) -> FunctionPrompts:
        """Prompts on the features of one seed."""
        basis = HiddenSplines(self.hidden, self.d, seed=seed)
        return FunctionPrompts(basis, tuple(self.variance().tolist()), n, self.noise, self.queries)

    def variance(self) -> np.ndarray:
        """Of the coefficients."""
        variance = np.arange(1.0, self.hidden + 1) ** (-2 * self.s - 1)
        return variance / variance.sum()


experiment = Experiment(
    Setting, version=1, loops=("n", "T"), chunk={"n": 1, "T": 1}, stored="paper",
    gives={
        "risk": ("risk R", "1", ("model", "n", "T", "seed")),
        "train": ("squared error on pretraining prompts", "1"),
    },
    beside={"model": (MODELS, "model")},
    presets={
        "tiny": ("Two hidden features of two inputs, few prompts and some more", dict(
            n=(12,), T=(8, 64), seed=(0, 1), d=2, hidden=2, width=8, queries=4, steps=80, batch=8, s=1.0)),
        "paper": ("The paper's T = n = 512 and 50 passes of it in batches of 64, with fewer and more of both", dict(
            n=(64, 512), T=(128, 512, 2048), seed=tuple(range(5)), steps=400, batch=64)),
    },
)
experiment.kept(single_precision)


@experiment.shared("n")
def test_and_rivals(s: Setting, device: str) -> tuple[Prompts, Tensor]:
    """The test prompts of one length, and the risk on them of the rivals that see no pretraining."""
    test = Laws(s, s.n).draw(TEST_PROMPTS, s.seed, 1, devices.device(device))
    return test, torch.stack([kernel_ridge(s, test), *by_basis(s, s.n, test)])


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Risk on fresh prompts of all models; ``train`` is that of learned features on their own prompts."""
    test, rivals = test_and_rivals(s, device)
    models = [learned(s, s.n, s.T, frozen, device) for frozen in (False, True)]
    with torch.no_grad():
        own = torch.stack([error(model(test.context, test.query), test.target) for model in models])
        pool = Laws(s, s.n).draw(min(s.T, TEST_PROMPTS), s.seed, 0, devices.device(device))
        train = error(models[0](pool.context, pool.query), pool.observed)
    return {"risk": torch.cat([own, rivals]), "train": train}


run = experiment.run


@dataclass(frozen=True)
class Laws:
    """The prompts of all seeds, each on the features of its own seed."""

    setting: Setting
    n: int

    def draw(self, batch: int, seed: tuple[int, ...], step: int = 0, device="cpu",
             dtype: torch.dtype = torch.float32) -> Prompts:
        """One batch, (*seeds, batch, n, d)."""
        first, *rest = [self.setting.data(self.n, one).draw(batch, one, step, device, dtype) for one in seed]
        return map_tensors(first, lambda *parts: torch.stack(parts), *rest)


def error(predictions: Tensor, target: Tensor) -> Tensor:
    """Mean squared error of each seed."""
    return (predictions - target).square().mean((-2, -1))


class CubeFeatures(MLP):
    """Features of points in the unit cube, moved to [-1, 1] so that the kinks of the first layer lie inside."""

    def forward(self, x: Tensor) -> Tensor:
        """Features of n points."""
        return super().forward(2 * x - 1)


class FeatureAttention(LinearAttention):
    r"""Attention on the network's features, one for each seed; Gamma starts as :math:`I/(2\sqrt N)` for N features.

    Source: Kim, Nakamaki and Suzuki (2024), Section 2 and the sizes of Section 5.
    """

    def __init__(self, setting: Setting, frozen: bool = False):
        widths = (setting.d, setting.width, setting.width, setting.width)
        features = CubeFeatures(widths, relu, gain=2.0, spread=0.5, seed=setting.seed).requires_grad_(not frozen)
        gamma = torch.eye(setting.width) / (2 * setting.width**0.5)
        super().__init__(gamma.expand(len(setting.seed), 1, -1, -1), features=features)

    def named_parameters(self, *args, **kwargs):
        """Gamma last: in this order the lengths of gradients were summed when the stored results were made."""
        return iter(sorted(super().named_parameters(*args, **kwargs), key=lambda one: one[0] == "gamma"))


def learned(setting: Setting, n: int, T: int, frozen: bool, device: str = "cpu") -> FeatureAttention:
    r"""Attention pretrained on T prompts, its features with it or left at their start."""
    model = FeatureAttention(setting, frozen)
    recipe = Recipe(setting.steps, setting.batch, setting.lr, warmup=10, decay="linear")
    return pretrain(model, PromptPool(Laws(setting, n), T), recipe, setting.seed, device).model


def kernel_ridge(setting: Setting, test: Prompts) -> Tensor:
    """The Gaussian kernel on the prompt alone, at the width and the ridge that are best on the test prompts."""
    found = []
    for width in (0.3, 0.5, 0.8, 1.2):
        kernel = kernels.distance(lambda t, width=width: torch.exp(-t / (2 * width**2)))
        for lam in (0.01, 0.03, 0.1, 0.3):
            found.append(error(KernelRidge(kernel, lam)(test.context, test.query), test.target))
    found = torch.stack(found)
    return found[found.mean(-1).argmin()]


def by_basis(setting: Setting, n: int, test: Prompts) -> list[Tensor]:
    """Attention and ridge regression on the hidden features; (2, seed)."""
    variance = setting.variance()
    ridge = Ridge(torch.diag(torch.tensor(setting.noise**2 / variance)))
    gamma = torch.diag(torch.tensor(theory.best_attention(variance, setting.noise, n).gamma)).to(test.query)
    rows = []
    for k, seed in enumerate(setting.seed):
        features = setting.data(n, seed).basis.features
        one = taken(test, torch.arange(TEST_PROMPTS, device=test.query.device).expand(len(setting.seed), -1))
        context, query, target = Context(*(part[k] for part in one.context)), one.query[k], one.target[k]
        inside = Context(features(context.x), context.y)
        attention = LinearAttention(gamma, features=features).requires_grad_(False)
        rows.append(torch.stack([error(attention(context, query), target),
                                 error(ridge(inside, features(query)), target)]))
    return list(torch.stack(rows, -1))
