r"""The risk of in-context learning is a Bayes gap plus a posterior variance; pretraining moves only the first.

Claims (Wakayama and Suzuki 2025, as reported): the two parts add up exactly; the gap of a uniform-attention network
falls with the number N of pretraining prompts; of the posterior variance, what comes from not knowing the task's type
falls exponentially in the number of examples, the rest as for who knows the type.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from flbook import devices
from flbook.data.prompts import Prompts
from flbook.domains import Count, Natural, Positive
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import SignPrompts
from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.lectures.in_context_learning.shared.prompt_pool import PromptPool
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.pretrain import Recipe, pretrain

MODELS = {"told k": {}, "not told k": {"told": False}, "frozen features": {"frozen": True}}
NOISE = {"discrete": ((-2.0, 0.0, 2.0), (0.25, 0.5, 0.25))}  # beside "Gaussian"


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on. In the book: four numbers of pretraining prompts."""

    model: tuple[Literal["told k", "not told k", "frozen features"], ...] = axis(["told k"], "network")
    N: tuple[Natural, ...] = axis([64, 256, 1024, 4096], "pretraining prompts N")  # 0: fresh ones at every step
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 16  # longest context, and every shorter one
    noise: Positive = 2.0  # sigma_y
    law: Literal["Gaussian", "discrete"] = "Gaussian"  # of the noise
    features: Count = 8
    width: Count = 24
    steps: Count = 400
    batch: Count = 48
    lr: Positive = 0.01
    points: Count = 4000  # test prompts

    def data(self) -> SignPrompts:
        """The prompts."""
        return SignPrompts(self.n, self.noise, *NOISE.get(self.law, ((), ())))


experiment = Experiment(
    Setting, version=1, loops=("model", "N"), chunk={"model": 1, "N": 1}, stored="longer",
    gives={
        "risk": ("risk R", "1"),
        "gap": ("Bayes gap", "1"),
        "variance": ("posterior variance", "1"),
        "cross": ("cross term", "1"),
    },
    presets={
        "tiny": ("Contexts of up to four examples, few prompts and many, hardly trained", dict(
            model=("told k", "frozen features"), N=(8, 400), seed=(0, 1), n=4, steps=10, batch=16, points=500)),
        "rivals": ("Other networks at the largest number of prompts", dict(
            model=("not told k", "frozen features"), N=(4096,))),
        "counting": ("Noise of three values, contexts of one to four examples, fresh prompts; told k or not", dict(
            model=("told k", "not told k"), N=(0,), n=4, law="discrete", steps=700, batch=96)),
        "longer": ("Up to 65536 prompts and longer training", dict(
            model=("told k", "not told k"), N=(64, 256, 1024, 4096, 16384, 65536), steps=1500, batch=64)),
    },
)
experiment.kept(single_precision)


@experiment.shared()
def fresh(s: Setting, device: str) -> tuple[Prompts, Tensor]:
    """The test prompts, and what Bayes answers to 1 to n of their examples."""
    test = s.data().draw(s.points, s.seed, -1, devices.device(device), torch.float32)
    return test, s.data().bayes(test.context.y)[..., 1:]


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    r"""Parts of the risk on fresh prompts, mean over contexts of 1 to n.

    ``risk`` is :math:`E(M - f)^2`, ``gap`` :math:`E(M - E[f|P])^2`, ``variance`` :math:`E(E[f|P] - f)^2` and ``cross``
    twice the mean product of the two differences, which should be 0.
    """
    (test, bayes), model = fresh(s, device), trained(s, s.model, s.N, device)
    with torch.no_grad():
        guess = model.every(test.context, test.query.expand(*test.context.x.shape))
    return dict(zip(experiment.gives, parts(guess, bayes, test.target), strict=True))


run = experiment.run


def at_every_length(model: UniformAttention, prompts: Prompts) -> Tensor:
    """Mean squared error of a new label, over contexts of 1 to n examples; one number a seed."""
    x = prompts.query.expand(*prompts.context.x.shape)
    return (model.every(prompts.context, x) - prompts.observed).square().mean((-2, -1))


def trained(setting: Setting, name: str, N: int, device: str = "cpu") -> UniformAttention:
    """A network for every seed, pretrained on N prompts."""
    model = UniformAttention(1, setting.features, setting.width, seed=setting.seed, **MODELS[name])
    recipe = Recipe(setting.steps, setting.batch, setting.lr, warmup=20)
    return pretrain(model, PromptPool(setting.data(), N), recipe, setting.seed, device, at_every_length).model


def parts(guess: Tensor, bayes: Tensor, target: Tensor) -> Tensor:
    """Risk, Bayes gap, posterior variance and cross term of predictions (*S, batch, n), stacked; (4, *S)."""
    near, far = guess - bayes, bayes - target
    means = ((guess - target).square(), near.square(), far.square(), 2 * near * far)
    return torch.stack([one.mean((-2, -1)) for one in means])
