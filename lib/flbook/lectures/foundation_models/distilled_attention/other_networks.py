"""The rule and its rivals on three networks, which differ in their initial weights and the order of their pictures."""

from dataclasses import dataclass

from flbook.lectures.foundation_models import distilled_attention as one_network
from flbook.lectures.foundation_models.distilled_attention.pixel_training import NETWORKS
from flbook.runs import single_precision, sweeps

VERSION = 1


@dataclass(frozen=True)
class Setting(one_network.Setting):
    """The same experiment; its paper scale has all networks of the checkpoint."""

    @classmethod
    def tiny(cls) -> "Setting":
        """Two networks in a blink."""
        return cls(rule=("equal", "rule"), network=(0, 2), seed=(0, 1), points=60, steps=2, pictures=3)

    @classmethod
    def paper(cls) -> "Setting":
        """One budget, every network."""
        return cls(rule=("equal", "rule", "reversed", "measured"), network=tuple(range(NETWORKS)))


def measure(setting: Setting, device: str = "cpu"):
    """Test loss of every way to share on every network; dimensions (rule, budget, network, seed)."""
    return one_network.measure(setting, device)


run = sweeps(measure, chunk={"rule": 1, "network": 1})
stored = single_precision
