"""Testing on recycled training noise: a training problem whose test samples repeat the noise that it was trained on."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.frozen import FrozenGramTraining
from flbook.dynamics.gram import GramTraining
from flbook.lectures.benign_overfitting.label_noise_stages.recycled_noise import RecycledNoise
from flbook.training.problem import Params


@dataclass(frozen=True)
class RecycledTest:
    """`problem`, tested on `recycled_noise`: hand it to `flbook.measures.test_error` in its place.

    Without fresh noise on top every one of the 2 n test samples that there are is used once, so the error is exact.
    """

    problem: GramTraining | FrozenGramTraining
    law: RecycledNoise = RecycledNoise()

    def __post_init__(self):
        if self.problem.bias:
            raise ValueError("the problem must have no bias (bias=False): a bias would be counted twice in noise that "
                             "is a sum")

    @property
    def observed(self) -> Tensor:
        """Labels of the loss."""
        return self.problem.observed

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes."""
        return self.problem.test_directions

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, tests)`` on test samples of label +1 and of label -1, the noise patches shared."""
        problem, on_xi = self.problem, self.problem.training_noise(params)
        fresh = problem.fresh(params, standard) if self.law.extra else on_xi
        noise = problem.noise_outputs(params, self.law.preactivations(on_xi, fresh))
        return tuple(signal[..., None] + noise for signal in problem.signal_outputs(params))
