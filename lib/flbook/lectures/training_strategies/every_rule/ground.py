r"""The data of the chapter's lectures and the network each is learned by: the grounds on which every rule is tried.

Each ground names the samples that its lecture is about (those of small margin, those with the rare feature), and the
part of such a sample that holds what shall be learned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from flbook.data.signal_noise import SignalNoise
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.lectures.training_strategies.shared.environments import Environments
from flbook.lectures.training_strategies.shared.margins import Margins
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.models.activations import Power, ReLUPower, SmoothLeakyReLU, cube, identity, relu
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import logistic, squared

FAR = 10**6  # between the seeds of training, held-out and test samples
POINTS = 400  # test samples

SIGNAL = SignalNoise(n=20, d=400, mu_norm=1.2, orthogonal=True)


class GroundSample(NamedTuple):
    """Samples of one kind; ensemble axes lead."""

    x: Tensor  # (*E, n, P, d)
    y: Tensor  # (*E, n)


@dataclass(frozen=True)
class Ground:
    """A data law, a network, and what its lecture asks for.

    Parameters
    ----------
    data, asked
        The law of training and held-out samples, and the one that test samples come from.
    which
        Of a law's samples those that the lecture is about, as a mask; None: all.
    patch, coordinate
        Which patch of them holds what shall be learned, and which coordinate of it, if not all of them.
    m, sigma_0, activation, scale, loss
        Of the network.
    """

    data: Any
    asked: Any
    m: int
    sigma_0: float
    activation: Callable[[Tensor], Tensor]
    scale: float | None = None
    loss: Any = logistic
    which: Callable[[Any], Tensor] | None = None
    patch: int = 0
    coordinate: int | None = None

    def draw(self, seed: tuple[int, ...], role: int = 0) -> GroundSample:
        """Samples of the training law in float32: for training (role 0) or held out (1)."""
        return self._drawn(self.data, tuple(one + role * FAR for one in seed))

    def draw_test(self, seed: tuple[int, ...]) -> GroundSample:
        """Fresh samples, only those that the lecture is about."""
        return self.only(self.asked, self._drawn(self.asked, tuple(one + 2 * FAR for one in seed)))

    def _drawn(self, data: Any, seed: tuple[int, ...]) -> GroundSample:
        sample = data.draw(seed)
        return GroundSample(sample.x.float(), sample.y.float())

    def only(self, data: Any, drawn: GroundSample) -> GroundSample:
        """The samples that the lecture is about."""
        if self.which is None:
            return drawn
        mask = self.which(data)
        return GroundSample(drawn.x[..., mask, :, :], drawn.y[..., mask])

    def feature_alone(self, x: Tensor) -> Tensor:
        """The same samples, with nothing left but what shall be learned."""
        part = torch.zeros_like(x)
        where = slice(None) if self.coordinate is None else self.coordinate
        part[..., self.patch, where] = x[..., self.patch, where]
        return part

    def problem(self, seed: tuple[int, ...], drawn: GroundSample, linear: bool = False) -> ByHand:
        """The training problem of the network, or of a linear classifier of the sum of the patches, from zero."""
        shape = (1, 0.0, identity, 1.0) if linear else (self.m, self.sigma_0, self.activation, self.scale)
        m, sigma_0, activation, scale = shape
        cnn = TwoLayerCNN(self.data.d, m, sigma_0, activation, scale, seed=seed)
        return ByHand(cnn, drawn.x, drawn.y, self.loss)

    @property
    def level(self) -> float:
        """The training loss at which training stops: 0.1, or the same share of what a network knows that says 0."""
        return 0.1 if self.loss is logistic else 0.1 * 0.5 / float(torch.tensor(2.0).log())


_MARGINS = Margins(n=60, d=200, small=0.1, share=0.2, sigma_xi=0.1)
_WEAK = StrongWeak(n=32, d=64, weak_only=8, noise=0.2)
_SPARSE = SparseNoise(n=80, d=400, s=40, sigma_xi=40**-0.5)
_RARE = RareFeatures(n=120, d=400, sigma_d=0.56, sigma_b=0.34)
_MIXED = CommonAndRare(n=100, d=400, share=0.1, noise_square=20.0)
_ENVIRONMENTS = Environments(n=160, d=20, sigma_xi=0.1)

GROUNDS = {
    "signal-noise, ReLU": Ground(SIGNAL, replace(SIGNAL, n=POINTS), 10, 1e-3, relu),
    "signal-noise, squared ReLU": Ground(SIGNAL, replace(SIGNAL, n=POINTS), 5, 0.01, ReLUPower(2)),
    "margins": Ground(_MARGINS, replace(_MARGINS, n=POINTS, share=0.9), 5, 0.02, cube, 1.0,
                      which=lambda data: data.margins() < 1),
    "strong and weak": Ground(_WEAK, replace(_WEAK, n=POINTS, weak_only=POINTS), 8, 0.01, ReLUPower(2), loss=squared,
                              which=lambda data: torch.arange(data.n) >= data.n - data.weak_only, patch=1),
    "sparse noise": Ground(_SPARSE, replace(_SPARSE, n=POINTS), 10, 0.01, ReLUPower(3), 1.0),
    "rare features": Ground(_RARE, replace(_RARE, n=240, frequency=(0.05, 0.05, 0.9)), 4, 0.01, SmoothLeakyReLU(0.1),
                            which=lambda data: data.kinds() == data.features - 1),
    "common and rare": Ground(_MIXED, replace(_MIXED, n=POINTS, share=1.0), 5, 0.01, Power(2),
                              which=lambda data: data.rare()),
    "environments": Ground(_ENVIRONMENTS, replace(_ENVIRONMENTS, n=POINTS, betas=(0.9,)), 4, 1e-3, relu, coordinate=0),
}


