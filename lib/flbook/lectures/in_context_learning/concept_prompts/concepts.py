"""Concept prompts: word-label pairs that share one concept, and a query word whose label is to be predicted."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.prompts import Prompts, check_batch
from flbook.domains import Checked, Count, NonNegative, Positive, Range
from flbook.shapes import Context


@dataclass(frozen=True)
class ConceptPrompts(Checked):
    r"""Prompts about one of K concepts, each with two opposite meanings :math:`\pm`.

    .. math:: x_\ell = a_k + s_\ell b_k + \xi_\ell, \qquad y_\ell = c_k + s_\ell d_k + \xi'_\ell, \qquad
              x_q = a_k + s\,b_k + \xi, \qquad \text{target } s \in \{-1, +1\}

    with independent fair signs and noise :math:`N(0, \sigma_\xi^2 I_d)` in words and in labels. The 2K vectors
    :math:`a_k, b_k` are orthogonal, :math:`\|a_k\|^2 = \frac{1+\kappa}2\|u\|^2` and
    :math:`\|b_k\|^2 = \frac{1-\kappa}2\|u\|^2`, so the two words of a concept have the length :math:`\|u\|` and the
    inner product :math:`\kappa\|u\|^2`; the same holds for :math:`c_k, d_k`. They are the first axes, which costs
    nothing: noise and networks do not know directions.

    The prompts' labels are vectors: ``context.y`` has shape ``*E n d``. Ensemble axes are (seeds, batch).

    Source: Bu et al. (2024); the lengths, as reported.
    """

    concepts: Count = 4  # K
    n: Annotated[int, Range(1, 62)] = 8  # examples of a prompt, whose signs have to fit into one integer
    d: Count = 32  # dimension of a word and of a label
    kappa: Annotated[float, Range(-1, 1, "()")] = 0.5  # cosine of the angle between the two words of a concept
    length: Positive = 2.0  # |u|, length of a word
    noise: NonNegative = 0.05  # sigma_xi
    skew: Positive = 1.0  # each concept is drawn this many times as often as the one before
    recombined: bool = False  # words are sums of two concepts, labels are sums of another two
    word_sign: Literal[1, -1] = 1  # -1: b_k is replaced by -b_k, in demonstrations and query
    label_sign: Literal[1, -1] = 1  # -1: d_k is replaced by -d_k
    contains: bool = False  # only prompts in which at least one label is that of the query

    def __post_init__(self):
        super().__post_init__()
        if self.d < 2 * self.concepts:
            raise ValueError(f"d must be at least twice the number of concepts, which have two directions each; got "
                             f"d = {self.d} and concepts = {self.concepts}")
        if self.recombined and self.concepts < 3:
            raise ValueError(f"concepts must be 3 or more to be recombined; got {self.concepts}")

    @property
    def shared(self) -> float:
        """Length of a_k and c_k, what the two words of a concept share."""
        return self.length * math.sqrt((1 + self.kappa) / 2)

    @property
    def contrast(self) -> float:
        """Length of b_k and d_k, what tells them apart."""
        return self.length * math.sqrt((1 - self.kappa) / 2)

    def dictionary(self) -> Float[Tensor, "4 K d"]:
        """The vectors a, b, c, d of each concept as the prompts show them, signs and recombination included."""
        axes = torch.eye(self.d, dtype=torch.float64)[: 2 * self.concepts].unflatten(0, (2, self.concepts))
        words, labels = axes, axes
        if self.recombined:
            words, labels = ((axes + axes.roll(-shift, 1)) / math.sqrt(2) for shift in (1, 2))
        lengths = torch.tensor([self.shared, self.contrast * self.word_sign,
                                self.shared, self.contrast * self.label_sign], dtype=torch.float64)
        return lengths[:, None, None] * torch.cat([words, labels])

    def draw(self, batch: int, seed: int | tuple[int, ...] = 0, step: int = 0, device: str = "cpu") -> Prompts:
        """A batch, a pure function of (seed, step), in float32; a tuple of seeds gives one leading axis.

        ``target`` is the sign of the query's label, shape ``(*seeds, batch, 1)``; ``task`` is the concept's number.
        """
        check_batch(batch)
        many = isinstance(seed, tuple | list | range)
        parts = [self._one(batch, int(one), step) for one in (seed if many else (seed,))]
        concept, signs, noise = (torch.stack(part) if many else part[0] for part in zip(*parts, strict=True))
        return self._prompts(concept.to(device), signs.to(device), noise.to(device))

    def _one(self, batch: int, seed: int, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Concepts, signs (those of the examples, then that of the query) and noise of one seed's batch."""
        generator = rng.generator(seed, f"concept prompts, step {step}")
        weights = self.skew ** torch.arange(self.concepts, dtype=torch.float64)
        concept = torch.multinomial(weights, batch, replacement=True, generator=generator)
        query = 1 - 2 * torch.randint(2, (batch, 1), generator=generator)
        pattern = torch.randint(int(self.contains), 2**self.n, (batch, 1), generator=generator)
        equal = (pattern >> torch.arange(self.n)) & 1  # which labels are that of the query; 0 is none
        noise = torch.randn(batch, 2 * self.n + 1, self.d, generator=generator)
        return concept, torch.cat([query * (2 * equal - 1), query], -1), self.noise * noise

    def every(self) -> tuple[Prompts, Float[Tensor, " prompts"]]:
        """Every prompt without noise, up to the order of its examples, and its probability; in float64."""
        count = torch.arange(int(self.contains), self.n + 1)  # labels equal to that of the query
        concept, query, count = torch.cartesian_prod(torch.arange(self.concepts), torch.tensor([1, -1]), count).T
        equal = torch.arange(self.n) < count[:, None]
        signs = torch.cat([query[:, None] * (2 * equal.long() - 1), query[:, None]], -1)
        ways = torch.tensor([math.comb(self.n, k) for k in count.tolist()], dtype=torch.float64)
        weight = ways * self.skew ** concept.double()
        noise = torch.zeros(len(count), 2 * self.n + 1, self.d, dtype=torch.float64)
        return self._prompts(concept, signs, noise), weight / weight.sum()

    def _prompts(self, concept: Tensor, signs: Tensor, noise: Tensor) -> Prompts:
        """Words and labels from concepts (*seeds, batch), signs (..., n + 1) and noise (..., 2n + 1, d)."""
        a, b, c, d = self.dictionary().to(noise)[:, concept].unsqueeze(-2)
        signs = signs.to(noise)[..., None]
        word_noise, label_noise = noise.split([self.n + 1, self.n], -2)
        words, labels = a + signs * b + word_noise, c + signs[..., :-1, :] * d + label_noise
        context = Context(words[..., :-1, :], labels)
        return Prompts(context, words[..., -1:, :], self.label_sign * signs[..., -1, :], concept)
