r"""Contrastive pre-training in coefficients, at a cost that does not depend on d.

Every gradient of InfoNCE on features of patches :math:`[y_i\mu, \xi_i]` lies in the span of :math:`\mu` and the noise
patches, as in `flbook.dynamics.gram`: similarities need inner products only. So does an augmentation, whose patches are
further noise vectors. Two encoders of two modalities are two sets of coefficients, each on the span of its own
modality.

Source: Huang et al. (2024), section 5 (signal-noise decomposition); the algorithm is this book's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook.data.signal_noise import Sample, alternating_labels, noise_preactivations
from flbook.domains import Count, Natural, Positive, checked_arguments
from flbook.dynamics.inner_products import Gram
from flbook.dynamics.wishart import draw_gram
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import Pairs, TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import InfoNCE, check_negatives, other_labels
from flbook.models.activations import relu
from flbook.training.losses import check_labels
from flbook.training.problem import Params, PopulationProblem

ONE_MODALITY = InfoNCE(stop_gradient=True, pool="anchors")
TWO_MODALITIES = InfoNCE(stop_gradient=True, both=True)


@dataclass(frozen=True)
class ContrastiveTraining(PopulationProblem):
    """The pre-training of one encoder on two views of a modality, or of two encoders on two modalities.

    Parameters are ``{"mu": (*E, V, m), "xi": (*E, V, m, K)}`` for V encoders: the weights of encoder v are
    ``w(0) + params["mu"] mu + params["xi"] xi`` exactly. With two modalities, xi are the n noise patches of either.
    With one there are 2 n, those of the augmented view last, and K = n if the gradient stops at that view, else 2 n.

    Raises
    ------
    ValueError
        If labels are not -1 or +1, or do not fit the noise patches in number.

    Source: Huang et al. (2024), equations 4, 6 and 9.

    Examples
    --------
    >>> from flbook import GradientDescent, fit
    >>> from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
    >>> from flbook.lectures.foundation_models.shared.info_nce import other_labels
    >>> pairs = TwoModalities(n=20, d=200).draw(seed=0)
    >>> encoders = PatchEncoder(d=200, m=5), PatchEncoder(d=200, m=5, role="second weights")
    >>> problem = ContrastiveTraining.of(pairs, encoders, TWO_MODALITIES, other_labels(pairs.y))
    >>> params = fit(problem, GradientDescent(0.01), 10).params
    >>> params["mu"].shape, params["xi"].shape
    (torch.Size([2, 5]), torch.Size([2, 5, 20]))
    """

    coefficients = True

    gram: Gram  # with the axes (*E, V)
    y: Float[Tensor, "*#E n"]
    loss: InfoNCE
    negatives: Bool[Tensor, "*#E n n"]
    scale: float = 1.0  # weight of a neuron in a similarity: 1 for the sum over neurons, 1/m for the mean
    activation: Callable[[Tensor], Tensor] = relu
    law: Callable[..., Tensor] = partial(noise_preactivations, sigma_xi=1.0, orthogonal=False)  # of fresh noise

    def __post_init__(self):
        check_labels(self.y)
        check_negatives(self.negatives, self.y.shape[-1])
        expected = self.y.shape[-1] * (3 - self.encoders)
        if self.gram.xi_xi.shape[-1] != expected:
            raise ValueError(f"labels of {self.y.shape[-1]} pairs and {self.encoders} encoder(s) need {expected} noise "
                             f"patches a modality; got {self.gram.xi_xi.shape[-1]}")

    @classmethod
    def of(cls, pairs: Pairs, encoders: tuple[PatchEncoder, ...], loss: InfoNCE, negatives: Tensor,
           **options: Any) -> "ContrastiveTraining":
        """From given data: one encoder sees a modality and its augmentation, two encoders see a modality each."""
        xi, augmented, second = (view[..., 1, :] for view in (pairs.x, pairs.augmented, pairs.second))
        seen = [torch.cat([xi, augmented], -2)] if len(encoders) == 1 else [xi, second]
        grams = [Gram.of(Sample(noise, pairs.y, pairs.y, mu, noise), encoder.w.detach())
                 for noise, mu, encoder in zip(seen, pairs.mu, encoders, strict=False)]
        return cls(_side_by_side(grams), pairs.y.to(grams[0].w_w), loss, negatives, **options)

    @property
    def encoders(self) -> int:
        """How many there are: 1 or 2."""
        return self.gram.w_mu.shape[-2]

    def to(self, *where: Any) -> "ContrastiveTraining":
        """On another device or in another dtype."""
        negatives = self.negatives.to(*(one for one in where if not isinstance(one, torch.dtype)))
        return replace(self, gram=self.gram.to(*where), y=self.y.to(*where), negatives=negatives)

    @property
    def observed(self) -> Float[Tensor, "*#E n"]:
        """The labels that choose the negatives."""
        return self.y

    @property
    def moving(self) -> int:
        """K: how many noise patches an encoder can move along."""
        n = self.y.shape[-1]
        return n if self.encoders == 2 or self.loss.stop_gradient else 2 * n

    def start(self) -> Params:
        """Coefficients before training: zero."""
        g = self.gram
        members = torch.broadcast_shapes(g.mu_mu.shape[:-1], g.w_mu.shape[:-2], g.xi_xi.shape[:-3], self.y.shape[:-1])
        shape = (*members, *g.w_mu.shape[-2:])
        return {"mu": g.w_mu.new_zeros(shape), "xi": g.w_mu.new_zeros(*shape, self.moving)}

    def preactivations(self, params: Params) -> tuple[Float[Tensor, "*E V m"], Float[Tensor, "*E V m N"]]:
        r"""What each neuron sees: :math:`\langle w_r, \mu\rangle` and all :math:`\langle w_r, \xi_i\rangle`."""
        g, c_mu, c_xi, moved = self.gram, params["mu"], params["xi"], slice(self.moving)
        on_mu = g.w_mu + c_mu * g.mu_mu[..., None] + (c_xi @ g.mu_xi[..., moved, None])[..., 0]
        on_xi = g.w_xi + c_mu[..., None] * g.mu_xi[..., None, :] + c_xi @ g.xi_xi[..., moved, :]
        return on_mu, on_xi

    def views(self, params: Params) -> list[tuple[Float[Tensor, "*E n m"], Float[Tensor, "*E n m"]]]:
        """Pre-activations of signal and noise patch of every sample, in the two views that are compared."""
        on_mu, on_xi = self.preactivations(params)
        signal, noise = self.y[..., None, :, None] * on_mu[..., None, :], on_xi.mT  # (*E, V, n or N, m)
        if self.encoders == 2:
            return [(signal[..., v, :, :], noise[..., v, :, :]) for v in (0, 1)]
        n, signal, noise = self.y.shape[-1], signal[..., 0, :, :], noise[..., 0, :, :]
        return [(signal, noise[..., :n, :]), (signal, noise[..., n:, :])]

    def features(self, params: Params) -> list[Float[Tensor, "*E n k"]]:
        """Features of the two views, those of the two patches one after the other: k = 2 m."""
        return [self._flat(view) for view in self.views(params)]

    def _flat(self, view: tuple[Tensor, Tensor]) -> Tensor:
        return self.scale**0.5 * self.activation(torch.cat(view, -1))

    def train_loss(self, params: Params, **given: Tensor | None) -> Float[Tensor, "*E"]:
        """The loss of each member; it takes no other inputs or labels."""
        return self.loss(*self.features(params), self.negatives)

    def slope(self, params: Params) -> Params:
        r"""The gradient's own coefficients on :math:`\mu` and the :math:`\xi_i`; not the derivative in c."""
        views = self.views(params)
        grads = self.loss.gradient(*map(self._flat, views), self.negatives)
        m, on_mu, on_xi = self.gram.w_mu.shape[-1], [], []
        for view, grad in zip(views, grads, strict=True):
            grad = self.scale**0.5 * grad * self.activation.slope(torch.cat(view, -1))
            on_mu.append((self.y[..., None, :] @ grad[..., :m])[..., 0, :])
            on_xi.append(grad[..., m:].mT)
        if self.encoders == 2:
            return {"mu": torch.stack(on_mu, -2), "xi": torch.stack(on_xi, -3)}
        both = torch.cat(on_xi, -1)[..., : self.moving]
        return {"mu": (on_mu[0] + on_mu[1])[..., None, :], "xi": both[..., None, :, :]}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length of the weights that a direction in coefficients stands for."""
        g, c_mu, c_xi, moved = self.gram, direction["mu"], direction["xi"], slice(self.moving)
        square = g.mu_mu[..., None] * c_mu**2 + 2 * c_mu * (c_xi @ g.mu_xi[..., moved, None])[..., 0]
        square = square + ((c_xi @ g.xi_xi[..., moved, moved]) * c_xi).sum(-1)
        return square.sum((-2, -1)).sqrt()

    def weight_gram(self, params: Params) -> Float[Tensor, "*E V m m"]:
        r"""Inner products :math:`\langle w_r(t), w_s(t)\rangle` of each encoder's trained neurons, in float64."""
        g, c_mu, c_xi = self.gram.to(torch.float64), params["mu"].double(), params["xi"].double()
        moved = slice(self.moving)
        on_mu = g.w_mu + g.mu_mu[..., None] * c_mu / 2 + (c_xi @ g.mu_xi[..., moved, None])[..., 0]
        on_xi = g.w_xi[..., moved] + c_xi @ g.xi_xi[..., moved, moved] / 2
        half = c_mu[..., :, None] * on_mu[..., None, :] + c_xi @ on_xi.mT
        return g.w_w + half + half.mT

    def embeddings(self, params: Params, stretch: float = 1.0) -> Float[Tensor, "*E n m"]:
        """What a classifier downstream is given of the first modality: features summed over the patches.

        stretch: as if the signal were so many times as long.
        """
        signal, noise = self.views(params)[0]
        return self.activation(stretch * signal) + self.activation(noise)

    def largest(self, params: Params) -> tuple[Float[Tensor, "*E"], Float[Tensor, "*E"]]:
        """The first encoder's largest response to its signal of length 1, of either sign, and to a noise patch."""
        on_mu, on_xi = (z[..., 0, :] if z.ndim == params["mu"].ndim else z[..., 0, :, : self.y.shape[-1]]
                        for z in self.preactivations(params))
        return on_mu.abs().amax(-1) / self.gram.mu_mu[..., 0].sqrt(), on_xi.amax((-2, -1))

    def fresh_embeddings(
        self, params: Params, strength: Float[Tensor, "*#E"], standard: Float[Tensor, "points m"]
    ) -> tuple[Float[Tensor, "*E points m"], Float[Tensor, "*E points m"]]:
        r"""The same of fresh samples :math:`[y\nu, \zeta]` of label +1 and of label -1, the noise exactly distributed.

        strength: how many times as long as :math:`\mu` the signal :math:`\nu` is.
        """
        first = self.gram.to(torch.float64)
        on_mu = replace(self, gram=first).preactivations({k: p.double() for k, p in params.items()})[0][..., 0, :]
        z = self.law(self.weight_gram(params)[..., 0, :, :], on_mu, first.mu_mu[..., 0], standard)
        noise = self.activation(z)
        signal = (strength[..., None] * on_mu)[..., None, :]
        return tuple((self.activation(y * signal) + noise).to(params["mu"]) for y in (1, -1))


def _side_by_side(grams: list[Gram]) -> Gram:
    """Gram matrices of one or two modalities along a new last ensemble axis."""
    return Gram(*(torch.stack(parts, -1 - own)
                  for parts, own in zip(zip(*grams, strict=True), (0, 1, 2, 1, 2, 2, 1), strict=True)))


@checked_arguments
def drawn_pairs(
    data: TwoModalities, m: Count, sigma_0: Positive, loss: InfoNCE, encoders: Literal[1, 2], seed: tuple[Natural, ...]
) -> ContrastiveTraining:
    """Pre-training from drawn Gram matrices, without a d-dimensional vector: over the seeds, in float64.

    Parameters
    ----------
    data
        The pairs' law; opposite labels are the negatives.
    m, sigma_0
        Neurons of an encoder, and the standard deviation of an initial weight.
    loss, encoders
        As in `ContrastiveTraining`.
    seed
        Of all draws.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or d cannot hold so many independent vectors.

    Examples
    --------
    >>> drawn_pairs(TwoModalities(n=6, d=10**6), 5, 0.001, TWO_MODALITIES, 2, (0, 1)).start()["xi"].shape
    torch.Size([2, 2, 5, 6])
    """
    law = {"sigma_0": sigma_0, "sigma_xi": data.sigma_xi, "orthogonal": data.orthogonal}
    sizes = torch.tensor([data.mu_norm, data.second_norm], dtype=torch.float64)
    if encoders == 2:
        grams = [draw_gram(data.n, m, data.d, seed=tuple(2 * one + v for one in seed), **law) for v in (0, 1)]
    else:
        unit = draw_gram(2 * data.n, m, data.d, seed=tuple(2 * one for one in seed), **law)
        grams = [_augmented(unit, data.n, data.sigma_eps / data.sigma_xi)]
    grams = [Gram(*(part[:, 0] for part in gram.with_signals(size[None])))
             for gram, size in zip(grams, sizes, strict=False)]
    y = alternating_labels(data.n)
    return ContrastiveTraining(_side_by_side(grams), y, loss, other_labels(y), law=data.test_law)


def _augmented(gram: Gram, n: int, share: float) -> Gram:
    """From 2n independent noise patches: n, and the same with a share of the other n added."""
    eye = torch.eye(n, dtype=gram.xi_xi.dtype)
    mix = torch.cat([torch.cat([eye, 0 * eye], 1), torch.cat([eye, share * eye], 1)])
    return gram._replace(mu_xi=gram.mu_xi @ mix.T, xi_xi=mix @ gram.xi_xi @ mix.T, w_xi=gram.w_xi @ mix.T)
