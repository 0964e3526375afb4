"""Measures: what a trained network learned of the signal, memorised of the noise, and gets wrong on fresh data.

They are asked of the problem, and mean the same for one in weights (`WeightTraining`) and one in coefficients
(`GramTraining`), whatever rule trained it.

>>> from flbook import SignalNoise, TwoLayerCNN, fit, gradient_descent
>>> from flbook.dynamics.gram import GramTraining
>>> data = SignalNoise(n=20, d=100)
>>> problem = GramTraining.of(data, data.draw(seed=(0, 1)), TwoLayerCNN(d=100, m=5, sigma_0=0.01, seed=(0, 1)))
>>> params = fit(problem, gradient_descent(0.1), 50).params
>>> signal_learning(problem, params).shape, noise_memorization(problem, params).shape
(torch.Size([2, 2, 5]), torch.Size([2, 2, 5, 20]))
>>> train_error(problem, params).tolist(), bool((test_error(problem, params) < 0.1).all())
([0.0, 0.0], True)
"""

import torch
from jaxtyping import Float
from scipy.special import ndtri
from scipy.stats.qmc import Sobol
from torch import Tensor

from flbook import rng
from flbook.shapes import Quantity
from flbook.training.losses import logistic
from flbook.training.problem import Params, Problem


def signal_learning(problem: Problem, params: Params) -> Float[Tensor, "*E 2 m"]:
    r""":math:`\gamma_{j,r} = j \|\mu\|^2 c_{j,r}`: how far filter r of sign j has moved along the signal."""
    return problem.signal_learned(params)


def noise_memorization(problem: Problem, params: Params) -> Float[Tensor, "*E 2 m n"]:
    r""":math:`\rho_{j,r,i} = \|\xi_i\|^2 c_{j,r,i}`: how far filter r of sign j has moved along the i-th noise."""
    return problem.noise_memorised(params)


def train_error(problem, params: Params) -> Float[Tensor, "*E"]:
    """Share of training samples whose observed label, flipped or not, the network misses."""
    return (problem.predict(params) * problem.observed <= 0).to(problem.observed.dtype).mean(-1)


def test_error(problem, params: Params, points: int = 1024, seed: int = 0) -> Float[Tensor, "*E"]:
    """Probability of a wrong or missing sign on fresh data with true labels, from the data model's own exact test law.

    points: fresh noise patches, rounded up to a power of two, each used under both labels, the same for every member.
    The error that a test set with labels flipped with probability p would show is ``p + (1 - 2 p) * test_error``.
    """
    standard = even_normal(points, problem.test_directions, seed).to(problem.observed)
    plus, minus = problem.test_outputs(params, standard)
    return ((plus <= 0).to(plus.dtype).mean(-1) + (minus >= 0).to(plus.dtype).mean(-1)) / 2


def test_loss(problem, params: Params, points: int = 1024, seed: int = 0, loss=logistic) -> Float[Tensor, "*E"]:
    """Mean loss on fresh data with true labels, from the same exact law and the same points as `test_error`."""
    standard = even_normal(points, problem.test_directions, seed).to(problem.observed)
    plus, minus = problem.test_outputs(params, standard)
    return (loss(plus, torch.ones_like(plus)).mean(-1) + loss(minus, -torch.ones_like(minus)).mean(-1)) / 2


def even_normal(points: int, directions: int, seed: int = 0) -> Float[Tensor, "points directions"]:
    """Standard normal points that fill the space evenly (Sobol, shifted at random), so that few of them suffice.

    Independent draws would give all members of an ensemble one common sampling error of order points^(-1/2).
    """
    unit = Sobol(directions, scramble=False).random_base2(max(points - 1, 1).bit_length())
    shifted = (unit + rng.numpy_generator(seed, "test points").random(directions)) % 1
    return torch.from_numpy(ndtri(shifted.clip(1e-12, 1 - 1e-12)))


def test_error_on(problem, params: Params, x: Tensor, y: Tensor) -> Float[Tensor, "*E"]:
    """The same from given data: the direct way, d-dimensional samples and all."""
    return (problem.predict(params, x) * y.to(problem.observed) <= 0).to(problem.observed.dtype).mean(-1)


def class_error(problem, params: Params, x: Tensor | None = None, y: Tensor | None = None) -> Float[Tensor, "*E"]:
    """Share of samples whose class has not the largest logit: on the training labels, or on given pictures."""
    y = problem.observed if y is None else y.to(problem.observed)
    return (problem.predict(params, x).argmax(-1) != y).to(problem.observed.dtype).mean(-1)


def flipped(error, flip_prob: float):
    """Test error against labels flipped with probability p: ``p + (1 - 2 p) error``, never below the Bayes error p."""
    return flip_prob + (1 - 2 * flip_prob) * error


def coefficients(problem: Problem) -> list[Quantity]:
    """The quantities of a coefficient race: largest gamma and largest rho over all filters, and the training loss."""
    def gamma(params):
        return signal_learning(problem, params).flatten(-2).amax(-1)

    def rho(params):
        return noise_memorization(problem, params).flatten(-3).amax(-1)

    return [
        Quantity("gamma", gamma, (), "largest signal coefficient γ"),
        Quantity("rho", rho, (), "largest noise coefficient ρ"),
        Quantity("train_loss", problem.train_loss, (), "training loss", "nats"),
    ]
