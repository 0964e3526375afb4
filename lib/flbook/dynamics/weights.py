r"""A two-layer CNN on signal-noise data, in weights: what is measured in coefficients is measured here, too.

Whatever rule moved them, weights have one decomposition

.. math:: w_k(t) - w_k(0) = c_k\,\mu + \sum_i c_{k,i}\,\xi_i + r_k, \qquad r_k \perp \mu, \xi_1, \dots, \xi_n ,

since signal and noise patches are independent if d > n. Rules that are linear in gradients have r = 0, and then
`GramTraining` is the same problem at a cost that does not depend on d; sign descent and Adam do not. Where weights
decay, the parameter ``start`` is what is left of w(0), and the decomposition is that of the rest.

Source: Cao et al. (2022), Definition 5.1 (signal-noise decomposition).
"""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import Sample
from flbook.dynamics.fresh import outputs_on_noise
from flbook.models.activations import identity, tangent
from flbook.models.cnn import TwoLayerCNN
from flbook.observe.moved import decompose as in_directions
from flbook.rivals import FrozenCNN
from flbook.shapes import signs
from flbook.training.losses import logistic
from flbook.training.network import LazyTraining, Training
from flbook.training.problem import Params


def decompose(
    move: Float[Tensor, "*E 2 m d"], mu: Float[Tensor, " d"], xi: Float[Tensor, "*#E n d"]
) -> tuple[Float[Tensor, "*E 2 m"], Float[Tensor, "*E 2 m n"], Float[Tensor, "*E 2 m d"]]:
    r"""Coefficients c of filters' moves on :math:`\mu` and on each :math:`\xi_i`, and the rest r, all in float64.

    That of `flbook.observe.moved`, filter by filter.

    Parameters
    ----------
    move
        Weights after training less those before, or less what is left of them, shape ``(*E, 2, m, d)``.
    mu, xi
        Signal, shape ``(d,)``, and n < d noise patches, shape ``(*#E, n, d)``.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        Shapes ``(*E, 2, m)``, ``(*E, 2, m, n)`` and ``(*E, 2, m, d)``.

    Examples
    --------
    >>> mu, xi, beside = torch.eye(5)[0], torch.eye(5)[1:4], torch.eye(5)[4]
    >>> on_mu, on_xi, rest = decompose((2 * mu + xi[1] + 3 * beside).expand(2, 1, 5), mu, xi)
    >>> on_mu[0].tolist(), on_xi[0].tolist(), rest[0].tolist()
    ([2.0], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 3.0]])
    """
    found = in_directions(move.flatten(-3, -2), mu[None], xi)
    on_mu, on_xi, rest = (part.unflatten(-2, move.shape[-3:-1]) for part in found)
    return on_mu[..., 0], on_xi, rest


class WeightTraining(Training):
    """`Training` of a `TwoLayerCNN` on a sample of `SignalNoise`, which knows the signal, the noise and its law.

    Parameters
    ----------
    data, sample
        The data model, whose ``test_law`` is that of fresh noise, and what it drew.
    cnn
        The network before training; its parameters carry the ensemble axes.
    loss
        One of `flbook.training.losses`.

    Raises
    ------
    ValueError
        As `Training` does.

    Examples
    --------
    >>> from flbook import GradientDescent, SignalNoise, TwoLayerCNN, fit, measures
    >>> data = SignalNoise(n=20, d=100)
    >>> problem = WeightTraining.of(data, data.draw(seed=0), TwoLayerCNN(d=100, m=5, sigma_0=0.01))
    >>> params = fit(problem, GradientDescent(0.1), 50).params
    >>> problem.signal_learned(params).shape, bool(problem.outside_span(params) < 1e-6)
    (torch.Size([2, 5]), True)
    """

    model: TwoLayerCNN

    def __init__(self, data: Any, sample: Sample, cnn: TwoLayerCNN, loss: Any = logistic):
        super().__init__(cnn, sample.x, sample.observed, loss)
        self.data, self.sample, self.y, self.law = data, sample, sample.y.to(self.x), data.test_law
        self.mu, self.xi = sample.mu.to(self.x), sample.xi.to(self.x)

    @classmethod
    def of(cls, data: Any, sample: Sample, cnn: TwoLayerCNN) -> "WeightTraining":
        """The same problem as ``GramTraining.of(data, sample, cnn)``.

        Parameters
        ----------
        data, sample, cnn
            The data model, what it drew, and the network before training.

        Returns
        -------
        WeightTraining
            The problem, with the logistic loss.
        """
        return cls(data, sample, cnn)

    def decaying(self, params: Params) -> Params:
        """The same with the multiplier of the initial weights, which starts at 1: it tells what is left of w(0).

        Parameters
        ----------
        params
            Weights, as `start` makes them.

        Returns
        -------
        Params
            The parameters, with ``"start"`` of shape ``*E`` beside them.
        """
        return params | {"start": torch.ones_like(params["w"][..., 0, 0, 0])}

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, or on `x`.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.
        x
            Samples, shape ``(*#E, p, 2, d)``; those of training if None.

        Returns
        -------
        Tensor
            Shape ``(*E, p)``.
        """
        return super().predict(_weights(params), x)

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss; no gradient has a part of w(0).

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.
        x, observed
            Samples, shape ``(*#E, p, 2, d)``, and labels, shape ``(*#E, p)``; those of training if None.

        Returns
        -------
        Params
            The gradient, in the form of `params`.
        """
        grad = super().gradient(_weights(params), x=x, observed=observed)
        return grad | ({"start": torch.zeros_like(params["start"])} if "start" in params else {})

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction.

        Parameters
        ----------
        direction
            A direction in the form of the parameters.

        Returns
        -------
        Tensor
            Shape ``*E``.
        """
        return super().norm(_weights(direction))

    def moved(self, params: Params) -> Float[Tensor, "*E 2 m d"]:
        """How far each filter is from its start, or from what is left of it.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        Tensor
            Shape ``(*E, 2, m, d)``.
        """
        kept = params["start"][..., None, None, None] if "start" in params else 1
        return params["w"] - kept * self.start()["w"]

    def signal_learned(self, params: Params) -> Float[Tensor, "*E 2 m"]:
        r""":math:`\gamma_{j,r} = j\|\mu\|^2 c_{j,r}`.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        Tensor
            Shape ``(*E, 2, m)``.
        """
        on_mu = decompose(self.moved(params), self.mu, self.xi)[0].to(self.x)
        return signs(2, on_mu)[:, None] * (self.mu @ self.mu) * on_mu

    def noise_memorised(self, params: Params) -> Float[Tensor, "*E 2 m n"]:
        r""":math:`\rho_{j,r,i} = \|\xi_i\|^2 c_{j,r,i}`.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        Tensor
            Shape ``(*E, 2, m, n)``.
        """
        on_xi = decompose(self.moved(params), self.mu, self.xi)[1].to(self.x)
        return on_xi * self.xi.square().sum(-1)[..., None, None, :]

    def outside_span(self, params: Params) -> Float[Tensor, "*E"]:
        """Share of the squared move that no signal and no noise patch explains: 0 for rules linear in gradients.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        Tensor
            Shares from 0 to 1, shape ``*E``.
        """
        moved = self.moved(params)
        whole = moved.double().square().sum((-3, -2, -1))
        rest = decompose(moved, self.mu, self.xi)[2].square().sum((-3, -2, -1))
        return (rest / whole.clamp(min=torch.finfo(whole.dtype).tiny)).to(self.x)

    def filters(self, params: Params) -> tuple[Float[Tensor, "*E K d"], Float[Tensor, "*E K"]]:
        """Weights and biases that fresh patches meet, in float64.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shapes ``(*E, K, d)`` and ``(*E, K)``; here K = k = 2 m.
        """
        w = params["w"].flatten(-3, -2).double()
        return w, params["b"].flatten(-2).double() if "b" in params else torch.zeros_like(w[..., 0])

    def respond(self, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points k"]:
        """What the network's filters make of what these meet.

        Parameters
        ----------
        z
            Pre-activations, shape ``(*E, points, K)``.

        Returns
        -------
        Tensor
            Responses of the k filters, shape ``(*E, points, k)``.
        """
        return self.model.activation(z)

    def test_outputs(self, params: Params, standard: Float[Tensor, "points K"]) -> tuple[Tensor, Tensor]:
        """Outputs on fresh samples of label +1 and of label -1, exactly distributed.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.
        standard
            Standard normal numbers, shape ``(points, K)``: `test_directions` for each patch.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shape ``(*E, points)`` each.
        """
        (w, bias), mu = self.filters(params), self.mu.double()
        on_mu = torch.einsum("...kd,d->...k", w, mu)
        eye = torch.eye(w.shape[-2], dtype=w.dtype, device=w.device)
        root = self.law(torch.einsum("...kd,...ld->...kl", w, w), on_mu, mu @ mu, eye)
        a = self.model.scale * signs(self.model.w.shape[-3] * self.model.w.shape[-2], w)
        on_noise = outputs_on_noise(self.respond, root, a, standard, bias)
        both = (self.respond((bias + sign * on_mu)[..., None, :]) @ a + on_noise for sign in (1, -1))
        plus, minus = (output.to(self.x) for output in both)
        return plus, minus

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes.

        Returns
        -------
        int
            K = 2 m, one a filter.
        """
        return self.model.w.shape[-3] * self.model.w.shape[-2]

    def linear(self) -> "WeightTraining":
        """The network with its activation taken away: a linear classifier of the sum of the patches.

        Returns
        -------
        WeightTraining
            The rival, with parameters of the same form.
        """
        cnn = copy.copy(self.model)
        cnn.activation = identity
        return WeightTraining(self.data, self.sample, cnn, self.loss)

    def lazy(self) -> "LazyWeightTraining":
        """The network's first-order expansion about its start, with its exact test law.

        Returns
        -------
        LazyWeightTraining
            The rival, with parameters of the same form.
        """
        return LazyWeightTraining(self.data, self.sample, self.model, self.loss)

    def frozen(self) -> Training:
        """Random features: the initial filters stay, the output weights train; its test error is that on given data.

        Returns
        -------
        Training
            The rival, with the output weights as its parameters.
        """
        return Training(FrozenCNN(self.model, self.x), self.x, self.observed, self.loss)


class LazyWeightTraining(LazyTraining, WeightTraining):
    """The lazy rival, which fresh patches meet by the filters as they are and as they were."""

    def filters(self, params: Params) -> tuple[Float[Tensor, "*E K d"], Float[Tensor, "*E K"]]:
        """Trained and initial filters side by side, in float64.

        Parameters
        ----------
        params
            Weights ``w``, shape ``(*E, 2, m, d)``, with ``b`` and ``start`` where there are any.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shapes ``(*E, K, d)`` and ``(*E, K)``, K = 4 m.
        """
        pairs = zip(super().filters(params), super().filters(self.start()), strict=True)
        w, b = (torch.cat([now, before.expand_as(now)], axis)
                for (now, before), axis in zip(pairs, (-2, -1), strict=True))
        return w, b

    def respond(self, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points k"]:
        """First-order response.

        Parameters
        ----------
        z
            Pre-activations, shape ``(*E, points, K)``, K = 4 m.

        Returns
        -------
        Tensor
            Shape ``(*E, points, k)``, k = 2 m.
        """
        return tangent(self.model.activation, *z.chunk(2, -1))

    @property
    def test_directions(self) -> int:
        """Trained and initial filters.

        Returns
        -------
        int
            K = 4 m.
        """
        return 2 * super().test_directions


def _weights(params: Params) -> Params:
    """The parameters of the network."""
    return {name: p for name, p in params.items() if name != "start"}
