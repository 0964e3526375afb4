"""Measures: what a trained network learned of the signal, memorised of the noise, and gets wrong on fresh data.

They are asked of the problem, and mean the same for one in weights (`WeightTraining`) and one in coefficients
(`GramTraining`), whatever rule trained it.

>>> from flbook import GradientDescent, SignalNoise, TwoLayerCNN, fit
>>> from flbook.dynamics.gram import GramTraining
>>> data = SignalNoise(n=20, d=100)
>>> problem = GramTraining.of(data, data.draw(seed=(0, 1)), TwoLayerCNN(d=100, m=5, sigma_0=0.01, seed=(0, 1)))
>>> params = fit(problem, GradientDescent(0.1), 50).params
>>> problem.signal_learned(params).shape, problem.noise_memorised(params).shape
(torch.Size([2, 2, 5]), torch.Size([2, 2, 5, 20]))
>>> train_error(problem, params).tolist(), bool((test_error(problem, params) < 0.1).all())
([0.0, 0.0], True)
"""

import torch
from jaxtyping import Float
from scipy.special import ndtri
from torch import Tensor
from torch.quasirandom import SobolEngine

from flbook import rng
from flbook.shapes import Quantity, per_member
from flbook.training.losses import logistic
from flbook.training.problem import Params, Problem


def train_error(problem, params: Params) -> Float[Tensor, "*E"]:
    """Share of training samples whose observed label, flipped or not, the network misses.

    Parameters
    ----------
    problem
        A problem with outputs on its training samples, and their labels.
    params
        Parameters by name, each of shape ``(*E, ...)``.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    return error_rate(problem.predict(params) * problem.observed)


def test_error(problem, params: Params, points: int = 1024, seed: int = 0) -> Float[Tensor, "*E"]:
    """Probability of a wrong or missing sign on fresh data with true labels, from the data model's own exact test law.

    The error that a test set with labels flipped with probability p would show is ``p + (1 - 2 p) * test_error``.

    Parameters
    ----------
    problem
        A problem that knows the law of fresh samples.
    params
        Parameters by name, each of shape ``(*E, ...)``.
    points
        Fresh noise patches, rounded up to a power of two, each used under both labels, the same for every member.
    seed
        Seed of the points.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    standard = sobol_normal(points, problem.test_directions, seed).to(problem.observed)
    plus, minus = problem.test_outputs(params, standard)
    return (error_rate(plus) + error_rate(-minus)) / 2


def test_loss(problem, params: Params, points: int = 1024, seed: int = 0, loss=logistic) -> Float[Tensor, "*E"]:
    """Mean loss on fresh data with true labels, from the same exact law and the same points as `test_error`.

    Parameters
    ----------
    problem
        A problem that knows the law of fresh samples.
    params
        Parameters by name, each of shape ``(*E, ...)``.
    points
        Fresh noise patches, rounded up to a power of two, each used under both labels, the same for every member.
    seed
        Seed of the points.
    loss
        One of `flbook.training.losses`.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    standard = sobol_normal(points, problem.test_directions, seed).to(problem.observed)
    plus, minus = problem.test_outputs(params, standard)
    return (loss(plus, torch.ones_like(plus)).mean(-1) + loss(minus, -torch.ones_like(minus)).mean(-1)) / 2


def sobol_normal(points: int, directions: int, seed: int = 0) -> Float[Tensor, "points directions"]:
    """Standard normal points that fill the space evenly (Sobol, shifted at random), so that few of them suffice.

    Independent draws would give all members of an ensemble one common sampling error of order points^(-1/2).

    Parameters
    ----------
    points
        Number of points, rounded up to a power of two.
    directions
        Coordinates of a point.
    seed
        Seed of the shift.

    Returns
    -------
    Tensor
        Points in float64, shape ``(points, directions)``.
    """
    unit = SobolEngine(directions).draw_base2(max(points - 1, 1).bit_length(), dtype=torch.float64)
    shifted = (unit.numpy() + rng.numpy_generator(seed, "test points").random(directions)) % 1
    return torch.from_numpy(ndtri(shifted.clip(1e-12, 1 - 1e-12)))


def test_error_on(problem, params: Params, x: Tensor, y: Tensor) -> Float[Tensor, "*E"]:
    """The same from given data: the direct way, d-dimensional samples and all.

    Parameters
    ----------
    problem
        A problem with outputs on given samples.
    params
        Parameters by name, each of shape ``(*E, ...)``.
    x
        Samples, shape ``(*#E, n, ...)``.
    y
        Their labels, -1 or +1, shape ``(*#E, n)``.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    return error_rate(problem.predict(params, x) * y.to(problem.observed))


def error_rate(margin: Tensor) -> Tensor:
    """Share of margins that are not positive; where training has diverged, a nan is a miss.

    Parameters
    ----------
    margin
        Outputs times labels, shape ``(*E, n)``.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    return 1 - (margin > 0).to(margin.dtype).mean(-1)


def sharpness(problem: Problem, params: Params, steps: int = 100, reach: float = 1e-4) -> Float[Tensor, "*E"]:
    r"""Largest eigenvalue of the Hessian of the training loss, by power iteration on differences of gradients.

    .. math:: Hv \approx \frac{\nabla L(w + \epsilon v) - \nabla L(w - \epsilon v)}{2\epsilon}

    A first run finds the eigenvalue largest in size; where it is negative, a second, shifted by it, finds the largest.
    For one network and a loss that autograd can differentiate twice, `flbook.observe.sharpness` is exact and says how
    far it has converged. This one asks for a gradient and a norm only, so it serves a problem in coefficients, whose
    coordinates are not orthogonal, and all members of an ensemble at once.

    Parameters
    ----------
    problem, params
        In weights or in coefficients; float64, or the differences drown.
    steps
        Of each run.
    reach
        :math:`\epsilon`, a length in the space of the weights.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    def inner(u: Params, v: Params) -> Tensor:
        return (problem.norm(_sum(u, v)) ** 2 - problem.norm(_sum(u, v, -1)) ** 2) / 4

    def times(v: Params, shift: Tensor) -> Params:
        ahead, behind = (problem.gradient(_sum(params, v, sign * reach)) for sign in (1, -1))
        return {name: (ahead[name] - behind[name]) / (2 * reach) + per_member(shift, v[name]) * v[name] for name in v}

    def largest(shift: Tensor) -> Tensor:
        v = {name: rng.normal(tuple(p.shape), 0, f"direction in {name}").to(p) for name, p in params.items()}
        value = shift
        for _ in range(steps):
            v = {name: p / per_member(problem.norm(v), p) for name, p in v.items()}
            step = times(v, shift)
            value, v = inner(v, step), step
        return value - shift

    shift = (-largest(torch.zeros_like(problem.norm(params)))).clamp(min=0)
    return largest(shift)


def gauss_newton_sharpness(problem: Problem, params: Params) -> Float[Tensor, "*E"]:
    r"""Largest eigenvalue of :math:`\frac1n\sum_i \ell''_i\,\nabla f_i \nabla f_i^\top`, from an n x n matrix.

    For an activation of straight pieces the outputs have no second derivative, so this is the Hessian of the training
    loss exactly: `sharpness` without iterations.

    Parameters
    ----------
    problem
        A problem with gradients of its outputs, whose loss has a `curvature`.
    params
        Parameters by name, each of shape ``(*E, ...)``.

    Returns
    -------
    Tensor
        One number a member, shape ``*E``.
    """
    f = problem.predict(params)
    root = (problem.loss.curvature(f, problem.observed) / f.shape[-1]).sqrt()
    return torch.linalg.eigvalsh(root[..., :, None] * problem.output_gradients(params) * root[..., None, :])[..., -1]


def _sum(u: Params, v: Params, factor: float = 1) -> Params:
    return {name: u[name] + factor * v[name] for name in u}


def noisy_label_error(error, flip_prob: float):
    """Test error against labels flipped with probability p: ``p + (1 - 2 p) error``, never below the Bayes error p.

    Parameters
    ----------
    error
        Test error against true labels, any shape.
    flip_prob
        Probability p.

    Returns
    -------
    number, array or tensor
        Errors against flipped labels, of the shape of `error`.
    """
    return flip_prob + (1 - 2 * flip_prob) * error


def coefficients(problem: Problem) -> list[Quantity]:
    """The quantities of a coefficient race: largest gamma and largest rho over all filters, and the training loss.

    Parameters
    ----------
    problem
        A problem with a signal and noise patches.

    Returns
    -------
    list of Quantity
        Quantities of one number a member.
    """
    def gamma(params):
        return problem.signal_learned(params).flatten(-2).amax(-1)

    def rho(params):
        return problem.noise_memorised(params).flatten(-3).amax(-1)

    return [
        Quantity("gamma", gamma, (), "largest signal coefficient γ"),
        Quantity("rho", rho, (), "largest noise coefficient ρ"),
        Quantity("train_loss", problem.train_loss, (), "training loss", "nats"),
    ]
