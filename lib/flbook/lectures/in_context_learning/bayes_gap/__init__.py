r"""The risk of in-context learning is a Bayes gap plus a posterior variance; pretraining moves only the first.

Claims: the two parts add up exactly; at the empirical minimum the gap falls like 1/N in the number of pretraining
prompts, and a network trained by gradient steps stops at what is left of its optimisation; the doubt about the type of
task falls exponentially in the number of examples. The experiment here trains networks; `empirical_minimum` solves.
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

MODELS = {"told k": True, "not told k": False}
NOISE = {"discrete": ((-2.0, 0.0, 2.0), (0.25, 0.5, 0.25))}  # beside "Laplace"


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are axes."""

    model: tuple[Literal["told k", "not told k"], ...] = axis(["told k", "not told k"], "network")
    steps: tuple[Count, ...] = axis([250], "training steps")
    N: tuple[Natural, ...] = axis([0], "pretraining prompts N")  # 0: fresh ones at every step
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    p: Count = 4  # longest context, and every shorter one
    law: Literal["Laplace", "discrete"] = "discrete"  # of the noise
    features: Count = 8
    width: Count = 24
    batch: Count = 64
    lr: Positive = 0.01
    points: Count = 4000  # test prompts

    def data(self) -> SignPrompts:
        """The prompts."""
        return SignPrompts(self.p, 1.0, *NOISE.get(self.law, ((), ())))


experiment = Experiment(
    Setting, version=2, loops=("model", "steps", "N"), chunk={"model": 1, "steps": 1, "N": 1}, stored="longer",
    gives={
        "risk": ("risk R", "1"),
        "gap": ("Bayes gap", "1"),
        "variance": ("posterior variance", "1"),
        "cross": ("cross term", "1"),
    },
    presets={
        "tiny": ("Contexts of up to four examples, few prompts and many, hardly trained", dict(
            steps=(10,), N=(8, 400), seed=(0, 1), batch=16, points=500)),
        "longer": ("Laplace noise, short and long training, up to 16384 prompts and fresh ones", dict(
            model=("told k",), steps=(400, 3200), N=(64, 256, 1024, 4096, 16384, 0), p=8, law="Laplace")),
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
    (test, bayes), model = fresh(s, device), trained(s, s.model, s.steps, s.N, device)
    with torch.no_grad():
        guess = model.every(test.context, test.query.expand(*test.context.x.shape))
    return dict(zip(experiment.gives, parts(guess, bayes, test.target), strict=True))


run = experiment.run


def next_label(model: UniformAttention, prompts: Prompts) -> Tensor:
    """Mean squared error of the next label, over contexts of 1 to p examples; one number a seed."""
    later = torch.cat([prompts.context.y[..., 1:], prompts.observed], -1)
    x = prompts.query.expand(*prompts.context.x.shape)
    return (model.every(prompts.context, x) - later).square().mean((-2, -1))


def trained(setting: Setting, name: str, steps: int, N: int, device: str = "cpu") -> UniformAttention:
    """A network for every seed, pretrained on N prompts."""
    model = UniformAttention(1, setting.features, setting.width, seed=setting.seed, told=MODELS[name])
    recipe = Recipe(steps, setting.batch, setting.lr, warmup=20)
    return pretrain(model, PromptPool(setting.data(), N), recipe, setting.seed, device, next_label).model


def parts(guess: Tensor, bayes: Tensor, target: Tensor) -> Tensor:
    """Risk, Bayes gap, posterior variance and cross term of predictions (*S, batch, p), stacked; (4, *S)."""
    near, far = guess - bayes, bayes - target
    means = ((guess - target).square(), near.square(), far.square(), 2 * near * far)
    return torch.stack([one.mean((-2, -1)) for one in means])
