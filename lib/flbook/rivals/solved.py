"""Rivals for given data, each solved and tuned: what a network has to beat before its features mean anything."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, cast

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

from flbook import rng
from flbook.data.prompts import LinearPrompts
from flbook.data.signal_noise import SignalNoise
from flbook.data.single_index import SingleIndex
from flbook.domains import Natural, checked_arguments
from flbook.estimators.in_context import DiscreteMMSE, LeastSquares, Ridge
from flbook.estimators.regression import TunedRidge, averaging, tuned_kernel_ridge, weighted_second_moment
from flbook.models import kernels
from flbook.models.activations import relu
from flbook.models.cnn import TwoLayerCNN
from flbook.models.random_features import RandomFeatures
from flbook.models.two_layer import TwoLayer
from flbook.observe.functions import Network, functional
from flbook.observe.jacobians import ntk
from flbook.shapes import Context

Predictor = Callable[[Tensor, Tensor, Tensor], Tensor]
WIDTHS = tuple(2.0**k for k in range(-3, 4))  # of the Gaussian kernel, in root mean square distances of the samples
NEURONS = 512  # of the lazy network
FEATURES = 2048
STARTS = 8


@checked_arguments
def for_(data: Any, network: tuple[Network, dict[str, Tensor]] | None = None, seed: Natural = 0
         ) -> dict[str, Predictor]:
    r"""Rivals for a data model of the book, or for inputs and labels of one's own.

    Each is called as ``predict(x, y, x_new)`` with n samples and p new inputs, and returns predictions of shape
    ``(p,)``; their sign answers where labels are -1 or +1. Labels of an integer type are classes: then predictions have
    one column a class, up to the largest label, and the largest answers.

    - linear: ridge regression on the inputs.
    - lazy: kernel ridge regression with the tangent kernel of a network at its start, by `flbook.observe.ntk`. If none
      is given, it is one of 512 ReLU neurons, or for the signal-noise model its two-layer CNN.
    - kernel: Gaussian kernels of seven widths, and the tangent kernel of an infinitely wide ReLU network; the one with
      the least leave-one-out error.
    - random features: ridge regression on 2048 random ReLU features.
    - for a data model also the best method known, see `best_known`.

    In the first four, the penalty is the one of 49 with the least squared leave-one-out error, see
    `flbook.estimators.tuned_kernel_ridge`; inputs are taken as vectors, less their mean, in units of their root mean
    square.

    Parameters
    ----------
    data
        A `SignalNoise`, `SingleIndex` or `LinearPrompts`, or a pair of inputs ``(n, ...)`` and labels ``(n,)``, which
        says what the rivals will be asked about.
    network
        ``(f, params)`` with one output, see `flbook.observe.functional`, whose tangent kernel the lazy rival takes.
    seed
        Of random features and of the network.

    Returns
    -------
    dict
        Callables by name.

    Raises
    ------
    ValueError
        If the data are neither, or, when a rival is called, if shapes clash.

    Source: Hastie, Tibshirani and Friedman (2009), section 7.10, for leaving one out; Cho and Saul (2009); Rahimi and
    Recht (2007); Jacot, Gabriel and Hongler (2018).

    Examples
    --------
    >>> x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    >>> y = x[:, 0] * x[:, 1]
    >>> errors = {name: float((predict(x[:40], y[:40], x[40:]) - y[40:]).square().mean())
    ...           for name, predict in for_((x, y)).items()}
    >>> min(errors, key=errors.get) != "linear"
    True
    """
    if isinstance(data, tuple):
        if len(data) != 2 or not all(isinstance(part, Tensor) for part in data):
            raise ValueError(f"data of one's own must be a pair of tensors, inputs and labels; got "
                             f"{', '.join(type(part).__name__ for part in data)}")
        _check(*data, data[0])
    best = {} if isinstance(data, tuple) else best_known(data)
    lazy = network or (_convolutional(data, seed) if isinstance(data, SignalNoise) else None)
    return {
        "linear": _tuned(lambda x, new: [(x @ x.T, new @ x.T)]),
        "lazy": _lazy(lazy, seed),
        "kernel": _tuned(_kernels),
        "random features": _tuned(lambda x, new: [_random_features(x, new, seed)]),
        **{name: _guarded(predict) for name, predict in best.items()},
    }


@singledispatch
def best_known(data: Any) -> dict[str, Predictor]:
    """The best methods known for a data model, by name; a data model of one's own registers its own.

    Parameters
    ----------
    data
        The data model. For `SignalNoise` it is averaging, without and with being told in which patch the signal is
        (then there is no error left while flips are a minority). For `SingleIndex` it is least squares by a solver that
        is told the link and looks for the direction from eight starts, of which three are spectral. For
        `LinearPrompts` it is the Bayes rule.

    Returns
    -------
    dict
        Callables as `for_` returns them.

    Raises
    ------
    ValueError
        If none is known.

    Examples
    --------
    >>> list(best_known(SignalNoise(n=20, d=50)))
    ['averaging', 'told the patch']
    """
    raise ValueError(f"data must be a SignalNoise, SingleIndex or LinearPrompts, or a pair of inputs and labels; got "
                     f"{type(data).__name__}, for which no best method is registered")


def _of_signal_noise(data: SignalNoise) -> dict[str, Predictor]:
    def by(read: Callable[[Tensor], Tensor]) -> Predictor:
        return lambda x, y, new: read(new) @ averaging(read(x), y.to(x))

    return {"averaging": by(lambda x: x.sum(-2)), "told the patch": by(lambda x: x[..., 0, :])}


def _of_single_index(data: SingleIndex) -> dict[str, Predictor]:
    slope = torch.func.grad(lambda z: data.link(z).sum())

    def predict(x: Tensor, y: Tensor, new: Tensor) -> Tensor:
        n, d = x.shape
        x, y = x.double(), y.double()

        def misses(beta: np.ndarray) -> np.ndarray:  # of the labels, and of the length 1
            index = x @ torch.from_numpy(beta).to(x)
            return np.append((data.link(index) - y).cpu().numpy(), n**0.5 / 2 * (beta @ beta - 1))

        def jacobian(beta: np.ndarray) -> np.ndarray:
            rows = slope(x @ torch.from_numpy(beta).to(x))[:, None] * x
            return np.vstack([rows.cpu().numpy(), n**0.5 * beta])

        found = [least_squares(misses, start, cast(Any, jacobian), max_nfev=100) for start in _starts(x, y)]
        best = min(found, key=lambda one: one.cost).x
        return data.link(new.double() @ torch.from_numpy(best / np.linalg.norm(best)).to(x))

    return {"told the link": predict}


def _starts(x: Tensor, y: Tensor) -> list[np.ndarray]:
    """Directions to look from: the average, the two ends of the spectrum of a second moment, and random ones."""
    turned = torch.linalg.eigh(weighted_second_moment(x, y - y.mean()))[1]
    random = rng.normal((STARTS - 3, x.shape[1]), 0, "starts of a direction").to(x)
    starts = torch.stack([averaging(x, y), turned[:, 0], turned[:, -1], *random])
    return list(torch.nn.functional.normalize(starts, dim=-1).cpu().numpy())


def _of_linear_prompts(data: LinearPrompts) -> dict[str, Predictor]:
    pool, noise, spread = data.pool, data.noise, data.task_covariance
    if pool is not None:
        if spread is not None or not noise or isinstance(pool.seed, tuple):
            raise ValueError("the Bayes rule of a pool is known for one pool of standard normal tasks and labels with "
                             "noise; got another task covariance, no noise, or several pools")
        return {"Bayes": lambda x, y, new: DiscreteMMSE(pool.tasks(data.d).to(x), noise)(Context(x, y), new)}
    if spread is None:
        rule = Ridge(noise**2) if noise else LeastSquares()
        return {"Bayes": lambda x, y, new: rule(Context(x, y), new)}
    covariance = torch.tensor(spread, dtype=torch.float64)
    covariance = torch.diag(covariance) if covariance.ndim == 1 else covariance
    if not noise or not bool(torch.linalg.eigvalsh(covariance)[0] > 0):
        raise ValueError("the Bayes rule of tasks with a covariance is known for labels with noise and a covariance "
                         "without null directions; got another")
    inverse = noise**2 * torch.linalg.inv(covariance)
    return {"Bayes": lambda x, y, new: Ridge(inverse)(Context(x, y), new)}


for _kind_of_data, _methods in ((SignalNoise, _of_signal_noise), (SingleIndex, _of_single_index),
                                (LinearPrompts, _of_linear_prompts)):
    best_known.register(_kind_of_data, _methods)


def _tuned(pairs: Callable[[Tensor, Tensor], list[tuple[Tensor, Tensor]]]) -> Predictor:
    """Kernel ridge regression with the best of several kernels, given on vectors as (kernel, cross)."""

    def predict(x: Tensor, y: Tensor, new: Tensor) -> Tensor:
        flat, other = x.flatten(1).double(), new.flatten(1).double()
        mean = flat.mean(0)
        size = (flat - mean).square().mean().sqrt()
        if not bool(size > 0):
            raise ValueError(f"x must not be the same for all of the {len(x)} samples")
        return _best([(k, c) for k, c in pairs((flat - mean) / size, (other - mean) / size)], y).to(_kind(x))

    return _guarded(predict)


def _best(pairs: list[tuple[Tensor, Tensor]], y: Tensor) -> Tensor:
    """Predictions with the kernel of the least leave-one-out error."""
    target = y if y.is_floating_point() else torch.nn.functional.one_hot(y.long()).double()
    found: list[TunedRidge] = [tuned_kernel_ridge(kernel, cross, target) for kernel, cross in pairs]
    return min(found, key=lambda one: one.error).predictions


def _kernels(x: Tensor, new: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Gaussian kernels of several widths, and the tangent kernel of an infinitely wide network."""
    gaussian = [kernels.distance(lambda t, w=w: torch.exp(-t / (4 * w**2))) for w in WIDTHS]  # t is 2 in the mean
    return [(kernel(x, x), kernel(new, x)) for kernel in (*gaussian, kernels.relu_tangent())]


def _random_features(x: Tensor, new: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """The kernel of random ReLU features of inputs with a constant beside them."""
    net = RandomFeatures.draw(x.shape[1] + 1, FEATURES, relu, seed)
    seen, unseen = (RandomFeatures(net.w.to(x), net.a.to(x), relu).features(_with_one(part)) for part in (x, new))
    return seen @ seen.T, unseen @ seen.T


def _lazy(network: tuple[Network, dict[str, Tensor]] | None, seed: int) -> Predictor:
    """Kernel ridge regression with a tangent kernel, of the network that is given or of one for vectors."""
    if network is None:
        def pairs(x: Tensor, new: Tensor) -> list[tuple[Tensor, Tensor]]:
            x, new = _with_one(x), _with_one(new)
            f, params = functional(TwoLayer(x.shape[1], NEURONS, activation=relu, seed=seed).to(x.device))
            return [(ntk(f, params, x, chunk=256), ntk(f, params, new, x, chunk=256))]

        return _tuned(pairs)
    f, params = network

    def predict(x: Tensor, y: Tensor, new: Tensor) -> Tensor:
        like = next(iter(params.values()))
        return _best([(ntk(f, params, x.to(like)), ntk(f, params, new.to(like), x.to(like)))], y).to(_kind(x))

    return _guarded(predict)


def _convolutional(data: SignalNoise, seed: int) -> tuple[Network, dict[str, Tensor]]:
    """The network of the signal-noise model, wide enough to stand for its kernel."""
    return functional(TwoLayerCNN(data.d, 32, data.d**-0.5, seed=seed, dtype=torch.float64))


def _guarded(predict: Predictor) -> Predictor:
    """The same, which refuses samples that do not fit together."""

    def guarded(x: Tensor, y: Tensor, x_new: Tensor) -> Tensor:
        _check(x, y, x_new)
        return predict(x, y, x_new)

    return guarded


def _check(x: Tensor, y: Tensor, new: Tensor) -> None:
    """Refuse samples that do not fit together."""
    if x.ndim < 2 or y.shape != x.shape[:1] or new.shape[1:] != x.shape[1:] or len(x) < 3:
        raise ValueError(f"x must have the shape (n, ...) with n at least 3, y (n,), and new inputs that of x but for "
                         f"their number; got {tuple(x.shape)}, {tuple(y.shape)} and {tuple(new.shape)}")


def _kind(x: Tensor) -> torch.dtype:
    """The dtype of predictions."""
    return x.dtype if x.is_floating_point() else torch.float64


def _with_one(x: Tensor) -> Tensor:
    """Inputs with a constant beside them, which makes up for biases."""
    return torch.cat([x, torch.ones_like(x[:, :1])], 1)
