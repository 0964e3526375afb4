r"""The signal-noise decomposition as an algorithm: train in coefficients, at a cost that does not depend on d.

Every gradient of a two-layer CNN on patches :math:`[y_i\mu, \xi_i]` lies in the span of :math:`\mu` and the
:math:`\xi_i`. So the weights stay in

.. math:: w_k(t) = w_k(0) + c_k(t)\,\mu + \sum_i c_{k,i}(t)\,\xi_i

and the coefficients c are the state. Inner products of :math:`\mu`, :math:`\xi_i` and :math:`w_k(0)`, the Gram
matrices, are all that training and testing ask of the d-dimensional vectors. The paper's coefficients are
:math:`\gamma_{j,r} = j\|\mu\|^2 c_{j,r}` and :math:`\rho_{j,r,i} = \|\xi_i\|^2 c_{j,r,i}`.

Source: Cao et al. (2022), Definition 5.1 (signal-noise decomposition); the algorithm is this book's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import Sample, noise_preactivations
from flbook.dynamics.fresh import outputs_on_noise
from flbook.dynamics.frozen import FrozenGramTraining
from flbook.dynamics.inner_products import Gram, add_product, joint_gram
from flbook.models.activations import identity, relu, tangent
from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import EmpiricalProblem, Params, Problem, convert


@dataclass(frozen=True)
class GramTraining(EmpiricalProblem):
    """The training problem of a two-layer CNN on signal-noise data, in coefficients.

    Parameters are ``{"mu": (*E, k), "xi": (*E, k, n)}`` and, with a trained bias, ``"b": (*E, k)``. Any rule of
    `flbook.training.optimizers` that is linear in gradients runs on them, and the weights it would have produced are
    ``w(0) + params["mu"] mu + params["xi"] xi`` exactly. A rule that lets weights decay adds ``"start": (*E,)``, the
    multiplier of w(0). Its fields are made by ``of`` from given data, or from a drawn Gram matrix.

    Raises
    ------
    ValueError
        If labels are not -1 or +1, or do not fit the Gram matrix in number.

    Source: Cao et al. (2022), Definition 5.1.

    Examples
    --------
    >>> from flbook import GradientDescent, SignalNoise, TwoLayerCNN, fit, measures
    >>> data = SignalNoise(n=20, d=100)
    >>> problem = GramTraining.of(data, data.draw(seed=0), TwoLayerCNN(d=100, m=5, sigma_0=0.01))
    >>> params = fit(problem, GradientDescent(0.1), 50).params
    >>> params["mu"].shape, params["xi"].shape, problem.noise_memorised(params).shape
    (torch.Size([10]), torch.Size([10, 20]), torch.Size([2, 5, 20]))
    """

    coefficients = True

    gram: Gram
    y: Float[Tensor, "*#E n"]  # true labels, as in the signal patch
    observed: Float[Tensor, "*#E n"]  # labels of the loss
    scale: float  # weight of a filter in the output, 1/m for the mean over filters
    activation: Callable[[Tensor], Tensor] = relu
    loss: Any = logistic
    bias: bool = False
    law: Callable[..., Tensor] = partial(noise_preactivations, sigma_xi=1.0, orthogonal=False)  # of fresh noise, linear

    def __post_init__(self):
        check_labels(self.observed)
        check_labels(self.y)
        n = self.gram.xi_xi.shape[-1]
        if self.y.shape[-1] != n or self.observed.shape[-1] != n:
            raise ValueError(f"labels of shapes {tuple(self.y.shape)} and {tuple(self.observed.shape)} do not fit "
                             f"the Gram matrix of n = {n} noise patches")

    @classmethod
    def of(cls, data: Any, sample: Sample, cnn: TwoLayerCNN) -> "GramTraining":
        """The same problem as ``Training(cnn, sample.x, sample.observed)``.

        Parameters
        ----------
        data
            The data model, whose ``test_law`` is that of fresh noise.
        sample
            What it drew, n samples.
        cnn
            The network before training, with k = 2 m filters; its parameters carry the ensemble axes.

        Returns
        -------
        GramTraining
            The problem, on the device and in the dtype of the network.
        """
        b = None if cnn.b is None else cnn.b.detach().flatten(-2)
        gram = Gram.of(sample, cnn.w.detach().flatten(-3, -2), b)
        return cls(gram, sample.y.to(gram.w_w), sample.observed.to(gram.w_w), cnn.scale, cnn.activation,
                   bias=b is not None, law=data.test_law)

    def to(self, *where: Any) -> "GramTraining":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        GramTraining
            The same problem there.
        """
        return replace(self, gram=self.gram.to(*where), y=self.y.to(*where), observed=self.observed.to(*where))

    @property
    def a(self) -> Float[Tensor, " k"]:
        """Output weights: `scale` for the filters of +1, minus `scale` for those of -1.

        Returns
        -------
        Tensor
            Shape ``(k,)``.
        """
        return self.scale * signs(self.gram.w_w.shape[-1], self.gram.w_w)

    def start(self) -> Params:
        """Coefficients before training: zero.

        Returns
        -------
        Params
            ``{"mu": (*E, k), "xi": (*E, k, n)}``, and with a trained bias ``"b": (*E, k)``, the initial one.
        """
        g = self.gram
        members = torch.broadcast_shapes(g.mu_mu.shape, g.w_mu.shape[:-1], g.xi_xi.shape[:-2], self.observed.shape[:-1])
        k, n = g.w_xi.shape[-2:]
        params = {"mu": g.w_mu.new_zeros(*members, k), "xi": g.w_mu.new_zeros(*members, k, n)}
        return params | ({"b": g.b.expand(*members, k).clone()} if self.bias else {})

    def decaying(self, params: Params) -> Params:
        """The same with the multiplier of the initial weights, which starts at 1.

        Parameters
        ----------
        params
            Coefficients, as `start` makes them.

        Returns
        -------
        Params
            The parameters, with ``"start"`` of shape ``*E`` beside them.
        """
        return params | {"start": torch.ones_like(params["mu"][..., 0])}

    def initial(self, params: Params) -> tuple[Float[Tensor, "*#E k"], Float[Tensor, "*#E k n"]]:
        """What the initial filters, as they stand, see of signal and noise: less than at first, if weights decay.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shapes ``(*#E, k)`` and ``(*#E, k, n)``.
        """
        g = self.gram
        if "start" not in params:
            return g.w_mu, g.w_xi
        kept = params["start"][..., None]
        return kept * g.w_mu, kept[..., None] * g.w_xi

    def preactivations(self, params: Params) -> tuple[Float[Tensor, "*E k"], Float[Tensor, "*E k n"]]:
        r"""What the filters see before the bias: :math:`\langle w_k, \mu\rangle`, :math:`\langle w_k, \xi_i\rangle`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shapes ``(*E, k)`` and ``(*E, k, n)``.
        """
        g, c_mu, c_xi = self.gram, params["mu"], params["xi"]
        w_mu, w_xi = self.initial(params)
        on_mu = w_mu + c_mu * g.mu_mu[..., None] + torch.einsum("...n,...kn->...k", g.mu_xi, c_xi)
        before = torch.addcmul(w_xi, c_mu[..., None], g.mu_xi[..., None, :])
        return on_mu, add_product(before, c_xi, g.xi_xi)

    def patches(self, params: Params) -> dict[str, Tensor]:
        """Pre-activations of every patch there is: the signal for y = +1, for y = -1, and the noise of each sample.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        dict[str, Tensor]
            ``"plus"`` and ``"minus"`` of shape ``(*E, k)``, ``"noise"`` of shape ``(*E, k, n)``.
        """
        on_mu, on_xi = self.preactivations(params)
        if not self.bias:
            return {"plus": on_mu, "minus": -on_mu, "noise": on_xi}
        b = params["b"]
        return {"plus": b + on_mu, "minus": b - on_mu, "noise": b[..., None] + on_xi}

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """What a filter makes of a patch's pre-activation; a rival may answer by patch.

        Parameters
        ----------
        z
            Pre-activations in the form of `patches`, or of `fresh` for fresh patches.
        patch
            Kind of patch: ``"plus"``, ``"minus"``, ``"noise"`` or ``"fresh"``.

        Returns
        -------
        Tensor
            Responses, of the shape of `z`.
        """
        return self.activation(z)

    def expansion_point(self, z: Tensor, patch: str) -> Tensor:
        """Where the activation's slope is taken that a patch meets; a rival may keep it where it was.

        Parameters
        ----------
        z
            Pre-activations in the form of `patches`, or of `fresh` for fresh patches.
        patch
            Kind of patch: ``"plus"``, ``"minus"``, ``"noise"`` or ``"fresh"``.

        Returns
        -------
        Tensor
            Pre-activations, of the shape of `z`.
        """
        return z

    def slope(self, z: Tensor, patch: str) -> Tensor:
        """The derivative of `respond`.

        Parameters
        ----------
        z
            Pre-activations in the form of `patches`, or of `fresh` for fresh patches.
        patch
            Kind of patch: ``"plus"``, ``"minus"``, ``"noise"`` or ``"fresh"``.

        Returns
        -------
        Tensor
            Slopes, of the shape of `z`.
        """
        return self.activation.slope(self.expansion_point(z, patch))

    def vjp(self, upstream: Tensor, z: Tensor, patch: str) -> Tensor:
        """`upstream` times `slope`, in as few passes as the activation knows.

        Parameters
        ----------
        upstream
            A factor of a shape that broadcasts with that of `z`.
        z
            Pre-activations in the form of `patches`, or of `fresh` for fresh patches.
        patch
            Kind of patch: ``"plus"``, ``"minus"``, ``"noise"`` or ``"fresh"``.

        Returns
        -------
        Tensor
            The product, of the shape that these broadcast to.
        """
        return self.activation.vjp(upstream, self.expansion_point(z, patch))

    def outputs(self, params: Params) -> Float[Tensor, "*E n"]:
        """Outputs on the training samples.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, n)``.
        """
        return self._outputs(self.patches(params))

    def _outputs(self, z: dict[str, Tensor]) -> Tensor:
        plus, minus = (self.respond(z[side], side) @ self.a for side in ("plus", "minus"))
        signal = torch.where(self.y > 0, plus[..., None], minus[..., None])
        return signal + self.a @ self.respond(z["noise"], "noise")

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        r"""The gradient's own coefficients on :math:`\mu` and the :math:`\xi_i`; not the derivative in c.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        observed
            Labels, shape ``(*#E, n)``.

        Returns
        -------
        Params
            The gradient, in the form of `params`.
        """
        z = self.patches(params)
        pull = self.loss.slope(self._outputs(z), observed) / self.y.shape[-1]
        up, down = (self.a * (pull * (sign * self.y > 0)).sum(-1, keepdim=True) for sign in (1, -1))
        plus, minus = self.vjp(up, z["plus"], "plus"), self.vjp(down, z["minus"], "minus")
        noise = self.vjp(self.a[:, None] * pull[..., None, :], z["noise"], "noise")
        grad = {"mu": plus - minus, "xi": noise}
        grad |= {"b": plus + minus + noise.sum(-1)} if self.bias else {}
        return self.with_start(grad, params)

    def with_start(self, grad: Params, params: Params) -> Params:
        """A gradient with the part that the multiplier of the initial weights has in it, where there is one: none.

        Parameters
        ----------
        grad
            A gradient, in the form of `start`.
        params
            Coefficients at which it was taken.

        Returns
        -------
        Params
            The gradient, in the form of `params`.
        """
        return grad | ({"start": torch.zeros_like(params["start"])} if "start" in params else {})

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for.

        Parameters
        ----------
        direction
            A direction in the form of the parameters.

        Returns
        -------
        Tensor
            Shape ``*E``.
        """
        g, c_mu, c_xi = self.gram, direction["mu"], direction["xi"]
        square = g.mu_mu[..., None] * c_mu**2 + 2 * c_mu * torch.einsum("...n,...kn->...k", g.mu_xi, c_xi)
        square = square + torch.einsum("...kn,...np,...kp->...k", c_xi, g.xi_xi, c_xi)
        if "start" in direction:
            kept, cross = direction["start"][..., None], c_mu * g.w_mu + torch.einsum("...kn,...kn->...k", c_xi, g.w_xi)
            square = square + kept**2 * g.w_w.diagonal(dim1=-2, dim2=-1) + 2 * kept * cross
        return (square + direction.get("b", torch.zeros_like(c_mu)) ** 2).sum(-1).sqrt()

    def output_gradients(self, params: Params) -> Float[Tensor, "*E n n"]:
        r"""Inner products :math:`\langle\nabla f_i, \nabla f_j\rangle` of gradients of outputs: the tangent kernel.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, n, n)``.
        """
        g, z, a = self.gram, self.patches(params), self.a[:, None]
        plus, minus = (self.slope(z[side], side)[..., None] for side in ("plus", "minus"))
        signal = a * torch.where(self.y[..., None, :] > 0, plus, -minus)  # (*E, k, n): on mu
        noise = a * self.slope(z["noise"], "noise")  # on the sample's own noise patch
        cross = torch.einsum("...kn,...kp->...np", signal, noise) * g.mu_xi[..., None, :]
        kernel = torch.einsum("...kn,...kp->...np", signal, signal) * g.mu_mu[..., None, None] + cross + cross.mT
        kernel = kernel + torch.einsum("...kn,...kp->...np", noise, noise) * g.xi_xi
        if not self.bias:
            return kernel
        both = a * torch.where(self.y[..., None, :] > 0, plus, minus) + noise
        return kernel + torch.einsum("...kn,...kp->...np", both, both)

    def in_float64(self, params: Params) -> tuple["GramTraining", Params]:
        """Problem and parameters in float64, since covariances of nearly equal filters are nearly singular.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[GramTraining, Params]
            Both, with the same shapes.
        """
        return self.to(torch.float64), {name: p.double() for name, p in params.items()}

    def weight_gram(self, params: Params) -> Float[Tensor, "*E k k"]:
        r"""Inner products :math:`\langle w_k(t), w_l(t)\rangle` of the trained filters, in float64.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, k, k)``.
        """
        exact, c = self.in_float64(params)
        g, c_mu, c_xi = exact.gram, c["mu"], c["xi"]
        w_mu, w_xi = exact.initial(c)
        on_mu = w_mu + g.mu_mu[..., None] * c_mu / 2 + torch.einsum("...n,...kn->...k", g.mu_xi, c_xi)
        on_xi = w_xi + torch.einsum("...kn,...np->...kp", c_xi, g.xi_xi) / 2
        half = torch.einsum("...k,...l->...kl", c_mu, on_mu) + torch.einsum("...kn,...ln->...kl", c_xi, on_xi)
        w_w = c["start"][..., None, None] ** 2 * g.w_w if "start" in c else g.w_w
        return w_w + half + half.mT

    def filter_products(self, params: Params) -> tuple[Float[Tensor, "*E K K"], Float[Tensor, "*E K"], Tensor | None]:
        """Of the K filters that fresh patches meet: inner products, what they see of the signal (float64), biases.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[Tensor, Tensor, Tensor or None]
            Shapes ``(*E, K, K)``, ``(*E, K)`` and ``(*E, K)``, with None for no biases; here K = k.
        """
        exact, c = self.in_float64(params)
        return exact.weight_gram(c), exact.preactivations(c)[0], params["b"] if self.bias else None

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points K"]:
        """Pre-activations of fresh noise patches, exactly distributed, bias included.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        standard
            Standard normal numbers, shape ``(points, K)``: `test_directions` for each patch.

        Returns
        -------
        Tensor
            Shape ``(*E, points, K)``.
        """
        w_w, w_mu, b = self.filter_products(params)
        z = self.law(w_w, w_mu, self.gram.mu_mu.double(), standard).to(params["mu"])
        return z if b is None else z + b[..., None, :]

    def training_noise(self, params: Params) -> Float[Tensor, "*E n k"]:
        """Pre-activations of the training noise patches, in the form of `fresh`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, n, k)``.
        """
        return self.patches(params)["noise"].mT

    def test_outputs(self, params: Params, standard: Float[Tensor, "points k"]) -> tuple[Tensor, Tensor]:
        """Outputs on fresh samples of label +1 and of label -1, the noise patches shared.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        standard
            Standard normal numbers, shape ``(points, K)``: `test_directions` for each patch.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shape ``(*E, points)`` each.
        """
        noise = self.fresh_outputs(params, standard)
        plus, minus = (signal[..., None] + noise for signal in self.signal_outputs(params))
        return plus, minus

    def fresh_outputs(self, params: Params, standard: Float[Tensor, "points K"], a: Tensor | None = None) -> Tensor:
        """Outputs on fresh noise patches alone.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        standard
            Standard normal numbers, shape ``(points, K)``: `test_directions` for each patch.
        a
            Output weights, shape ``(*#E, k)``, which members may have of their own; those of the problem if None.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        w_w, w_mu, b = self.filter_products(params)
        eye = torch.eye(w_w.shape[-1], dtype=w_w.dtype, device=w_w.device)
        root = self.law(w_w, w_mu, self.gram.mu_mu.double(), eye)
        return outputs_on_noise(partial(self.respond, patch="fresh"), root, self.a if a is None else a, standard, b)

    def signal_outputs(self, params: Params) -> tuple[Float[Tensor, "*E"], Float[Tensor, "*E"]]:
        """Outputs on the signal patch alone, of label +1 and of label -1.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shape ``*E`` each.
        """
        z = self.patches(params)
        plus, minus = (self.respond(z[side], side) @ self.a for side in ("plus", "minus"))
        return plus, minus

    def noise_outputs(self, params: Params, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points"]:
        """Outputs on noise patches alone, from their pre-activations in the form of `fresh`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        z
            Pre-activations, shape ``(*E, points, K)``.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        return self.respond(z, "fresh") @ self.a

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes.

        Returns
        -------
        int
            K = k, one a filter.
        """
        return self.gram.w_w.shape[-1]

    def signal_learned(self, params: Params) -> Float[Tensor, "*E 2 m"]:
        r""":math:`\gamma_{j,r} = j\|\mu\|^2 c_{j,r}`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, 2, m)``, the filters of +1 first.
        """
        sign = signs(params["mu"].shape[-1], params["mu"])
        return (sign * self.gram.mu_mu[..., None] * params["mu"]).unflatten(-1, (2, -1))

    def noise_memorised(self, params: Params) -> Float[Tensor, "*E 2 m n"]:
        r""":math:`\rho_{j,r,i} = \|\xi_i\|^2 c_{j,r,i}`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, 2, m, n)``, the filters of +1 first.
        """
        square = self.gram.xi_xi.diagonal(dim1=-2, dim2=-1)
        return (params["xi"] * square[..., None, :]).unflatten(-2, (2, -1))

    def linear(self) -> "GramTraining":
        """The network with its activation taken away: a linear classifier of the sum of the patches.

        Returns
        -------
        GramTraining
            The rival, with parameters of the same form.
        """
        return replace(self, activation=identity)

    def lazy(self) -> "GramTraining":
        """The network's first-order expansion about its start.

        Returns
        -------
        GramTraining
            The rival, with parameters of the same form.
        """
        return convert(self, LazyGramTraining)

    def frozen(self) -> Problem:
        """Random features: the initial filters stay, the output weights train.

        Returns
        -------
        Problem
            The rival, with the output weights as its parameters.
        """
        return FrozenGramTraining(self)


class LazyGramTraining(GramTraining):
    r"""Filters respond as :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`, with :math:`z_0` what they saw at the start."""

    @cached_property
    def reference(self) -> dict[str, Tensor]:
        """Pre-activations of all training patches before training.

        Returns
        -------
        dict[str, Tensor]
            Pre-activations, in the form of `patches`.
        """
        return self.patches(self.start())

    def respond(self, z: Tensor, patch: str) -> Tensor:
        """First-order response.

        Parameters
        ----------
        z
            Pre-activations in the form of `patches`, or of `fresh` for fresh patches, with K = 2 k.
        patch
            Kind of patch: ``"plus"``, ``"minus"``, ``"noise"`` or ``"fresh"``.

        Returns
        -------
        Tensor
            Responses, of the shape of `z`, or ``(*E, points, k)`` for fresh patches.
        """
        z, z_0 = z.chunk(2, -1) if patch == "fresh" else (z, self.reference[patch])
        return tangent(self.activation, z, z_0)

    def expansion_point(self, z: Tensor, patch: str) -> Tensor:
        """Where the slope was before training, the same at every step.

        Parameters
        ----------
        z
            Pre-activations now, on which the slope does not depend.
        patch
            Kind of patch: ``"plus"``, ``"minus"`` or ``"noise"``.

        Returns
        -------
        Tensor
            Pre-activations, in the form of `patches`.
        """
        return self.reference[patch]

    def filter_products(self, params: Params) -> tuple[Float[Tensor, "*E K K"], Float[Tensor, "*E K"], Tensor | None]:
        """Trained and initial filters side by side, K = 2 k: fresh noise is jointly Gaussian to them.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        tuple[Tensor, Tensor, Tensor or None]
            Shapes ``(*E, K, K)``, ``(*E, K)`` and ``(*E, K)``, with None for no biases.
        """
        w_w, w_mu, b = super().filter_products(params)
        both = joint_gram(w_w, self._cross(params), self.gram.w_w.double())
        on_mu = torch.cat([w_mu, self.gram.w_mu.double().expand_as(w_mu)], -1)
        return both, on_mu, b if b is None else torch.cat([b, self.start()["b"]], -1)

    def training_noise(self, params: Params) -> Float[Tensor, "*E n K"]:
        """Training noise as the trained and as the initial filters see it, side by side.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, n, K)``, K = 2 k.
        """
        now = super().training_noise(params)
        return torch.cat([now, self.reference["noise"].mT.expand_as(now)], -1)

    def _cross(self, params: Params) -> Tensor:
        """Inner products of trained with initial filters."""
        g = self.gram.to(torch.float64)
        start = params["start"].double()[..., None, None] * g.w_w if "start" in params else g.w_w
        moved = params["mu"].double()[..., None] * g.w_mu[..., None, :]
        return start + moved + torch.einsum("...kn,...ln->...kl", params["xi"].double(), g.w_xi)

    @property
    def test_directions(self) -> int:
        """Trained and initial filters.

        Returns
        -------
        int
            K = 2 k.
        """
        return 2 * super().test_directions
