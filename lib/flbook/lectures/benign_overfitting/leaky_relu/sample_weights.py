r"""Weights of right and of wrong labels in what a leaky ReLU network has learned, where noise vectors hardly meet.

Derived in the lecture: if for each sample the filters of its observed label are on and the others off, the network is
the margin classifier of coupling :math:`\omega = (1+\alpha)^2/(2(1+\alpha^2))`; the hard margin has :math:`\omega = 1`,
the average of the samples 0.
"""

from dataclasses import dataclass

import torch

from flbook.data.signal_noise import flipped_labels
from flbook.domains import Count, FlipProbability, Natural, Positive, Probability
from flbook.dynamics.wishart import check_room, draw_gram
from flbook.lectures.benign_overfitting.leaky_relu.margin import coupling_from
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.lectures.benign_overfitting.leaky_relu.stopping import descend
from flbook.models.activations import LeakyReLU
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep.

    In the book: signals from far below the noise of a sample to far above it, d = 10^8.
    """

    leak: tuple[Probability, ...] = axis([0.1], "leak α")
    start: tuple[Positive, ...] = axis([1.0], "size of the start")  # in units of the page's
    n_snr2: tuple[Positive, ...] = axis([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8], "n SNR²")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 60
    d: Count = 100_000_000
    m: Count = 16  # filters a sign
    flip_prob: FlipProbability = 0.1
    lr: Positive = 0.25  # step size on the summed loss, in units of 1/(2 m n)
    limit: Natural = 100_000  # steps after which a member counts as not converged

    def check(self) -> None:
        """Refuse too few dimensions."""
        check_room(self.n, 2 * self.m, self.d)


DIMS = ("leak", "start", "n_snr2", "seed")
experiment = Experiment(
    Setting, version=1, loops=("leak", "start"), left=("n_snr2", "seed"), chunk={"seed": 14},
    devices=("cpu",),  # whatever has stopped leaves the computation, so every step asks who has
    gives={
        "weight_ratio": ("weight of a flipped sample over that of a clean one", "1", DIMS),
        "coupling": ("coupling ω", "1", DIMS),
        "own_on": ("filters of the observed label that are on, flipped samples", "fraction", DIMS),
        "other_on": ("filters of the other label that are on, flipped samples", "fraction", DIMS),
        "train_error": ("training error", "fraction", DIMS),
    },
    presets={
        "tiny": ("Two signals, few samples", dict(n_snr2=(0.1, 2.0), seed=(0, 1), n=20, m=3)),
        "longer": ("Forty data sets and more leaks", dict(
            leak=(0.01, 0.1, 0.3, 0.6), seed=tuple(range(40)))),
    },
)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train to zero hinge loss, and read off what the samples weigh in the readout."""
    training = problem(s, s.leak, s.start)
    params = descend(training, s.lr / (2 * s.m), (1.0,), s.limit)[0].params
    y, observed = flipped_labels(s.n, s.flip_prob, 0)
    wrong = y != observed
    weight = training.observed * torch.einsum("k,...kn->...n", training.a, params["x"])
    ratio = weight[..., wrong].mean(-1) / weight[..., ~wrong].mean(-1)
    on = (training.preactivations(params)[..., wrong] > 0).double()
    own = training.a[:, None] * observed[wrong] > 0  # which filters vote for the label that is observed
    return {
        "weight_ratio": ratio,
        "coupling": coupling_from(ratio, torch.tensor(s.n_snr2, dtype=torch.float64)[:, None], s.flip_prob),
        "own_on": on[..., own].mean(-1),
        "other_on": on[..., ~own].mean(-1),
        "train_error": (training.observed * training.predict(params) <= 0).double().mean(-1),
    }


def problem(s: Setting, leak: float, start: float) -> SinglePatchTraining:
    """The training problems over (n_snr2, seed), in float64: noise vectors of length about 1."""
    y, observed = flipped_labels(s.n, s.flip_prob, 0)
    unit = s.d**-0.5
    sigma_0 = start * unit / (2 * s.m)
    gram = draw_gram(s.n, 2 * s.m, s.d, sigma_0=sigma_0, sigma_xi=unit, orthogonal=True, seed=s.seed)
    mu = (torch.tensor(s.n_snr2, dtype=torch.float64) / s.n).sqrt()
    samples = SampleGram.added(gram.with_signals(mu), y)  # over (seed, n_snr2)
    shape = (len(mu), len(s.seed))
    own = (2, 2, 2, 1, 1, 0)  # axes of each part that are not the ensemble's
    parts = (part.expand(*shape[::-1], *part.shape[part.ndim - k :]).transpose(0, 1)
             for part, k in zip(samples, own, strict=True))
    return SinglePatchTraining(SampleGram(*parts), observed, 1.0, LeakyReLU(leak), sigma_xi=unit, orthogonal=True)


run = experiment.run
