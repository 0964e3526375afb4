"""Signal-noise data on a graph: the samples are nodes of a two-block stochastic block model."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data.signal_noise import Sample, SignalNoise, alternating_labels
from flbook.domains import Checked, Count, NonNegative, Positive


class Neighbourhoods(NamedTuple):
    """What a graph convolution does to a node: the share of the signal it leaves, and how many noises it averages."""

    share: Float[Tensor, "*E points"]  # (same - other) / (same + other), the node itself among the same
    size: Float[Tensor, "*E points"]  # same + other, at least 1


@dataclass(frozen=True)
class TwoBlockGraph(Checked):
    r"""n nodes in two classes of equal size; an edge with probability p inside a class and s between the classes.

    The graph convolution replaces every feature by the mean over a node and its neighbours,

    .. math:: \tilde x_i = \frac{1}{D_i + 1}\sum_k (A + I)_{ik}\,x_k,

    which acts on patches linearly: a signal :math:`y_i\mu` becomes :math:`y_i\alpha_i\mu` with :math:`\alpha_i` near
    :math:`(p - s)/(p + s)`, a noise patch the mean of :math:`D_i + 1` of them.

    Source: Huang et al. (2025), the model SNM-SBM.
    """

    n: Count = 100  # nodes, even
    degree: NonNegative = 12.0  # D = n (p + s) / 2, expected number of neighbours; 0 is no graph at all
    contrast: Positive = 5.0  # p / s; below 1 most neighbours are of the other class

    def __post_init__(self):
        super().__post_init__()
        if self.n % 2:
            raise ValueError(f"n must be even, for two classes of equal size; got {self.n}")
        if max(self.within, self.between) > 1:
            top = self.n * (1 + self.contrast) / max(self.contrast, 1) / 2
            raise ValueError(f"degree must lie in [0, {top:g}], so that p is a probability; got {self.degree}")

    @property
    def within(self) -> float:
        """p, the probability of an edge inside a class."""
        return 2 * self.degree * self.contrast / (self.n * (1 + self.contrast))

    @property
    def between(self) -> float:
        """s, the probability of an edge between the classes."""
        return self.within / self.contrast

    @property
    def attenuation(self) -> float:
        """(p - s) / (p + s), what large neighbourhoods leave of the signal."""
        return (self.contrast - 1) / (self.contrast + 1)

    def adjacency(self, y: Float[Tensor, " n"], seed: int | tuple[int, ...] = 0) -> Float[Tensor, "*E n n"]:
        """A symmetric 0-1 matrix with an empty diagonal; the same uniform numbers serve every degree."""
        chance = torch.where(y[:, None] == y, self.within, self.between)

        def draw(one: int) -> Tensor:
            uniform = torch.rand((self.n, self.n), generator=rng.generator(one, "edges"), dtype=torch.float64)
            upper = (uniform < chance).double().triu(1)
            return upper + upper.mT

        return rng.over_seeds(draw, seed)

    def convolution(self, y: Float[Tensor, " n"], seed: int | tuple[int, ...] = 0) -> Float[Tensor, "*E n n"]:
        """The matrix :math:`(D + 1)^{-1}(A + I)`; its rows sum to 1."""
        looped = self.adjacency(y, seed) + torch.eye(self.n, dtype=torch.float64)
        return looped / looped.sum(-1, keepdim=True)

    def neighbourhoods(self, points: int, seed: int = 0) -> Neighbourhoods:
        """Those of nodes of a fresh graph of the same size, exactly distributed: binomial numbers of neighbours."""
        numbers = rng.numpy_generator(seed, "fresh neighbourhoods")
        same = 1 + torch.from_numpy(numbers.binomial(self.n // 2 - 1, self.within, points)).double()
        other = torch.from_numpy(numbers.binomial(self.n // 2, self.between, points)).double()
        return Neighbourhoods((same - other) / (same + other), same + other)


def on_graph(
    data: SignalNoise, graph: TwoBlockGraph, seed: int | tuple[int, ...] = 0
) -> tuple[Sample, Float[Tensor, "*E n 2 d"]]:
    """A training sample whose samples are the graph's nodes, and its patches after the convolution.

    Raises ValueError if data and graph differ in n, or labels are not balanced and the same for every seed.
    """
    if data.n != graph.n:
        raise ValueError(f"data and graph must have the same n; got {data.n} and {graph.n}")
    if not data.exact_flips:
        raise ValueError("exact_flips must be True: the blocks of the graph are the two classes, equally large")
    sample = data.draw(seed)
    y = alternating_labels(data.n)
    return sample, torch.einsum("...ik,...kpd->...ipd", graph.convolution(y, seed), sample.x)
