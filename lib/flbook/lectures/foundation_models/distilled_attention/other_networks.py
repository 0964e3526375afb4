"""The rule and its rivals on three networks, which differ in their initial weights and the order of their pictures."""

from flbook.lectures.foundation_models import distilled_attention as one_network
from flbook.lectures.foundation_models.distilled_attention.pixel_training import CHECKPOINT, NETWORKS
from flbook.runs import Experiment, single_precision

experiment = Experiment(
    one_network.Setting, version=1, loops=one_network.LOOPS, chunk={"rule": 1, "network": 1}, stored="longer",
    gives=one_network.GIVES, beside=one_network.BESIDE, reads=(CHECKPOINT.name,),
    presets={
        "tiny": ("Two networks in a blink", dict(
            rule=("equal", "rule"), network=(0, 2), seed=(0, 1), points=60, steps=2, pictures=3)),
        "longer": ("One budget, every network", dict(
            rule=("equal", "rule", "reversed", "measured"), network=tuple(range(NETWORKS)))),
    },
)
experiment.kept(single_precision)


@experiment.cell
def cell(s: one_network.Setting, device: str) -> dict:
    """The lecture's cell, on one network of three."""
    return one_network.cell(s, device)


run = experiment.run
