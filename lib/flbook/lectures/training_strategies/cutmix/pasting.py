r"""Training on pictures that are cut and pasted together, in coefficients: Cutout, CutMix, and what they are made of.

A network says :math:`f_{ip}` to patch p of sample i and adds these up, :math:`f_i = \sum_p f_{ip}`. A picture that is
cut, or pasted together from two, has an output that is a sum of some of these numbers. So an augmentation needs no new
patch: it is a loss of the :math:`f_{ip}`, with labels that may be mixed. A mixture of both labels with the mean t has

.. math:: \ell(F, t) = \tfrac{1+t}2\log(1 + e^{-F}) + \tfrac{1-t}2\log(1 + e^{F}), \qquad
          \frac{\partial\ell}{\partial F} = s(F) - \tfrac{1+t}2, \qquad s(F) = \frac1{1 + e^{-F}}.

Source: Cutout is DeVries and Taylor (2017), CutMix Yun et al. (2019), both on patches Oh and Yun (2024).
"""

import copy
from dataclasses import dataclass
from itertools import combinations
from math import comb, isclose
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, FlipProbability, Natural, Probability, Seeds
from flbook.dynamics.patches import LazyPatchTraining, PatchTraining
from flbook.training.problem import Params, convert, of_step

_BLOCK = 50  # steps whose draws come out of one stream


def mixed_loss(total: Tensor, label: Tensor) -> Tensor:
    """The logistic loss at a mixture of both labels with this mean."""
    return torch.nn.functional.softplus(total) - total * (1 + label) / 2


def mixed_slope(total: Tensor, label: Tensor) -> Tensor:
    """Its derivative in the output."""
    return torch.sigmoid(total) - (1 + label) / 2


def subsets(patches: int, size: int) -> Float[Tensor, "sets P"]:
    """Every set of so many patches, as a row of zeros and ones."""
    rows = torch.zeros(comb(patches, size), patches, dtype=torch.float64)
    for row, chosen in zip(rows, combinations(range(patches), size), strict=True):
        row[list(chosen)] = 1.0
    return rows


class Paste(NamedTuple):
    """What is drawn at a step: for every sample, R times, a partner, and which patches stay its own."""

    partner: Int[Tensor, "*E Rn"]
    own: Bool[Tensor, "*E Rn P"]


@dataclass(frozen=True)
class Cutout(Checked):
    """Cut so many patches from each sample: all sets of them, in the mean. With 0 cuts it is the plain training loss.

    Parameters
    ----------
    size
        Patches that are cut, fewer than there are.
    flip_prob
        p of label smoothing.
    """

    random: ClassVar[bool] = False
    size: Natural = 1
    flip_prob: FlipProbability = 0.0

    def check(self, patches: int) -> None:
        """Refuse to cut everything."""
        if self.size >= patches:
            raise ValueError(f"size must be below the {patches} patches of a sample; got {self.size}")

    def loss(self, f: Float[Tensor, "*E n P"], y: Float[Tensor, "*#E n"], paste: Any = None) -> Float[Tensor, "*E n"]:
        """Of each sample."""
        total, label, _ = self._terms(f, y)
        return mixed_loss(total, label).mean(-1)

    def slope(
        self, f: Float[Tensor, "*E n P"], y: Float[Tensor, "*#E n"], paste: Any = None
    ) -> Float[Tensor, "*E n P"]:
        """Derivatives of the sum of these losses in what is said to each patch."""
        total, label, kept = self._terms(f, y)
        return mixed_slope(total, label) @ kept / len(kept)

    def _terms(self, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        kept = subsets(f.shape[-1], f.shape[-1] - self.size).to(f)
        return f @ kept.T, (1 - 2 * self.flip_prob) * y[..., None], kept


@dataclass(frozen=True)
class CutMix(Checked):
    r"""Paste the patches of a set S of one sample into another, and mix the labels by their shares.

    Every step draws, for each sample, `partners` other samples and a set for each; None takes all pairs and sets in the
    mean, at a cost of :math:`2^P n^2`.

    Parameters
    ----------
    law
        Probabilities of :math:`|S| = 0, \dots, P`; None is uniform. Given its size, S is uniform.
    partners
        R, for each sample and step.
    inputs, labels
        Are they mixed? Without mixed inputs the first sample stays whole; without mixed labels the label is that of the
        larger share, the first sample's if they are equal.

    Raises
    ------
    ValueError
        If the law is none, or has not the length of the patches.
    """

    law: tuple[Probability, ...] | None = None
    partners: Count | None = 1
    inputs: bool = True
    labels: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.law is not None and not isclose(sum(self.law), 1):
            raise ValueError(f"law must be probabilities of sum 1; got {self.law}")

    @property
    def random(self) -> bool:
        """Is there anything to draw?"""
        return self.partners is not None

    def check(self, patches: int) -> None:
        """Refuse a law of more or fewer patches than there are."""
        if self.law is not None and len(self.law) != patches + 1:
            raise ValueError(f"law must hold {patches + 1} probabilities, of 0 to {patches} patches; got {self.law}")

    def sizes(self, patches: int) -> tuple[float, ...]:
        """The law of |S|."""
        return self.law or (1 / (patches + 1),) * (patches + 1)

    def draw(self, seed: int, block: int, n: int, patches: int) -> Paste:
        """What the steps of a block paste: leading axis steps."""
        stream, shape = rng.generator(seed, f"pasting {block}"), (_BLOCK, self.partners * n)
        partner = torch.randint(n, shape, generator=stream)
        law = torch.tensor(self.sizes(patches), dtype=torch.float64).cumsum(0)
        size = torch.searchsorted(law, torch.rand(shape, generator=stream, dtype=torch.float64)).clamp(max=patches)
        rank = torch.rand(*shape, patches, generator=stream)
        place = (rank[..., :, None] > rank[..., None, :]).sum(-1)  # a random order
        return Paste(partner, place < size[..., None])

    def loss(self, f: Float[Tensor, "*E n P"], y: Float[Tensor, "*#E n"], paste: Paste | None = None) -> Tensor:
        """Of each sample as the first of its pairs."""
        if paste is None:
            return sum(weight * mixed_loss(total, label).mean(-1) for _, weight, total, label in self._all(f, y))
        _, total, label, _ = self._drawn(f, y, paste)
        return mixed_loss(total, label).unflatten(-1, (-1, f.shape[-2])).mean(-2)

    def slope(self, f: Float[Tensor, "*E n P"], y: Float[Tensor, "*#E n"], paste: Paste | None = None) -> Tensor:
        """Derivatives of the sum of these losses in what is said to each patch."""
        if paste is None:
            return self._mean_slope(f, y)
        own, total, label, partner = self._drawn(f, y, paste)
        pull = mixed_slope(total, label)[..., None]
        first = (own * pull).unflatten(-2, (-1, f.shape[-2])).sum(-3)
        return first.scatter_add(-2, partner, (1 - own) * pull) / (paste.partner.shape[-1] // f.shape[-2])

    def _drawn(self, f: Tensor, y: Tensor, paste: Paste) -> tuple[Tensor, ...]:
        times, patches = paste.partner.shape[-1] // f.shape[-2], f.shape[-1]
        partner = paste.partner.expand(*f.shape[:-2], -1)
        own = paste.own.to(f)
        label = self.label(own.mean(-1), torch.cat([y] * times, -1), y.expand(f.shape[:-1]).gather(-1, partner))
        own = own if self.inputs else torch.ones_like(own)
        partner = partner[..., None].expand(*partner.shape, patches)
        total = (own * torch.cat([f] * times, -2) + (1 - own) * f.gather(-2, partner)).sum(-1)
        return own, total, label, partner

    def label(self, share: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """The mean label of a picture with this share of the first sample."""
        share = share if self.labels else (share >= 0.5).to(share)
        return share * first + (1 - share) * second

    def _all(self, f: Tensor, y: Tensor):
        """Every set of patches, with its weight, and the outputs and labels of all pairs."""
        patches = f.shape[-1]
        for size, weight in enumerate(self.sizes(patches)):
            for chosen in subsets(patches, size).to(f) if weight else ():
                own = chosen if self.inputs else torch.ones_like(chosen)
                label = self.label(chosen.mean(), y[..., :, None], y[..., None, :])
                yield own, weight / comb(patches, size), (f @ own)[..., :, None] + (f @ (1 - own))[..., None, :], label

    def _mean_slope(self, f: Tensor, y: Tensor) -> Tensor:
        pulled = torch.zeros_like(f)
        for own, weight, total, label in self._all(f, y):
            pull = weight * mixed_slope(total, label)
            pulled = pulled + pull.sum(-1)[..., None] * own + pull.sum(-2)[..., None] * (1 - own)
        return pulled / f.shape[-2]


@dataclass(frozen=True)
class PastedTraining(PatchTraining):
    """`PatchTraining` on pictures that a recipe cuts and pastes together.

    Step t is taken on what is drawn at t, a function of (seed, t); `train_loss` off a step is the mean over all draws.

    Parameters
    ----------
    recipe
        `Cutout` or `CutMix`.
    seed
        Of the draws; a tuple gives each member of the ensemble, which then has one axis, draws of its own.
    given
        Draws of one's own in their place: a `Paste` whose parts have a leading axis of the steps.

    Raises
    ------
    ValueError
        If the recipe or the given draws do not fit the patches.
    """

    recipe: Any = Cutout(0)
    seed: Seeds = 0
    given: Paste | None = None

    def __post_init__(self):
        super().__post_init__()
        n, patches = self.mix.shape[-3:-1]
        self.recipe.check(patches)
        if self.given is not None:
            partner, own = (tuple(part.shape) for part in self.given)
            if own != (*partner, patches) or partner[-1] % n:
                raise ValueError(f"given must hold partners of shape (steps, *E, R n), n = {n}, and own patches of "
                                 f"shape (steps, *E, R n, {patches}); got {partner} and {own}")
        object.__setattr__(self, "_blocks", {})
        object.__setattr__(self, "_paste", None)

    def at(self, step: int) -> "PastedTraining":
        """The problem of what is drawn at this step."""
        if not self.recipe.random:
            return self
        if self.given is not None:
            now, device = copy.copy(self), self.observed.device
            drawn = (of_step("given", part, step).to(device) for part in self.given)
            object.__setattr__(now, "_paste", Paste(*drawn))
            return now
        block, within = divmod(step, _BLOCK)
        if block not in self._blocks:  # one block is kept
            n, patches = self.mix.shape[-3:-1]
            one = [self.recipe.draw(seed, block, n, patches) for seed in self._seeds]
            self._blocks.clear()
            self._blocks[block] = [torch.stack(part).to(self.observed.device) for part in zip(*one, strict=True)]
        now = copy.copy(self)  # not made anew: labels have been looked at
        drawn = (part[:, within] if isinstance(self.seed, tuple) else part[0, within] for part in self._blocks[block])
        object.__setattr__(now, "_paste", Paste(*drawn))
        return now

    @property
    def _seeds(self) -> tuple[int, ...]:
        return self.seed if isinstance(self.seed, tuple) else (self.seed,)

    def said(self, params: Params) -> Float[Tensor, "*E n P"]:
        """What the network says to each training patch."""
        return torch.einsum("k,...knp->...np", self.a, self.respond(self.on_patches(params)))

    def train_loss(
        self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None
    ) -> Float[Tensor, "*E"]:
        """Mean loss over the pictures."""
        labels = self.observed if observed is None else observed
        return self.recipe.loss(self.said(params), labels, self._paste).mean(-1)

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """The gradient's own coefficients on the basis."""
        z = self.on_patches(params)
        said = torch.einsum("k,...knp->...np", self.a, self.respond(z))
        pull = self.recipe.slope(said, observed, self._paste) / observed.shape[-1]
        pulled = self.vjp(self.a[:, None, None] * pull[..., None, :, :], z)
        grad = {"c": torch.einsum("...knp,...nps->...ks", pulled, self.mix)}
        return grad | ({"start": torch.zeros_like(params["start"])} if "start" in params else {})

    def lazy(self) -> "LazyPastedTraining":
        """The network's first-order expansion about its start, on the same pictures."""
        return convert(self, LazyPastedTraining)


class LazyPastedTraining(PastedTraining, LazyPatchTraining):
    """The lazy rival."""
