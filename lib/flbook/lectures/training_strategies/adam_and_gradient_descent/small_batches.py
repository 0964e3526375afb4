r"""Adam in batches: the fewer samples a step takes, the less sparse noise it memorises.

Claim (Tang et al. 2025, reported): Adam in small batches learns the feature, in large ones it does not.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from flbook import measures
from flbook.domains import Count, Fraction, Natural, NonNegative, Positive
from flbook.lectures.training_strategies import adam_and_gradient_descent as lecture
from flbook.lectures.training_strategies.adam_and_gradient_descent.sparse_training import SparseTraining
from flbook.runs import Experiment, Grid, axis
from flbook.training.batches import Batches
from flbook.training.fit import fit


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    rule: tuple[Literal["Adam", "sign descent"], ...] = axis(["Adam"], "rule")
    batch: tuple[Count, ...] = axis([2, 20], "samples of a step B")
    seed: tuple[Natural, ...] = axis(range(3), "seed")
    n: Count = 200
    d: Count = 1000
    s: Count = 100
    sigma_xi: Positive = 0.1
    alpha: Fraction = 0.2
    m: Count = 20
    rate: Positive = 5e-4  # step size
    decay: NonNegative = 1e-5  # of Adam's weights, coupled
    steps: Natural = 1500
    points: Count = 500

    def check(self) -> None:
        """Refuse batches larger than the data."""
        if max(self.batch) > self.n:
            raise ValueError(f"batch must be at most n = {self.n}; got {max(self.batch)}")

    @property
    def whole(self) -> "lecture.Setting":
        """The same without batches."""
        names = ("seed", "n", "d", "s", "sigma_xi", "m", "rate", "decay", "points")
        same = {name: getattr(self, name) for name in names}
        return lecture.Setting(alpha=(self.alpha,), adam_steps=self.steps, **same)


experiment = Experiment(
    Setting, version=1, loops=("rule", "batch"), chunk={"rule": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "train_error": ("training error", "fraction"),
        "feature": ("response to the feature, its weaker class", "1"),
        "noise": ("response to own noise, mean over samples", "1"),
    },
    presets={
        "tiny": ("A blink", dict(
            rule=("Adam", "sign descent"), batch=(2, 10), seed=(0, 1), n=10, d=60, s=6, m=3, steps=20, points=40)),
        "longer": ("From two samples a step to all of them", dict(
            rule=("Adam", "sign descent"), batch=(2, 5, 10, 20, 50, 100, 200), seed=tuple(range(10)))),
    },
)


@experiment.shared()
def drawn(s: Setting, device: str) -> tuple[SparseTraining, lecture.FreshSamples]:
    """The problems of all rules and batches, and what they are tested on."""
    fresh = lecture.FreshSamples(s.whole.data(s.alpha), s.points, s.seed, device)
    return lecture.problem(s.whole, s.alpha, device), fresh


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Train in batches of one size to the end."""
    trained, fresh = drawn(s, device)
    params = fit(Batches(trained, s.batch, seed=0), *lecture.rule(s.whole, s.rule)).params
    return {"test_error": fresh.error(trained, params), "train_error": measures.train_error(trained, params),
            "feature": trained.feature(params).amin(-1), "noise": trained.noise(params).mean(-1)}


run = experiment.run
