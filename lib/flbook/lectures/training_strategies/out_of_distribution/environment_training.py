"""Networks on environments: the training problems, and what an output holds of either feature."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.domains import Count, NonNegative, checked_arguments
from flbook.lectures.training_strategies.shared.environments import SIGNS, Environments
from flbook.models.activations import relu
from flbook.models.cnn import TwoLayerCNN
from flbook.training.losses import logistic
from flbook.training.network import Training
from flbook.training.problem import Params


@checked_arguments
def training(data: Environments, seed: tuple[int, ...], loss: Any = logistic, m: Count = 4,
             sigma_0: NonNegative = 0.001, activation: Callable[[Tensor], Tensor] = relu, start: Params | None = None,
             without_invariant: bool = False) -> Training:
    """The training problem of networks, one for each seed; `start` replaces their initial weights.

    without_invariant: the invariant feature is erased from the samples.
    """
    cnn = TwoLayerCNN(data.d, m, sigma_0, activation=activation, seed=seed)
    if start is not None:
        cnn.w = nn.Parameter(start["w"].detach().clone())
    x, y = data.draw(seed)
    if without_invariant:
        x[..., 0, 0] = 0
    return Training(cnn, x, y, loss)


def features(problem: Training, params: Params) -> Float[Tensor, "*E 2"]:
    r"""What the output on a patch :math:`s_1 v_1 + s_2 v_2` holds of :math:`s_1` and of :math:`s_2`: (a, b)."""
    signs = torch.tensor(SIGNS).to(problem.x)
    x = torch.zeros(4, 2, problem.x.shape[-1]).to(problem.x)
    x[:, 0, :2] = signs
    return problem.predict(params, x) @ signs / 4


def accuracy(
    data: Environments, problem: Training, params: Params, beta: float, points: int = 256
) -> Float[Tensor, "*E"]:
    """Probability of the right sign in an environment: exact in the features, over fresh noise patches."""
    noise = data.sigma_xi * rng.normal((points, data.d), 0, "fresh noise")
    x = torch.zeros(4, points, 2, data.d).to(problem.x)
    x[:, :, 0, :2] = torch.tensor(SIGNS).to(x)[:, None]
    x[:, :, 1] = noise.to(x)
    f = problem.predict(params, x.flatten(0, 1)).unflatten(-1, (4, points))
    shares = torch.tensor(data.shares(beta)).to(f)
    plus, minus = (f > 0).to(f).mean(-1) @ shares, (f < 0).to(f).mean(-1) @ shares.flip(-1)
    return (plus + minus) / 2
