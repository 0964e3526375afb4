r"""The gates of a lazy ReLU network: which flip in training, and how far this moves the tangent kernel.

A neuron moves by :math:`O(N^{-1/2})`, so a share :math:`O(N^{-1/2})` of the gates
:math:`1(\langle w_i, x_j\rangle > 0)` flips. Flips of independent sign move the kernel, an average over neurons, by
:math:`N^{-3/4}`. A sample pulls only on neurons whose gate it opens, so gates close at another rate than they open, and
this part moves it by :math:`N^{-1/2}`.
"""

from dataclasses import dataclass

import torch

from flbook.domains import Count, Natural, Positive
from flbook.dynamics.tangent_kernel import neuron_kernel, relative_change
from flbook.lectures.representation import lazy_and_mean_field as lecture
from flbook.models.activations import relu
from flbook.runs import Experiment, Grid, axis, single_precision
from flbook.training.fit import fit


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on."""

    width: tuple[Count, ...] = axis([64, 128, 256, 512], "neurons N")
    seed: tuple[Natural, ...] = axis(range(12), "seed")
    n: Count = 100  # training samples
    d: Count = 20
    time: Positive = 60.0


experiment = Experiment(
    Setting, version=1, loops=("width",), chunk={"width": 1, "seed": 3}, stored="longer",
    gives={
        "kernel_change": ("‖Θ(t) − Θ(0)‖ / ‖Θ(0)‖", "1"),
        "opened": ("share of gates that open", "fraction"),
        "closed": ("share of gates that close", "fraction"),
    },
    presets={
        "tiny": ("Two small networks", dict(width=(16, 64), seed=(0, 1), n=20, d=5, time=10.0)),
        "longer": ("Nine widths up to 16384 and 36 seeds", dict(
            width=tuple(2**k for k in range(6, 15)), seed=tuple(range(36)))),
    },
)  # fmt: skip
experiment.kept(single_precision)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train the lazy ReLU networks of one width, and count."""
    asked = lecture.Setting(power=(0.5,), width=(s.width,), seed=s.seed, n=s.n, d=s.d, time=s.time)
    problem = lecture.problem(asked, s.width, device)
    problem.model.activation = relu
    start = problem.start()["w"]
    end = fit(problem, lecture.rule(asked, problem), asked.steps).params["w"]
    before, after = (torch.einsum("...nd,...kd->...nk", problem.x, w) > 0 for w in (start, end))
    theta_0, theta = (neuron_kernel(problem.model, w, problem.x) for w in (start, end))
    found = {"kernel_change": relative_change(theta, theta_0),
             "opened": (after & ~before).double().mean((-2, -1)), "closed": (before & ~after).double().mean((-2, -1))}
    return {name: value[0] for name, value in found.items()}  # of the one power


run = experiment.run
