"""Factual recall: a word belongs to two concepts, and a task, named or shown by examples, says which one is meant."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, NonNegative, Range


class RecallPrompts(NamedTuple):
    """A batch of prompts as sequences of tokens; the query is the last one."""

    tokens: Float[Tensor, "*E L d"]  # all tokens before the query
    query: Float[Tensor, "*E d"]
    answer: Int[Tensor, "*E"]  # place of the right answer in `FactualRecall.answers`
    task: Int[Tensor, "*E"]  # number k of the task


@dataclass(frozen=True)
class FactualRecall(Checked):
    r"""K tasks with directions :math:`a_k`, each with a pair of facts :math:`\pm b_k`; all orthonormal.

    .. math:: x_q = \alpha a_k + s\,b_k + \alpha a_j + s' b_j + \xi, \qquad \text{answer } a_k + s\,b_k

    The query belongs to the task k and to another concept j, so it does not say by itself which answer is meant. A
    *question* puts the task's direction :math:`a_k` among common tokens :math:`\nu_i` before the query. An *in-context*
    prompt shows J pairs of a word and its answer instead, each word with an own random sign and an own other concept:

    .. math:: x_\ell = \alpha a_k + s_\ell b_k + \alpha a_{j_\ell} + s'_\ell b_{j_\ell} + \xi_\ell, \qquad
              y_\ell = a_k + s_\ell b_k + \xi'_\ell

    Answers are the 2K vectors :math:`(a_k \pm b_k)/\sqrt2`. Tokens carry noise :math:`N(0, \sigma_\xi^2 I_d)`.

    Source: after Bu et al. (2025), simplified; the paper's dictionary and lengths are larger.
    """

    concepts: Annotated[int, Range(2)] = 6  # K; a query belongs to two
    common: Count = 12  # common tokens
    d: Count = 32
    share: NonNegative = 0.1  # alpha, how much of its task a word shows
    noise: NonNegative = 0.05  # sigma_xi
    length: Count = 8  # tokens of a question before the query, the task's direction included

    def __post_init__(self):
        super().__post_init__()
        if self.d < (needed := 2 * self.concepts + self.common):
            raise ValueError(f"d must be at least {needed}, two directions a concept and common tokens; got {self.d}")

    @property
    def tasks(self) -> Float[Tensor, "K d"]:
        """The directions a_k: the first axes, since nothing else knows directions."""
        return torch.eye(self.d)[: self.concepts]

    @property
    def facts(self) -> Float[Tensor, "K d"]:
        """The directions b_k."""
        return torch.eye(self.d)[self.concepts : 2 * self.concepts]

    @property
    def answers(self) -> Float[Tensor, "answers d"]:
        """The dictionary: (a_k + b_k)/sqrt 2 for all k, then (a_k - b_k)/sqrt 2."""
        return torch.cat([self.tasks + self.facts, self.tasks - self.facts]) / math.sqrt(2)

    def questions(self, batch: int, seed: int | tuple[int, ...] = 0, step: int = 0) -> RecallPrompts:
        """Questions that name their task, a pure function of (seed, step), in float32."""
        return self._stacked(self._question, batch, seed, step)

    def in_context(
        self, batch: int, examples: int, seed: int | tuple[int, ...] = 0, step: int = 0, opposite: bool = False
    ) -> RecallPrompts:
        """Prompts of J examples: the J words, then their J answers. opposite: no sign s_l is that of the query."""
        if examples < 1:
            raise ValueError(f"examples must be at least 1, the word-answer pairs of a prompt; got {examples}")
        return self._stacked(self._examples, batch, seed, step, examples, opposite)

    def _stacked(self, draw, batch, seed, step, *how) -> RecallPrompts:
        if batch < 1:
            raise ValueError(f"batch must be at least 1, the number of prompts; got {batch}")
        if isinstance(seed, tuple | list | range):
            return RecallPrompts(*map(torch.stack, zip(*(draw(batch, one, step, *how) for one in seed), strict=True)))
        return draw(batch, seed, step, *how)

    def _words(self, k: Tensor, s: Tensor, generator: torch.Generator) -> Tensor:
        """Words of the tasks k with the signs s and another concept each, without noise."""
        j = (k + 1 + torch.randint(self.concepts - 1, k.shape, generator=generator)) % self.concepts
        other = (1 - 2 * torch.randint(2, k.shape, generator=generator))[..., None]
        return self.share * (self.tasks[k] + self.tasks[j]) + s[..., None] * self.facts[k] + other * self.facts[j]

    def _asked(self, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Task, sign, query and answer."""
        k = torch.randint(self.concepts, (batch,), generator=generator)
        s = 1 - 2 * torch.randint(2, (batch,), generator=generator)
        query = self._noisy(self._words(k, s, generator), generator)
        return k, s, query, k + self.concepts * (s < 0).long()

    def _noisy(self, tokens: Tensor, generator: torch.Generator) -> Tensor:
        return tokens + self.noise * torch.randn(tokens.shape, generator=generator)

    def _question(self, batch: int, seed: int, step: int) -> RecallPrompts:
        generator = rng.generator(seed, f"questions, step {step}")
        k, _, query, answer = self._asked(batch, generator)
        chosen = torch.randint(self.common, (batch, self.length - 1), generator=generator)
        common = torch.eye(self.d)[2 * self.concepts + chosen]
        return RecallPrompts(self._noisy(torch.cat([common, self.tasks[k][:, None]], 1), generator), query, answer, k)

    def _examples(self, batch: int, seed: int, step: int, examples: int, opposite: bool) -> RecallPrompts:
        generator = rng.generator(seed, f"examples, step {step}")
        k, s, query, answer = self._asked(batch, generator)
        signs = 1 - 2 * torch.randint(2, (batch, examples), generator=generator)
        signs = -s[:, None].expand_as(signs) if opposite else signs
        of = k[:, None].expand_as(signs)
        words = self._words(of, signs, generator)
        answers = self.tasks[of] + signs[..., None] * self.facts[of]
        return RecallPrompts(self._noisy(torch.cat([words, answers], 1), generator), query, answer, k)
