"""One gradient step on the third Hermite polynomial in dimensions where its law in d is seen: millions of samples."""

from torch import Tensor

from flbook.lectures.representation import information_exponent as lecture
from flbook.runs import Experiment, single_precision

_CUBIC = dict(link=(3,), gate=("y",), statistic="gradient")

experiment = Experiment(
    lecture.Setting, version=1, loops=("link", "gate", "d", "seed"), stored="longer",
    gives={"alignment": ("cosine with β", "1")},
    presets={
        "book": ("Two small dimensions", _CUBIC | dict(
            d=(12, 24), alpha=(36.0, 110.0, 330.0, 1000.0), seed=tuple(range(20)))),
        "tiny": ("A few samples", _CUBIC | dict(d=(12,), alpha=(36.0, 110.0), seed=(0, 1))),
        "longer": ("Three dimensions up to 128", _CUBIC | dict(
            d=(32, 64, 128), seed=tuple(range(300)),
            alpha=(1000.0, 1500.0, 2200.0, 3300.0, 5000.0, 7500.0, 11000.0, 16500.0, 25000.0, 37500.0))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: lecture.Setting, device: str) -> dict[str, Tensor]:
    """The cosine of one step on one sample, for every alpha."""
    return {"alignment": lecture.gradient(s.link, s.gate, s.d, s.alpha, s.seed, device)}


run = experiment.run
