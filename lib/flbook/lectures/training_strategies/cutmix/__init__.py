r"""Pictures pasted together: CutMix against plain training, Cutout, label smoothing, and what CutMix is made of.

Claim (Oh and Yun 2024, reported from the abstract): plain training learns only common features, Cutout also rare ones,
CutMix even rarer ones, and all features and noise vectors evenly.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import xarray as xr
from scipy.special import expit

from flbook import devices
from flbook.domains import Count, Natural, NonNegative, Positive, Probability
from flbook.dynamics.patches import Basis
from flbook.lectures.training_strategies.cutmix.by_feature import errors, feature_parts
from flbook.lectures.training_strategies.cutmix.leaky_bend import LeakyBend
from flbook.lectures.training_strategies.cutmix.pasting import CutMix, Cutout, PastedTraining
from flbook.lectures.training_strategies.cutmix.resting import resting_output
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures
from flbook.models.cnn import TwoLayerCNN
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity, signs
from flbook.training.fit import fit, log_steps
from flbook.training.optimizers import GradientDescent

RECIPES = ("plain", "Cutout", "CutMix", "label smoothing", "one patch", "one patch, smoothed", "labels only",
           "inputs only")  # fmt: skip
FREQUENCY = {"long_name": "frequency of the feature ρ", "units": "1"}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    recipe: tuple[Literal[RECIPES], ...] = axis(RECIPES[:6], "recipe")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 120
    d: Count = 2000
    patches: Count = 3  # P
    rare: Probability = 0.15  # frequency of the rare feature
    very_rare: Probability = 0.05
    sigma_d: Positive = 0.25  # dominant noise
    sigma_b: Positive = 0.15  # background noise
    trace: Probability = 0.005  # of a common feature in the dominant noise
    m: Count = 1  # filters a label
    sigma_0: NonNegative = 0.01  # initial weights
    lr: Positive = 2.0  # step size
    partners: Count = 2  # R: pastes of a sample in a step
    steps: Count = 3000
    points: Count = 1024  # fresh samples of each feature and label

    def check(self) -> None:
        """Refuse what the data model would."""
        self.data()

    def data(self) -> RareFeatures:
        """The data model."""
        common = round(1 - self.rare - self.very_rare, 12)
        return RareFeatures(self.n, self.d, self.patches, (common, self.rare, self.very_rare), self.sigma_d,
                            self.sigma_b, self.trace)  # fmt: skip


experiment = Experiment(
    Setting, version=1, loops=("recipe",), chunk={"recipe": 1},
    beside={"frequency": (lambda setting: setting.data().frequency, *FREQUENCY.values())},
    gives={
        "z": ("output on the feature z", "1", ("recipe", "seed", "frequency")),
        "test_error": ("test error", "fraction", ("recipe", "seed", "frequency")),
    },
    presets={
        "tiny": ("All recipes in a blink", dict(recipe=RECIPES, seed=(0, 1), n=40, d=200, steps=20, points=64)),
        "longer": ("All recipes on 300 samples, the paper's number as we remember it", dict(recipe=RECIPES, n=300)),
    },
)


def recipe_of(setting: Setting, name: str) -> Cutout | CutMix:
    """The recipe of this name; smoothing by so much that the loss is smallest at CutMix's z* in each patch."""
    patches, rest = setting.patches, resting_output(setting.patches)
    return {
        "plain": lambda: Cutout(0),
        "Cutout": lambda: Cutout(1),
        "CutMix": lambda: CutMix(partners=setting.partners),
        "label smoothing": lambda: Cutout(0, smoothing_for(patches * rest)),
        "one patch": lambda: Cutout(patches - 1),
        "one patch, smoothed": lambda: Cutout(patches - 1, smoothing_for(rest)),
        "labels only": lambda: CutMix(partners=setting.partners, inputs=False),
        "inputs only": lambda: CutMix(partners=setting.partners, labels=False),
    }[name]()


def smoothing_for(margin: float) -> float:
    """The p of label smoothing whose loss is smallest at this margin, log((1-p)/p)."""
    return float(expit(-margin))


def problem(
    setting: Setting, recipe: Cutout | CutMix, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> PastedTraining:
    """The training problems of all seeds; their patches are not kept."""
    data, seeds = setting.data(), setting.seed
    sample = data.draw(seeds)
    cnn = TwoLayerCNN(data.d, setting.m, setting.sigma_0, LeakyBend(), seed=seeds, dtype=torch.float64)
    w = cnn.w.detach().flatten(-3, -2)
    a = cnn.scale * signs(w.shape[-2], w)
    training = PastedTraining(Basis.of(sample.vectors, w), sample.mix, sample.y, a, cnn.activation, orthogonal=True,
                             features=2 * data.features, recipe=recipe, seed=seeds)  # fmt: skip
    return training.to(devices.device(device), dtype)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train by one recipe to the end; a number for each seed and feature."""
    training = problem(s, recipe_of(s, s.recipe), device)
    params = fit(training, GradientDescent(s.lr * s.m), s.steps).params
    return {"z": feature_parts(training, params), "test_error": errors(training, params, s.data(), s.points)}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Output on the features, and test error, over training; dimensions (step, recipe, seed, frequency)."""
    histories = []
    for name in setting.recipe:
        training = problem(setting, recipe_of(setting, name), device)
        z = Quantity("z", partial(feature_parts, training), ("frequency",), "output on the feature z")
        missed = partial(errors, training, data=setting.data(), points=setting.points)
        error = Quantity("test_error", missed, ("frequency",), "test error", "fraction")
        rule, at = GradientDescent(setting.lr * setting.m), log_steps(setting.steps, 30)
        histories.append(fit(training, rule, setting.steps, [z, error], ("seed",), at).history)
    joined = xr.concat(histories, "recipe").transpose("step", "recipe", "seed", "frequency")
    frequency = {"frequency": ("frequency", list(setting.data().frequency), FREQUENCY)}
    return joined.assign_coords(setting.coordinates("recipe", "seed") | frequency)
