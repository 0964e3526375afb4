r"""Training a denoiser in coefficients, at a cost that does not depend on the dimension.

The expected loss of `noise_prediction`, beside this file, asks for :math:`WX^\top` and :math:`WW^\top` only, so each
gradient is :math:`\partial_z X + (\partial_G + \partial_G^\top)W`, and weights stay in

.. math:: W(t) = A(t)\,W(0) + D(t)\,X

with the patches as the rows of X. The m x m matrix A and the m x N matrix D are the state: not the span of the data
alone, since each neuron carries a part of all the initial ones.

Source: the algorithm is this book's.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Positive, Seeds, checked_arguments
from flbook.dynamics.patches import Basis
from flbook.dynamics.wishart import bartlett
from flbook.lectures.foundation_models.diffusion.noise_prediction import expected_loss
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser
from flbook.training.problem import Params, PopulationProblem


@dataclass(frozen=True)
class DenoisingTraining(PopulationProblem, Checked):
    r"""A tied denoiser on given patches with fresh noise at one level, the noise integrated out, in coefficients.

    Parameters are ``{"c": (*E, m, m + N)}``, the matrices A and D side by side; any rule that is linear in gradients
    runs on them.

    Parameters
    ----------
    basis
        Inner products of the N patches and of the initial neurons.
    share
        Weight of each patch in the loss, shape ``(N,)``.
    alpha, beta
        Of the data and of the added noise, positive; see `noise_prediction.noising`.
    d
        Dimension of a patch; it enters as a constant of the loss.
    power
        Of the activation: 2, or 1 for the linear rival.

    Raises
    ------
    ValueError
        If a number is out of its domain, or weights and patches differ in number.

    Examples
    --------
    >>> from flbook import GradientDescent, fit
    >>> from flbook.lectures.foundation_models.diffusion.noise_prediction import noising
    >>> patches = torch.eye(30, dtype=torch.float64)[:6]
    >>> model = TiedDenoiser(30, m=4, sigma_0=0.1, dtype=torch.float64)
    >>> problem = DenoisingTraining.of(patches, torch.full((6,), 1 / 3).double(), model, *noising(0.2))
    >>> params = fit(problem, GradientDescent(0.1), 50).params
    >>> bool(problem.train_loss(params) < problem.train_loss(problem.start())), problem.responses(params).shape
    (True, torch.Size([4, 6]))
    """

    coefficients = True

    basis: Basis
    share: Float[Tensor, " N"]
    alpha: Positive
    beta: Positive
    d: Count
    power: Literal[1, 2] = 2

    def __post_init__(self):
        super().__post_init__()
        if self.share.shape != self.basis.b_b.shape[-1:]:
            raise ValueError(f"share must have one weight for each of the {self.basis.b_b.shape[-1]} patches; got "
                             f"shape {tuple(self.share.shape)}")

    @classmethod
    def of(cls, patches: Float[Tensor, "*#E N d"], share: Float[Tensor, " N"], model: TiedDenoiser, alpha: float,
           beta: float) -> "DenoisingTraining":
        """From the patches and the network themselves."""
        basis = Basis.of(patches, model.w.detach())
        return cls(basis, share.to(basis.w_w), alpha, beta, patches.shape[-1], model.power)

    def to(self, *where) -> "DenoisingTraining":
        """On another device or in another dtype."""
        return replace(self, basis=self.basis.to(*where), share=self.share.to(*where))

    @property
    def products(self) -> Float[Tensor, "*E K K"]:
        """Inner products of the initial neurons and the patches, K = m + N of them."""
        b_b, w_b, w_w = self.basis
        lead = torch.broadcast_shapes(b_b.shape[:-2], w_b.shape[:-2], w_w.shape[:-2])
        b_b, w_b, w_w = (part.expand(*lead, *part.shape[-2:]) for part in (b_b, w_b, w_w))
        return torch.cat([torch.cat([w_w, w_b], -1), torch.cat([w_b.mT, b_b], -1)], -2)

    def start(self) -> Params:
        """A is the identity, D is zero."""
        m, total = self.basis.w_b.shape[-2:]
        lead = torch.broadcast_shapes(*(part.shape[:-2] for part in self.basis))
        return {"c": torch.eye(m, m + total, dtype=self.share.dtype, device=self.share.device).repeat(*lead, 1, 1)}

    def _seen(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Responses to the patches, and inner products of the neurons."""
        b_b, w_b, w_w = self.basis
        m = c.shape[-2]
        a, patches = c[..., :m], c[..., m:]
        on_patches = a @ w_b + patches @ b_b
        return on_patches, (a @ w_w + patches @ w_b.mT) @ a.mT + on_patches @ patches.mT

    def responses(self, params: Params) -> Float[Tensor, "*E m N"]:
        r"""What the neurons see of each patch, :math:`\langle w_r, x\rangle`."""
        return self._seen(params["c"])[0]

    def neuron_gram(self, params: Params) -> Float[Tensor, "*E m m"]:
        """Inner products of the neurons."""
        return self._seen(params["c"])[1]

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Expected loss of each member, shape ``*E``."""
        return expected_loss(*self._seen(params["c"]), self.share, self.alpha, self.beta, self.d, self.power)

    def slope(self, params: Params) -> Params:
        """The gradient's own coefficients on initial neurons and patches."""
        c = params["c"]
        on_z, on_gram = slopes(*self._seen(c), self.share, self.alpha, self.beta, self.power)
        grad = (on_gram + on_gram.mT) @ c
        grad[..., c.shape[-2] :] += on_z
        return {"c": grad}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for."""
        gram = self._seen(direction["c"])[1]
        return gram.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=0).sqrt()

    def linear(self) -> "DenoisingTraining":
        """The denoiser with its activation taken away."""
        return replace(self, power=1)


def slopes(
    z: Float[Tensor, "*E m N"], gram: Float[Tensor, "*E m m"], share: Float[Tensor, " N"], alpha: float, beta: float,
    power: int = 2,
) -> tuple[Float[Tensor, "*E m N"], Float[Tensor, "*E m m"]]:
    """Derivatives of `expected_loss`, where all entries of the Gram matrix count as free."""
    m, a, own, total = z.shape[-2], alpha * z, gram.diagonal(dim1=-2, dim2=-1), share.sum()
    if power == 1:
        flat = total * (2 * beta**2 / m * gram) + (a * share) @ a.mT / m
        flat.diagonal(dim1=-2, dim2=-1).sub_(2 * beta / math.sqrt(m) * total)
        return 2 * alpha / m * (gram @ (a * share)), flat
    e, squares, c = torch.addcmul(beta**2 * own[..., None], a, a), gram * gram, 1 / math.sqrt(m)
    weighted, pulled = a * share, gram @ e
    on_z = alpha * c * (4 * c * (weighted * pulled + 2 * beta**2 * (squares @ weighted))
                        - 4 * beta * own[..., None] * share)
    on_gram = (e * share) @ e.mT + gram * (8 * beta**2 * (weighted @ a.mT) + 6 * beta**4 * total * gram)
    on_gram = on_gram / m
    on_gram.diagonal(dim1=-2, dim2=-1).add_(2 * c * (beta * (c * beta * pulled - 2 * a) * share).sum(-1))
    return on_z, on_gram


@checked_arguments
def draw_basis(
    n: Count, m: Count, d: Count, *, mu_norm: Positive, sigma_0: NonNegative, sigma_xi: Positive = 1.0, seed: Seeds = 0
) -> Basis:
    r"""Inner products of two orthogonal signals, n noise patches orthogonal to both and m Gaussian neurons, in float64.

    No d-dimensional vector is drawn: the rest of the patches and neurons is a Wishart matrix in d - 2 dimensions.

    Parameters
    ----------
    n, m, d
        Samples, neurons, dimension of a patch.
    mu_norm, sigma_0, sigma_xi
        Length of both signals, standard deviations of a neuron's and of the noise's coordinates.
    seed
        A tuple of seeds gives one leading ensemble axis.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or d cannot hold n + m independent vectors beside the signals.

    Examples
    --------
    >>> draw_basis(4, 6, 10**7, mu_norm=5.0, sigma_0=0.01, seed=(0, 1)).w_b.shape
    torch.Size([2, 6, 6])
    """
    check_depth(n, m, d)
    factor = rng.over_seeds(lambda one: bartlett(n + m, np.array([d - 2]), one)[0], seed)
    factor = torch.cat([torch.full((n,), sigma_xi), torch.full((m,), sigma_0)]).double()[:, None] * factor
    along = sigma_0 * rng.normal((m, 2), seed, "along the signals")
    rest = factor @ factor.mT
    signals = mu_norm**2 * torch.eye(2, dtype=torch.float64).expand(*rest.shape[:-2], 2, 2)
    none = rest.new_zeros(*rest.shape[:-2], 2, n)
    b_b = torch.cat([torch.cat([signals, none], -1), torch.cat([none.mT, rest[..., :n, :n]], -1)], -2)
    return Basis(b_b, torch.cat([mu_norm * along, rest[..., n:, :n]], -1), rest[..., n:, n:] + along @ along.mT)


def check_depth(n: int, m: int, d: int) -> None:
    """Refuse a dimension too small for n noise patches and m neurons to be independent beside two signals."""
    if d < n + m + 2:
        raise ValueError(f"d must be at least n + m + 2 = {n + m + 2}, so that {n} noise patches and {m} neurons are "
                         f"independent beside two signals; got d = {d}")
