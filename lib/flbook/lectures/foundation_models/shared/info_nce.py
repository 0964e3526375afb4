r"""InfoNCE, the loss of contrastive learning: pick an anchor's partner among chosen negatives.

.. math:: L = -\frac1n\sum_i\log\frac{e^{s_i/\tau}}{e^{s_i/\tau} + \sum_{j\in N_i} e^{s_{ij}/\tau}}

with the similarity :math:`s_i` of anchor i and its partner, and :math:`s_{ij}` of anchor i and negative j. A similarity
is an inner product of features. So a patch-wise one, a sum over patches, is the inner product of all patches' features
written one after the other.

Source: van den Oord et al. (2018), equation 4, for the loss; Huang et al. (2024), equations 4, 6 and 9, for the rest.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from flbook.domains import Checked, Count, Positive, checked_arguments


@checked_arguments
def all_others(n: Count) -> Bool[Tensor, "n n"]:
    """Every other sample is a negative, as in SimCLR and CLIP.

    Examples
    --------
    >>> all_others(2).tolist()
    [[False, True], [True, False]]
    """
    return ~torch.eye(n, dtype=torch.bool)


def other_labels(y: Float[Tensor, "*E n"]) -> Bool[Tensor, "*E n n"]:
    """The samples of another label are the negatives; this takes labels, which `all_others` does not.

    Examples
    --------
    >>> other_labels(torch.tensor([1.0, -1.0, 1.0])).sum(-1).tolist()
    [1, 2, 1]
    """
    return y[..., :, None] != y[..., None, :]


def similarities(anchors: Float[Tensor, "*#E n k"], others: Float[Tensor, "*#E p k"]) -> Float[Tensor, "*E n p"]:
    """Inner products of features."""
    return anchors @ others.mT


def normalise(features: Float[Tensor, "*E n k"]) -> Float[Tensor, "*E n k"]:
    """Features of length 1; zero stays zero."""
    return features / _length(features)


def _length(features: Tensor) -> Tensor:
    return features.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(features.dtype).tiny)


@dataclass(frozen=True)
class InfoNCE(Checked):
    """The loss of the module, of two sets of features of which each row of one belongs to the same row of the other.

    Parameters
    ----------
    temperature
        What divides the similarities; one number, or a tensor of one a member.
    normalised
        Divide each sample's features by their length first, as SimCLR and CLIP do?
    stop_gradient
        Does the gradient treat the second argument of each similarity as a constant? The loss does not change.
    both
        Add the same loss with anchors and partners exchanged? A sum, as in Huang et al.; CLIP takes half of it.
    pool
        Where negatives are taken from: the partners (as between two modalities) or the anchors themselves (as with
        two views of one sample).

    Raises
    ------
    ValueError
        If the temperature is not positive; when called, if the features do not fit or an anchor has no negative.

    Examples
    --------
    >>> aligned = torch.eye(3)
    >>> loss = InfoNCE(temperature=0.5)(aligned, aligned, all_others(3))
    >>> torch.allclose(loss, torch.log1p(2 * torch.tensor(-1 / 0.5).exp()))
    True
    """

    temperature: Positive | Float[Tensor, "*#E"] = 1.0
    normalised: bool = False
    stop_gradient: bool = False
    both: bool = False
    pool: Literal["partners", "anchors"] = "partners"

    def __call__(
        self, anchors: Float[Tensor, "... k"], partners: Float[Tensor, "... _"], negatives: Tensor
    ) -> Float[Tensor, "*E"]:
        """The loss of each member; `negatives` says for each anchor (row) which samples are its negatives."""
        check_pairs(anchors, partners, negatives)
        if self.normalised:
            anchors, partners = normalise(anchors), normalise(partners)
        loss = self._one_way(anchors, partners, negatives)
        return loss + self._one_way(partners, anchors, negatives) if self.both else loss

    def weights(
        self, anchors: Float[Tensor, "... k"], partners: Float[Tensor, "... _"], negatives: Tensor
    ) -> tuple[Float[Tensor, "*E n"], Float[Tensor, "*E n n"]]:
        """The softmax weights of each anchor's partner and of its negatives, in one direction; together they are 1."""
        positive, other = self._logits(anchors, partners, negatives)
        highest = torch.maximum(positive, other.amax(-1)).detach()
        positive, other = (positive - highest).exp(), (other - highest[..., None]).exp()
        total = positive + other.sum(-1)
        return positive / total, other / total[..., None]

    def gradient(
        self, anchors: Float[Tensor, "... k"], partners: Float[Tensor, "... _"], negatives: Tensor
    ) -> tuple[Float[Tensor, "*E n k"], Float[Tensor, "*E n k"]]:
        """Its gradient in the features of the anchors and of the partners, by hand; autograd gives the same."""
        check_pairs(anchors, partners, negatives)
        a, b = (normalise(anchors), normalise(partners)) if self.normalised else (anchors, partners)
        in_a, in_b = self._slopes(a, b, negatives)
        if self.both:
            of_b, of_a = self._slopes(b, a, negatives)
            in_a, in_b = in_a + of_a, in_b + of_b
        if self.normalised:
            in_a, in_b = _through_length(in_a, a, anchors), _through_length(in_b, b, partners)
        return in_a, in_b

    def _one_way(self, anchors: Tensor, partners: Tensor, negatives: Tensor) -> Tensor:
        positive, other = self._logits(anchors, partners, negatives)
        return (torch.logaddexp(positive, other.logsumexp(-1)) - positive).mean(-1)

    def _logits(self, anchors: Tensor, partners: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """What stands in the exponents: for the partners, and for the negatives (minus infinity where none is)."""
        pool = partners if self.pool == "partners" else anchors
        if self.stop_gradient:
            partners, pool = partners.detach(), pool.detach()
        tau = self.temperature[..., None] if isinstance(self.temperature, Tensor) else self.temperature
        positive = (anchors * partners).sum(-1) / tau
        other = similarities(anchors, pool) / (tau[..., None] if isinstance(tau, Tensor) else tau)
        return positive, other.masked_fill(~negatives, -torch.inf)

    def _slopes(self, anchors: Tensor, partners: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of one direction in anchors and partners as they enter the inner products."""
        tau = self.temperature[..., None, None] if isinstance(self.temperature, Tensor) else self.temperature
        right, wrong = self.weights(anchors, partners, negatives)
        missing, wrong = (1 - right)[..., None] / (tau * anchors.shape[-2]), wrong / (tau * anchors.shape[-2])
        pool = partners if self.pool == "partners" else anchors
        in_anchors, in_partners = wrong @ pool - missing * partners, torch.zeros_like(partners)
        if not self.stop_gradient:
            in_partners, in_pool = -missing * anchors, wrong.mT @ anchors
            if self.pool == "anchors":
                in_anchors = in_anchors + in_pool
            else:
                in_partners = in_partners + in_pool
        return in_anchors, in_partners


def check_pairs(anchors: Tensor, partners: Tensor, negatives: Tensor) -> None:
    """Refuse features that do not fit each other, or an anchor without a negative."""
    if anchors.shape[-2] != partners.shape[-2]:
        raise ValueError(f"two modalities must have equally many samples; got {anchors.shape[-2]} and "
                         f"{partners.shape[-2]}")
    if anchors.shape[-1] != partners.shape[-1]:
        raise ValueError(f"two modalities must have equally many features; got {anchors.shape[-1]} and "
                         f"{partners.shape[-1]}")
    check_negatives(negatives, anchors.shape[-2])


def check_negatives(negatives: Tensor, n: int) -> None:
    """Refuse what is no choice of negatives among n samples, or leaves an anchor without one."""
    if negatives.dtype != torch.bool or negatives.shape[-2:] != (n, n):
        raise ValueError(f"negatives must be {n} x {n} values True or False, a row for each anchor; got "
                         f"{tuple(negatives.shape)} of {negatives.dtype}")
    if negatives.device.type == "cpu" and not bool(negatives.any(-1).all()):  # elsewhere a look would stop the device
        lonely = int((~negatives.any(-1)).nonzero()[0, -1])
        raise ValueError(f"every anchor must have a negative; anchor {lonely} has none")


def _through_length(gradient: Tensor, unit: Tensor, features: Tensor) -> Tensor:
    """The gradient in features, given the one in their unit vectors."""
    return (gradient - (gradient * unit).sum(-1, keepdim=True) * unit) / _length(features)
