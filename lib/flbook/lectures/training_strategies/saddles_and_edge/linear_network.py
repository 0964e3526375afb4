r"""A network of L linear layers that is to become a given matrix, and when each mode of it is learned.

The loss is :math:`\frac12 E|(W_L \cdots W_1 - A)x|^2` over inputs with independent coordinates of given variances,
so no data are drawn. With the target :math:`A = \mathrm{diag}(s_1, \dots, s_d)` coordinate k is mode k, and the
diagonal of the product says how much of each mode the network has.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent
from flbook.training.problem import Params, PopulationProblem

Numbers = np.ndarray | xr.DataArray | float


@dataclass(frozen=True, eq=False)
class LinearNetworkTraining(PopulationProblem):
    """Training of linear layers: parameters ``w1`` to ``wL``.

    Parameters
    ----------
    target
        A, what the product of the layers is to be; one matrix, or one a member.
    layers
        Their start, the first layer first, shapes ``(*E, m, d)``, ``(*E, m, m)`` and so on to ``(*E, d, m)``.
    variances
        Of the inputs' coordinates, as a row; all 1 if None.

    Examples
    --------
    >>> from flbook import GradientDescent, fit
    >>> problem = LinearNetworkTraining(torch.diag(torch.tensor([2.0, 1.0])), random_layers(2, 8, 0.1, seed=(0, 1)))
    >>> problem.product(fit(problem, GradientDescent(0.1), 200).params).diagonal(dim1=-2, dim2=-1).numpy().round(3)
    array([[2., 1.],
           [2., 1.]])
    """

    target: Float[Tensor, "*#E k d"]
    layers: tuple[Tensor, ...]
    variances: Float[Tensor, "*#E 1 d"] | None = None

    def to(self, *where: Any) -> "LinearNetworkTraining":
        """On another device or in another precision."""
        variances = None if self.variances is None else self.variances.to(*where)
        layers = tuple(w.to(*where) for w in self.layers)
        return replace(self, target=self.target.to(*where), layers=layers, variances=variances)

    def start(self) -> Params:
        """The layers as they are given."""
        return {f"w{depth}": w for depth, w in enumerate(self.layers, 1)}

    def product(self, params: Params) -> Float[Tensor, "*E k d"]:
        """The matrix that the network is, W_L ... W_1."""
        return _chain(list(params.values()))

    def modes(self, params: Params) -> Float[Tensor, "*E d"]:
        """Diagonal of that matrix."""
        return self.product(params).diagonal(dim1=-2, dim2=-1).clone()  # a view would keep the product

    def slope(self, params: Params) -> Params:
        """Gradient, of each layer the wrong part of the product between the layers above and those below it."""
        weights = list(params.values())
        wrong = self.product(params) - self.target
        wrong = wrong if self.variances is None else wrong * self.variances
        found = {}
        for place, name in enumerate(params):
            above, below = weights[place + 1 :], weights[:place]
            part = _chain(above).mT @ wrong if above else wrong
            found[name] = part @ _chain(below).mT if below else part
        return found

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Length over all layers."""
        return torch.stack([part.square().sum((-2, -1)) for part in direction.values()]).sum(0).sqrt()

    def train_loss(self, params: Params, **change: Tensor) -> Float[Tensor, "*E"]:
        """Half the expected squared error."""
        wrong = (self.product(params) - self.target).square()
        return (wrong if self.variances is None else wrong * self.variances).sum((-2, -1)) / 2


def _chain(weights: list[Tensor]) -> Tensor:
    """The product of layers, the last one on the left."""
    product = weights[0]
    for w in weights[1:]:
        product = w @ product
    return product


@checked_arguments
def random_layers(d: Count, m: Count, sigma: Positive, seed: Natural | tuple[Natural, ...] = 0,
                  depth: Count = 2) -> tuple[Tensor, ...]:  # fmt: skip
    """Layers with independent entries from N(0, sigma^2), in float64; a tuple of seeds gives one leading ensemble axis.

    Parameters
    ----------
    d
        Inputs and outputs.
    m
        Width of the layers between.
    sigma
        Standard deviation of an entry.
    seed
        Of the draws, which do not hang on sigma.
    depth
        Layers.

    Returns
    -------
    tuple
        One matrix a layer, the first layer first.
    """
    widths = [d, *[m] * (depth - 1), d]
    shapes = zip(widths[1:], widths[:-1], strict=True)
    return tuple(sigma * rng.normal(shape, seed, f"layer {k}", dtype=torch.float64) for k, shape in enumerate(shapes))


def initial_strength(layers: tuple[Tensor, ...]) -> Float[Tensor, "*E d"]:
    r"""u(0) of each mode of two layers: the squared length of the part that grows.

    With the k-th column p of the first layer and the k-th row q of the second it is :math:`|p + q|^2/4`.
    """
    first, second = layers
    return ((first + second.mT) / 2).square().sum(-2)


def free_share(m: int, modes: int) -> np.ndarray:
    """What the modes learned before it leave of the growing part of each mode, in the mean: one of m directions each.

    Along the unit vector of a learned mode of strength S the sum p + q of a mode of strength s grows at the rate s - S,
    so it dies.
    """
    return 1 - np.arange(modes) / m


def course(problem: LinearNetworkTraining, lr: float, steps: int, *further: Quantity) -> np.ndarray | tuple:
    """The modes after every step, (step, *E, d), and further quantities alike."""
    modes = Quantity("modes", problem.modes, ("mode",), "modes", "1")
    ensemble = [f"axis_{k}" for k in range(len(problem.ensemble))]
    history = fit(problem, GradientDescent(lr), steps, [modes, *further], ensemble, at=range(steps + 1)).history
    found = [history[q.name].values for q in (modes, *further)]
    return tuple(found) if further else found[0]


def first_time(values: np.ndarray, level: float, lr: float) -> np.ndarray:
    """The time, step size times steps, at which each course first reaches a level in (0, 1).

    Between steps the logit is a line, as it is for a logistic curve. A course that does not reach the level gives nan.
    """
    reached = (values >= level).argmax(0)
    early = (values[0] >= level) | (values < level).all(0)
    place = np.maximum(reached, 1)[None]
    before, after = (np.take_along_axis(values, place - k, 0)[0] for k in (1, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.clip(before, 1e-300, None), np.minimum(after, 1 - 1e-15)
        low, high = (np.log(part / (1 - part)) for part in inside)
        between = (np.log(level / (1 - level)) - low) / (high - low)
    return np.where(early, np.nan, lr * (reached - 1 + between))
