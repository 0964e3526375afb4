r"""Pre-training of an encoder of coloured digits as a problem in weights, one batch a step.

With two views of a picture (SimCLR), with the picture and its caption (CLIP), or with a classifier's labels:

.. math:: L = \tfrac12\big[L_{u\to v} + L_{v\to u}\big], \qquad
          L_{u\to v} = -\frac1N\sum_i\log
          \frac{e^{\langle u_i, v_i\rangle/\tau}}{\sum_j e^{\langle u_i, v_j\rangle/\tau}}

for features u and v of length 1, N of them in a batch; the sum runs over all of the batch.

Source: Chen et al. (2020) for views, Radford et al. (2021) for captions.
"""

import copy
from typing import Literal

import torch
from torch import Tensor, nn

from flbook.lectures.foundation_models.contrastive_digits.captions import caption, every_caption
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import (
    CLASSES,
    ColouredClasses,
    ColouredPictures,
)
from flbook.lectures.foundation_models.contrastive_digits.views import view
from flbook.lectures.foundation_models.shared.info_nce import InfoNCE, all_others
from flbook.models.layers import MLP
from flbook.training.batches import Batches
from flbook.training.losses import cross_entropy
from flbook.training.problem import Params, Problem, gradient_of, refuse

PIXELS = 3 * 8 * 8
TRAINED = ("views", "recoloured views", "captions", "class captions", "classes", "weighted classes")
Partner = Literal[TRAINED]


class DigitPretraining(Problem):
    """Train an encoder of pictures, and what stands beside it, for every seed at once.

    Parameters
    ----------
    data
        The law of the pictures.
    partner
        What a picture is paired with. "views": another view of it, the colour kept; "recoloured views": both views
        in colours of their own; "captions": its label and its colour; "class captions": its label alone; "classes": no
        pairs, a classifier of the labels; "weighted classes": the same, each sample weighted by one over the
        probability of its label and colour together.
    seeds
        Of pictures, networks and views.
    hidden, features
        Widths of the encoder.
    temperature
        Of the contrastive loss.
    size
        Pictures of a batch.
    head
        With views: is the loss computed behind a further hidden layer, which is then thrown away?
    moved
        Do captions and classes see random views of the pictures, too?
    gain
        Variance of the encoder's initial weights, times the width below.
    given
        Pictures of one's own in place of drawn ones, with a leading axis of the seeds, in their dtype.
    places
        Batches of one's own: of each step the places among the pictures, shape ``(steps, size)``.
    """

    def __init__(self, data: ColouredClasses, partner: Partner, seeds: tuple[int, ...], hidden: int = 128,
                 features: int = 64, temperature: float = 0.2, size: int = 200, head: bool = False,
                 moved: bool = False, gain: float = 2.0, given: ColouredPictures | None = None,
                 places: Tensor | None = None):
        self.partner, self.seeds, self.moved, self.step = partner, tuple(seeds), moved, 0
        self.pictures = data.draw(self.seeds) if given is None else given
        self.x = self.pictures.x.float() if given is None else given.x
        self.observed = self.pictures.label
        self.colour, self.table = self.pictures.colour, data.table.to(self.x)
        self.loss = InfoNCE(temperature, normalised=True, both=True)
        self.model = networks(partner, self.seeds, (PIXELS, hidden, features), head, gain).to(self.x.dtype)
        self.batches = Batches(self, size, given=places)

    def to(self, device: torch.device) -> "DigitPretraining":
        """On another device."""
        there = copy.copy(self)
        there.model = copy.deepcopy(self.model).to(device)
        there.x, there.observed, there.colour, there.table = (
            part.to(device) for part in (self.x, self.observed, self.colour, self.table))
        there.batches = Batches(there, self.batches.size, given=self.batches.given)
        return there

    def start(self) -> Params:
        """The weights before training."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def at(self, step: int) -> "DigitPretraining":
        """The problem of one batch, in the views of this step."""
        part = self.batch(self.batches.places(step))
        part.step = step
        return part

    def batch(self, places: Tensor) -> "DigitPretraining":
        """The problem on some of its pictures, the same places for every member."""
        part = copy.copy(self)
        part.x, part.observed, part.colour = (one.index_select(1, places)
                                              for one in (self.x, self.observed, self.colour))
        return part

    def encode(self, params: Params, x: Tensor) -> Tensor:
        """Features of pictures, shape ``(*E, n, features)``."""
        return self._call("pictures", params, x.to(self.x).flatten(-3))

    def told(self, params: Params, words: Tensor) -> Tensor:
        """Features of captions, the same for every member or its own."""
        words = words.to(self.x)
        return self._call("words", params, words.expand(len(self.seeds), *words.shape[-2:]))

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Mean loss of each member, shape ``*E``."""
        refuse(self, x=x, observed=observed)
        if "views" in self.partner:
            pair = [self._beyond(params, self.encode(params, self._view(role))) for role in ("first", "second")]
            return self._contrast(*pair)
        x = self._view("only") if self.moved else self.x
        if "classes" in self.partner:
            return (self._weights() * cross_entropy(self.logits(params, x), self.observed)).mean(-1)
        return self._contrast(self.encode(params, x), self.told(params, self.words()))

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss: one backward pass, since members do not share weights."""
        refuse(self, x=x, observed=observed)
        return gradient_of(self.train_loss, params)

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length, of each member."""
        return sum(p.square().flatten(1).sum(-1) for p in direction.values()).sqrt()

    def words(self) -> Tensor:
        """The captions of these pictures."""
        return caption(self.observed, self.colour, self.partner == "captions")

    def logits(self, params: Params, x: Tensor) -> Tensor:
        """What the classifier says, or the similarity to every caption over the temperature: the own answers."""
        features = self.encode(params, x)
        if "classes" in self.partner:
            return self._call("classes", params, torch.relu(features))
        told = self.told(params, every_caption(self.partner == "captions"))
        pair = [torch.nn.functional.normalize(one, dim=-1) for one in (features, told)]
        return pair[0] @ pair[1].mT / self.loss.temperature

    def answers(self, params: Params, x: Tensor) -> Tensor:
        """The class of the most similar caption, or of the highest logit."""
        best = self.logits(params, x).argmax(-1)
        return best // CLASSES if self.partner == "captions" else best

    def _contrast(self, u: Tensor, v: Tensor) -> Tensor:
        return self.loss(u, v, all_others(u.shape[-2]).to(u.device)) / 2

    def _beyond(self, params: Params, features: Tensor) -> Tensor:
        return self._call("head", params, torch.relu(features)) if "head" in self.model else features

    def _view(self, which: str) -> Tensor:
        return view(self.x, self.seeds, f"{which} view of step {self.step}", self.partner == "recoloured views")

    def _weights(self) -> Tensor:
        if self.partner == "classes":
            return torch.ones_like(self.colour, dtype=self.x.dtype)
        weight = 1 / self.table[self.observed, self.colour]
        return weight / weight.mean(-1, keepdim=True)

    def _call(self, part: str, params: Params, x: Tensor) -> Tensor:
        own = {name.removeprefix(f"{part}."): p for name, p in params.items() if name.startswith(f"{part}.")}
        return torch.func.functional_call(self.model[part], own, (x,))


def networks(partner: Partner, seeds: tuple[int, ...], widths: tuple[int, int, int], head: bool,
             gain: float) -> nn.ModuleDict:
    """The encoder of pictures and what is trained with it."""
    parts, last = {"pictures": MLP(widths, gain=gain, seed=seeds)}, widths[-1]
    if "captions" in partner:
        parts["words"] = MLP((CLASSES * (2 if partner == "captions" else 1), last), seed=seeds, role="words")
    elif "classes" in partner:
        parts["classes"] = MLP((last, CLASSES), seed=seeds, role="classes")
    elif head:
        parts["head"] = MLP((last, last, last), gain=2.0, seed=seeds, role="head")
    return nn.ModuleDict(parts)
