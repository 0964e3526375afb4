r"""Any patches in coefficients: samples whose patches are combinations of a few vectors, at a cost without dimension.

`flbook.dynamics.gram` trains on one signal and one noise patch a sample. Here every patch of every sample is a
combination of the same N vectors, the basis: features, and the noise patches themselves,

.. math:: x_i^{(p)} = \sum_s a_{ips}\,b_s, \qquad w_k(t) = w_k(0) + \sum_s c_{ks}(t)\,b_s,

because each gradient is a combination of patches. So there may be several features, a strength for each sample, two
features in one patch, and patches that are cut from two samples or mixed out of them.

Source: the algorithm is this book's; for one signal it is that of Cao et al. (2022), Definition 5.1.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.data.signal_noise import covariance_factor
from flbook.domains import Checked, Natural, NonNegative
from flbook.dynamics.fresh import outputs_on_noise
from flbook.dynamics.inner_products import joint_gram
from flbook.models.activations import identity, relu, tangent
from flbook.models.cnn import TwoLayerCNN
from flbook.shapes import signs
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import EmpiricalProblem, Params, convert


class Basis(NamedTuple):
    """Inner products of N vectors, features first, and of the initial filters with them and with each other."""

    b_b: Float[Tensor, "*#E N N"]
    w_b: Float[Tensor, "*#E k N"]  # <w_k(0), b_s>
    w_w: Float[Tensor, "*#E k k"]

    @classmethod
    def of(cls, vectors: Float[Tensor, "*#E N d"], w: Float[Tensor, "*E k d"]) -> "Basis":
        """From the vectors and filters themselves.

        Parameters
        ----------
        vectors
            The basis, features first, shape ``(*#E, N, d)``.
        w
            Initial filters, shape ``(*E, k, d)``.

        Returns
        -------
        Basis
            On the device and in the dtype of the filters.
        """
        if vectors.shape[-1] != w.shape[-1]:
            raise ValueError(f"vectors of shape {tuple(vectors.shape)} and filters of shape {tuple(w.shape)} differ in "
                             "d")
        vectors = vectors.to(w)
        products = ((vectors, vectors), (w, vectors), (w, w))
        return cls(*(torch.einsum("...sd,...td->...st", one, other) for one, other in products))

    def to(self, *where: Any) -> "Basis":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        Basis
            The same numbers there.
        """
        return Basis(*(part.to(*where) for part in self))


@dataclass(frozen=True)
class PatchTraining(EmpiricalProblem, Checked):
    """A two-layer CNN on samples of any patches, in coefficients on the basis that the patches are made of.

    Parameters are ``{"c": (*E, k, N)}``, and with weights that decay ``"start": (*E,)``, the multiplier of the initial
    filters. Any rule that is linear in gradients runs on them.

    Attributes
    ----------
    basis
        Inner products; the first `features` vectors are features, the others noise.
    mix
        Coefficients :math:`a_{ips}` of each patch on the basis, shape ``(*#E, n, P, N)``.
    observed
        Labels of the loss, shape ``(*#E, n)``.
    a
        Output weights of the filters, shape ``(k,)``.
    activation, loss
        As in `flbook.dynamics.gram.GramTraining`.
    features
        How many.
    sigma_xi, orthogonal
        Law of a fresh noise patch: Gaussian of this standard deviation, perhaps orthogonal to all features.

    Raises
    ------
    ValueError
        If shapes clash or a number is out of its domain.

    Examples
    --------
    >>> vectors = torch.eye(5, dtype=torch.float64)[:3]  # one feature, two noise patches
    >>> mix = torch.tensor([[[1.0, 0, 0], [0, 1, 0]], [[-0.1, 0, 0], [0, 0, 1]]]).double()  # strengths 1 and 0.1
    >>> cnn = TwoLayerCNN(d=5, m=2, dtype=torch.float64)
    >>> problem = PatchTraining.of(vectors, mix, torch.tensor([1.0, -1.0]), cnn)
    >>> problem.predict(problem.start()).shape, problem.overlaps(problem.start()).shape
    (torch.Size([2]), torch.Size([4, 1]))
    """

    coefficients = True

    basis: Basis
    mix: Float[Tensor, "*#E n P N"]
    observed: Float[Tensor, "*#E n"]
    a: Float[Tensor, " k"]
    activation: Callable[[Tensor], Tensor] = relu
    loss: Any = logistic
    features: Natural = 1
    sigma_xi: NonNegative = 1.0
    orthogonal: bool = False

    def __post_init__(self):
        super().__post_init__()
        getattr(self.loss, "check", check_labels)(self.observed)
        total, n = self.basis.b_b.shape[-1], self.mix.shape[-3]
        if self.mix.shape[-1] != total or self.observed.shape[-1] != n or self.a.shape != self.basis.w_w.shape[-1:]:
            raise ValueError(f"mix of shape {tuple(self.mix.shape)} must be that of samples, patches and the {total} "
                             f"vectors of the basis, with labels of shape {tuple(self.observed.shape)} and output "
                             f"weights of shape {tuple(self.a.shape)}")
        if self.features > total:
            raise ValueError(f"features must be among the {total} vectors of the basis; got {self.features}")

    @classmethod
    def of(cls, vectors: Float[Tensor, "*#E N d"], mix: Float[Tensor, "*#E n P N"], observed: Float[Tensor, "*#E n"],
           cnn: TwoLayerCNN, **options: Any) -> "PatchTraining":
        """The same problem as ``Training(cnn, mix @ vectors, observed)``.

        Parameters
        ----------
        vectors
            The basis, features first, shape ``(*#E, N, d)``.
        mix
            Coefficients of each patch on the basis, shape ``(*#E, n, P, N)``.
        observed
            Labels of the loss, shape ``(*#E, n)``.
        cnn
            The network before training, with k = 2 m filters; its parameters carry the ensemble axes.
        **options
            Other fields of the problem: `loss`, `features`, `sigma_xi`, `orthogonal`.

        Returns
        -------
        PatchTraining
            The problem, on the device and in the dtype of the network.
        """
        w = cnn.w.detach().flatten(-3, -2)
        return cls(Basis.of(vectors, w), mix.to(w), observed.to(w), cnn.scale * signs(w.shape[-2], w), cnn.activation,
                   **options)

    def to(self, *where: Any) -> "PatchTraining":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        PatchTraining
            The same problem there.
        """
        moved = {name: getattr(self, name).to(*where) for name in ("basis", "mix", "observed", "a")}
        return replace(self, **moved)

    def start(self) -> Params:
        """Coefficients before training: zero.

        Returns
        -------
        Params
            ``{"c": (*E, k, N)}``.
        """
        b = self.basis
        shapes = b.b_b.shape[:-2], b.w_b.shape[:-2], self.mix.shape[:-3], self.observed.shape[:-1]
        return {"c": b.w_b.new_zeros(*torch.broadcast_shapes(*shapes), *b.w_b.shape[-2:])}

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
        return params | {"start": torch.ones_like(params["c"][..., 0, 0])}

    def preactivations(self, params: Params) -> Float[Tensor, "*E k N"]:
        r"""What the filters see of each vector: :math:`\langle w_k, b_s\rangle`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, k, N)``.
        """
        kept = params["start"][..., None, None] if "start" in params else 1
        return kept * self.basis.w_b + torch.einsum("...ks,...st->...kt", params["c"], self.basis.b_b)

    def overlaps(self, params: Params) -> Float[Tensor, "*E k F"]:
        r"""What the filters see of the features: :math:`\langle w_k, v_f\rangle`.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, k, F)`` for F features.
        """
        return self.preactivations(params)[..., : self.features]

    def on_patches(self, params: Params) -> Float[Tensor, "*E k n P"]:
        """Pre-activations of all training patches.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            Shape ``(*E, k, n, P)``.
        """
        return torch.einsum("...ks,...nps->...knp", self.preactivations(params), self.mix)

    def respond(self, z: Tensor) -> Tensor:
        """What filters make of the pre-activations of training patches.

        Parameters
        ----------
        z
            Pre-activations in the form of `on_patches`, shape ``(*E, k, n, P)``.

        Returns
        -------
        Tensor
            Responses, of the shape of `z`.
        """
        return self.activation(z)

    def slope(self, z: Tensor) -> Tensor:
        """The derivative of `respond`.

        Parameters
        ----------
        z
            Pre-activations in the form of `on_patches`, shape ``(*E, k, n, P)``.

        Returns
        -------
        Tensor
            Slopes, of the shape of `z`.
        """
        return self.activation.slope(z)

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        """`upstream` times `slope`.

        Parameters
        ----------
        upstream
            A factor of a shape that broadcasts with that of `z`.
        z
            Pre-activations in the form of `on_patches`, shape ``(*E, k, n, P)``.

        Returns
        -------
        Tensor
            The product, of the shape that these broadcast to.
        """
        return self.activation.vjp(upstream, z)

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
        return self._outputs(self.on_patches(params))

    def _outputs(self, z: Tensor) -> Tensor:
        return self.a @ self.respond(z).sum(-1)

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coefficients on the basis; not the derivative in c.

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
        z = self.on_patches(params)
        derivative = self.loss.slope(self._outputs(z), observed) / observed.shape[-1]
        pulled = self.vjp(self.a[:, None, None] * derivative[..., None, :, None], z)
        grad = {"c": torch.einsum("...knp,...nps->...ks", pulled, self.mix)}
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
        b, c = self.basis, direction["c"]
        square = torch.einsum("...ks,...st,...kt->...", c, b.b_b, c)
        if "start" in direction:
            kept, cross = direction["start"], torch.einsum("...ks,...ks->...", c, b.w_b)
            square = square + kept**2 * b.w_w.diagonal(dim1=-2, dim2=-1).sum(-1) + 2 * kept * cross
        return square.clamp(min=0).sqrt()

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
        slope = self.a[:, None, None] * self.slope(self.on_patches(params))
        part = torch.einsum("...knp,...nps->...kns", slope, self.mix)
        return torch.einsum("...kns,...st,...kmt->...nm", part, self.basis.b_b, part)

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
        b, c = self.basis.to(torch.float64), params["c"].double()
        kept = params["start"].double()[..., None, None] if "start" in params else 1
        half = torch.einsum("...ks,...ls->...kl", c, kept * b.w_b + torch.einsum("...ks,...st->...kt", c, b.b_b) / 2)
        return kept**2 * b.w_w + half + half.mT

    def fresh_root(self, params: Params) -> Float[Tensor, "*E K K"]:
        r"""The root of the law of what a fresh noise patch shows the filters, in float64.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.

        Returns
        -------
        Tensor
            R of shape ``(*E, K, K)``, with :math:`R^\top R` the covariance; K is `test_directions`.
        """
        products, seen = self._meets(params)
        variance = products.diagonal(dim1=-2, dim2=-1)
        if self.orthogonal and self.features:
            among = self.basis.b_b[..., : self.features, : self.features].double()
            products = products - torch.einsum("...kf,...fl->...kl", seen, torch.linalg.solve(among, seen.mT))
        return self.sigma_xi * covariance_factor(products, variance).mT

    def fresh(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points K"]:
        """Pre-activations of fresh noise patches, exactly distributed.

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
        return (standard.double() @ self.fresh_root(params)).to(params["c"])

    def fresh_outputs(self, params: Params, standard: Float[Tensor, "points K"]) -> Float[Tensor, "*E points"]:
        """Outputs on fresh noise patches alone.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        standard
            Standard normal numbers, shape ``(points, K)``: `test_directions` for each patch.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        return outputs_on_noise(self.respond_to_fresh, self.fresh_root(params), self.a, standard)

    def _meets(self, params: Params) -> tuple[Tensor, Tensor]:
        """Inner products of the filters that fresh patches meet, and what these see of the features; in float64."""
        return self.weight_gram(params), self.overlaps(params).double()

    def respond_to_fresh(self, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points k"]:
        """What filters make of noise patches, from their pre-activations in the form of `fresh`.

        Parameters
        ----------
        z
            Pre-activations, shape ``(*E, points, K)``.

        Returns
        -------
        Tensor
            Responses of the k filters, shape ``(*E, points, k)``.
        """
        return self.activation(z)

    def noise_outputs(self, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points"]:
        """Outputs on noise patches alone, from their pre-activations in the form of `fresh`.

        Parameters
        ----------
        z
            Pre-activations, shape ``(*E, points, K)``.

        Returns
        -------
        Tensor
            Shape ``(*E, points)``.
        """
        return self.respond_to_fresh(z) @ self.a

    def feature_outputs(self, params: Params, strength: Float[Tensor, "s F"]) -> Float[Tensor, "*E s"]:
        """Outputs on single patches, each a combination of features.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        strength
            Coefficients on the features of s patches, shape ``(s, F)``.

        Returns
        -------
        Tensor
            Shape ``(*E, s)``.
        """
        return torch.einsum("k,...ks->...s", self.a, self.activation(
            torch.einsum("...kf,sf->...ks", self.overlaps(params), strength.to(self.a))))

    @property
    def test_directions(self) -> int:
        """How many Gaussian numbers one fresh noise patch takes.

        Returns
        -------
        int
            K = k, one a filter.
        """
        return self.basis.w_w.shape[-1]

    def linear(self) -> "PatchTraining":
        """The network with its activation taken away: a linear classifier of the sum of the patches.

        Returns
        -------
        PatchTraining
            The rival, with parameters of the same form.
        """
        return replace(self, activation=identity)

    def lazy(self) -> "LazyPatchTraining":
        """The network's first-order expansion about its start.

        Returns
        -------
        LazyPatchTraining
            The rival, with parameters of the same form.
        """
        return convert(self, LazyPatchTraining)


class LazyPatchTraining(PatchTraining):
    r"""Filters respond as :math:`\sigma(z_0) + \sigma'(z_0)(z - z_0)`, with :math:`z_0` what they saw at the start."""

    def respond(self, z: Tensor) -> Tensor:
        """First-order response.

        Parameters
        ----------
        z
            Pre-activations in the form of `on_patches`, shape ``(*E, k, n, P)``.

        Returns
        -------
        Tensor
            Responses, of the shape of `z`.
        """
        return tangent(self.activation, z, self.on_patches(self.start()))

    def slope(self, z: Tensor) -> Tensor:
        """Its slope, the same at every step.

        Parameters
        ----------
        z
            Pre-activations now, on which the slope does not depend.

        Returns
        -------
        Tensor
            Shape ``(*E, k, n, P)``.
        """
        return self.activation.slope(self.on_patches(self.start()))

    def vjp(self, upstream: Tensor, z: Tensor) -> Tensor:
        """`upstream` times `slope`.

        Parameters
        ----------
        upstream
            A factor of a shape that broadcasts with that of the slope.
        z
            Pre-activations now, on which the slope does not depend.

        Returns
        -------
        Tensor
            The product, of the shape that these broadcast to.
        """
        return upstream * self.slope(z)

    def _meets(self, params: Params) -> tuple[Tensor, Tensor]:
        """Trained and initial filters side by side: fresh noise is jointly Gaussian to them."""
        b, c = self.basis.to(torch.float64), params["c"].double()
        kept = params["start"].double()[..., None, None] if "start" in params else 1
        now, cross = self.weight_gram(params), kept * b.w_w + torch.einsum("...ks,...ls->...kl", c, b.w_b)
        seen = self.overlaps(params).double()
        return joint_gram(now, cross, b.w_w), torch.cat([seen, b.w_b[..., : self.features].expand_as(seen)], -2)

    def respond_to_fresh(self, z: Float[Tensor, "*E points K"]) -> Float[Tensor, "*E points k"]:
        """First-order response to noise patches.

        Parameters
        ----------
        z
            Pre-activations in the form of `fresh`, shape ``(*E, points, K)``, K = 2 k.

        Returns
        -------
        Tensor
            Responses of the k filters, shape ``(*E, points, k)``.
        """
        return tangent(self.activation, *z.chunk(2, -1))

    def feature_outputs(self, params: Params, strength: Float[Tensor, "s F"]) -> Float[Tensor, "*E s"]:
        """First-order outputs on combinations of features.

        Parameters
        ----------
        params
            Coefficients, as `start` or `decaying` makes them.
        strength
            Coefficients on the features of s patches, shape ``(s, F)``.

        Returns
        -------
        Tensor
            Shape ``(*E, s)``.
        """
        now, before = (torch.einsum("...kf,sf->...ks", self.overlaps(p), strength.to(self.a))
                       for p in (params, self.start()))
        return torch.einsum("k,...ks->...s", self.a, tangent(self.activation, now, before))

    @property
    def test_directions(self) -> int:
        """Trained and initial filters.

        Returns
        -------
        int
            K = 2 k.
        """
        return 2 * super().test_directions
