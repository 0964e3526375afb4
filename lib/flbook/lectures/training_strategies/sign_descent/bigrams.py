r"""Bigrams in which a few words are frequent and most are rare, and a matrix of logits trained on their exact law.

Word i comes with the frequency :math:`p_i \propto i^{-a}` (Zipf's law: a = 1) and is followed by one of k successors of
its own, with probabilities :math:`q_{i,1}, \dots, q_{i,k}`. The model has a logit for every pair of words, starts at
0, and minimises the cross entropy, of which the excess over its minimum is

.. math:: L(W) = \sum_i p_i\,\mathrm{KL}(q_i \,\|\, \mathrm{softmax}(W_i)).

In a row the words that never follow all have one gradient, and so one logit under every rule that takes coordinates
alike. A row is therefore kept as k + 1 numbers, and no step costs more than O(V k).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, Natural, NonNegative, checked_arguments
from flbook.training.problem import Params, PopulationProblem


@dataclass(frozen=True)
class Bigrams(Checked):
    """Words by their rank: what share of the text they are, and what follows them.

    Parameters
    ----------
    words
        V, the size of the vocabulary.
    successors
        k, how many words may follow a word; their probabilities are uniform on the simplex.
    power
        a of Zipf's law; 0 makes all words equally frequent.

    Raises
    ------
    ValueError
        If a number is out of its domain, or a word has more successors than there are other words.

    Examples
    --------
    >>> Bigrams(words=3, successors=2).frequencies.numpy().round(3).tolist()
    [0.545, 0.273, 0.182]
    """

    words: Count = 200
    successors: Count = 5
    power: NonNegative = 1.0

    def __post_init__(self):
        super().__post_init__()
        if self.successors >= self.words:
            raise ValueError(f"successors must be fewer than the {self.words} words; got {self.successors}")

    @property
    def frequencies(self) -> Float[Tensor, " V"]:
        """What share of the text each word is, the most frequent first."""
        p = torch.arange(1, self.words + 1, dtype=torch.float64) ** -self.power
        return p / p.sum()

    @checked_arguments
    def draw(self, seed: Natural | tuple[Natural, ...] = 0) -> Float[Tensor, "*E V k"]:
        """Probabilities of the successors; a tuple of seeds gives one leading ensemble axis."""

        def one(number: int) -> Tensor:
            generator = rng.numpy_generator(number, "successors")
            return torch.from_numpy(generator.dirichlet(np.ones(self.successors), self.words))

        return rng.over_seeds(one, seed)

    @checked_arguments
    def text(self, length: Count, seed: Natural | tuple[Natural, ...] = 0) -> Float[Tensor, "*E V k"]:
        """How often each successor follows each word in a text of so many words, which are drawn independently."""

        def one(number: int) -> Tensor:
            generator = rng.numpy_generator(number, "text")
            words = generator.multinomial(length, self.frequencies.numpy())
            pairs = zip(words, self.draw(number).numpy(), strict=True)
            return torch.from_numpy(np.stack([generator.multinomial(count, q) for count, q in pairs])).double()

        return rng.over_seeds(one, seed)


@dataclass(frozen=True, eq=False)
class BigramTraining(PopulationProblem):
    """The matrix of logits and its loss: parameter ``w`` of shape ``(*E, V, k + 1)``, the last for all other words.

    Parameters
    ----------
    q
        Probabilities of the successors.
    p
        How much each row counts in the loss that is trained on; of several texts, one row of `p` each.

    Examples
    --------
    >>> from flbook import SignDescent, fit
    >>> problem = BigramTraining.of(Bigrams(), seed=(0, 1))
    >>> problem.train_loss(fit(problem, SignDescent(0.05), 200).params).shape
    torch.Size([2])
    """

    q: Float[Tensor, "*E V k"]
    p: Float[Tensor, "*#E V"]

    @classmethod
    @checked_arguments
    def of_text(cls, data: Bigrams, length: Count, seed: Natural | tuple[Natural, ...] = 0) -> "BigramTraining":
        """On the shares that are counted in a text, in place of the law; words that do not occur count for nothing."""
        counts = data.text(length, seed)
        often = counts.sum(-1)
        return cls(counts / often.clamp(min=1)[..., None], often / length)

    @classmethod
    @checked_arguments
    def of(cls, data: Bigrams, seed: Natural | tuple[Natural, ...] = 0) -> "BigramTraining":
        """On the law of a seed, or of several."""
        return cls(data.draw(seed), data.frequencies)

    def to(self, *where: Any) -> "BigramTraining":
        """On another device or in another precision."""
        return replace(self, q=self.q.to(*where), p=self.p.to(*where))

    def levelled(self) -> "BigramTraining":
        """The same with every row's loss divided by its frequency: what a rule would see that knew the frequencies."""
        return replace(self, p=torch.ones_like(self.p))

    def copies(self, count: int) -> "BigramTraining":
        """Several members of each, along a new first axis: one for each step size, say."""
        return replace(self, q=self.q.expand(count, *self.q.shape))

    @property
    def others(self) -> int:
        """How many words never follow a given one."""
        return self.q.shape[-2] - self.q.shape[-1]

    def start(self) -> Params:
        """Every next word equally likely."""
        return {"w": self.q.new_zeros(*self.q.shape[:-1], self.q.shape[-1] + 1)}

    def log_softmax(self, params: Params) -> Float[Tensor, "*E V K"]:
        """Logarithms of the model's probabilities: of each successor, and of any one of the other words."""
        w = params["w"]
        top = w.amax(-1, keepdim=True)
        z = (w - top).exp()
        return w - top - (z[..., :-1].sum(-1, keepdim=True) + self.others * z[..., -1:]).log()

    def slope(self, params: Params) -> Params:
        r"""Gradient in every logit, :math:`p_i(s_{i,k} - q_{i,k})`."""
        s = self.log_softmax(params).exp()
        s[..., :-1] -= self.q
        return {"w": self.p[..., None] * s}

    def norm(self, direction: Params) -> Float[Tensor, "*E"]:
        """Euclidean length over all V² logits."""
        square = direction["w"].square()
        return (square[..., :-1].sum((-2, -1)) + self.others * square[..., -1].sum(-1)).sqrt()

    def excess(self, params: Params) -> Float[Tensor, "*E V"]:
        """Excess loss of each row, the divergence of what the model predicts from what follows."""
        return (torch.xlogy(self.q, self.q) - self.q * self.log_softmax(params)[..., :-1]).sum(-1)

    def train_loss(self, params: Params, **change: Tensor) -> Float[Tensor, "*E"]:
        """Excess loss of each member."""
        return (self.excess(params) * self.p).sum(-1)


def sign_flow(q: Float[Tensor, "*E k"], words: int, tau: Float[Tensor, " T"]) -> Float[Tensor, "*E T"]:
    r"""Excess loss of a row under sign descent in small steps, after a path of length :math:`\tau = \eta t`.

    Every probability is :math:`\min(a, \max(q_k, a e^{-2\tau}))`, with a such that they sum to 1. Derived on this
    lecture's page; a by bisection.

    Examples
    --------
    >>> start = sign_flow(torch.tensor([0.7, 0.3]), 100, torch.zeros(1))
    >>> round(float(start), 3), round(float(np.log(100) + 0.7 * np.log(0.7) + 0.3 * np.log(0.3)), 3)
    (3.994, 3.994)
    """
    q, low = q.double()[..., None, :], (-2 * tau.double())[:, None]
    under, over = q.new_zeros(*q.shape[:-2], len(tau), 1), q.new_ones(*q.shape[:-2], len(tau), 1)
    for _ in range(60):
        a = (under + over) / 2
        s = torch.minimum(a, torch.maximum(q, a * low.exp()))
        much = s.sum(-1, keepdim=True) + (words - q.shape[-1]) * a * low.exp() > 1
        under, over = torch.where(much, under, a), torch.where(much, a, over)
    s = torch.minimum(under, torch.maximum(q, under * low.exp()))
    return (torch.xlogy(q, q) - torch.xlogy(q, s)).sum(-1)
