"""The same networks trained otherwise: does the order of what they learn hang on a number that somebody chose?

Claim (measured): where the temperature leaves the similarity room, captions that name the colour answer better on a
shifted palette than captions that do not; and views that keep the colour end below an untrained encoder.
"""

from dataclasses import dataclass
from typing import Literal

import xarray as xr

from flbook.domains import Natural
from flbook.lectures.foundation_models import contrastive_digits
from flbook.runs import Experiment, Grid, axis, single_precision

CHANGES = {
    "as on the page": {}, "four times the steps": {"steps": 600}, "temperature 0.02": {"temperature": 0.02},
    "temperature 2": {"temperature": 2.0}, "512 hidden neurons": {"hidden": 512}, "256 features": {"features": 256},
    "a projection head": {"head": True}, "start ten times smaller": {"gain": 0.02},
    "captions see moved pictures": {"moved": True},
}
ASKED = ("untrained", "views", "recoloured views", "captions", "class captions")


@dataclass(frozen=True)
class Setting(Grid):
    """What is changed; everything else is as on the page."""

    variation: tuple[Literal[tuple(CHANGES)], ...] = axis(("as on the page", "a projection head"), "what is changed")
    partner: tuple[Literal[ASKED], ...] = axis(ASKED, "what pictures are paired with")
    seed: tuple[Natural, ...] = axis(range(2), "seed")


experiment = Experiment(
    Setting, version=1, loops=("variation", "partner"), chunk={"variation": 1, "partner": 1}, stored="longer",
    gives=contrastive_digits.GIVES, missing=contrastive_digits.MISSING,
    presets={
        "tiny": ("One change, two kinds of training", dict(
            variation=("as on the page", "256 features"), partner=("untrained", "class captions"))),
        "longer": ("All changes, ten seeds", dict(variation=tuple(CHANGES), seed=tuple(range(10)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> xr.Dataset:
    """Accuracies of the lecture's experiment, with one thing changed."""
    changed = contrastive_digits.experiment.setting(partner=(s.partner,), seed=s.seed, **CHANGES[s.variation])
    return contrastive_digits.experiment.measure(changed, device).isel(partner=0, drop=True)


run = experiment.run
