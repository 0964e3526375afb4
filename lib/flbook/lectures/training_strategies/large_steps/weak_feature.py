"""Networks on samples with a strong and a weak feature, and what they have learned of either."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import measures
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.models.activations import ReLUPower
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.problem import Params

SQUARE = ReLUPower(2)


class StrongWeakTraining(ByHand):
    """`ByHand` of networks on a sample of `StrongWeak`, the data model known."""

    def __init__(self, data: StrongWeak, model: TwoLayerCNN, x: Tensor, observed: Tensor):
        super().__init__(model, x, observed, squared)
        self.data = data

    @classmethod
    def of(cls, data: StrongWeak, seed: tuple[int, ...], m: int = 20, sigma_0: float = 0.01,
           activation: Callable[[Tensor], Tensor] = SQUARE) -> "StrongWeakTraining":
        """The training problem of networks, one for each seed, at half the squared error.

        Coordinates that are zero in all patches, where no weight ever moves, are left out.
        """
        cnn = TwoLayerCNN(data.d, m, sigma_0, activation=activation, seed=seed, dtype=torch.float64)
        sample, used = data.draw(seed), data.d if data.noise else 2
        cnn.w = nn.Parameter(cnn.w.detach()[..., :used].clone())
        return cls(data, cnn, sample.x[..., :used], sample.y)

    def alone(self, params: Params, which: str) -> Float[Tensor, "*E"]:
        """`alone` of this problem."""
        return alone(self.data, self, params, which)

    def log_right(self, params: Params, which: str) -> Float[Tensor, "*E"]:
        """Log of what the filters of a label's own sign put out on a feature alone, the mean over the two labels."""
        return self.log_right_of_each(params, which).mean(-1)

    def log_right_of_each(self, params: Params, which: str) -> Float[Tensor, "*E 2"]:
        """`log_right` of label +1 and of label -1; minus infinity where none of these filters answers."""
        x = self.data.feature(which)[:, 0, : self.x.shape[-1]].to(self.x)
        right = torch.einsum("...jrd,jd->...jr", params["w"], x).relu().square().mean(-1)
        return right.log()

    def test_error(self, params: Params, points: int = 500) -> Float[Tensor, "*E"]:
        """Share of wrong signs on fresh samples with the weak feature alone, under fresh noise; a nan is wrong."""
        xi = self.data.noise_patches(points, 0, "fresh noise").to(self.x)
        return sum(
            measures.test_error_on(self, params, torch.stack([x.expand_as(xi), xi], -2), torch.tensor(y)) / 2
            for y, x in zip((1.0, -1.0), self.data.feature("weak").to(xi), strict=True)
        )


def alone(data: StrongWeak, problem: Training, params: Params, which: str) -> Float[Tensor, "*E"]:
    """Margin y f on samples with one feature alone, "strong" or "weak", the mean over the two labels."""
    f = problem.predict(params, data.feature(which)[..., : problem.x.shape[-1]])
    return (f[..., 0] - f[..., 1]) / 2
