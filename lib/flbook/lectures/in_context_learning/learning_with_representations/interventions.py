r"""What a trained transformer holds and what it uses: probes, erasures, swaps and exchanges in its residual stream."""

from typing import NamedTuple

import torch
from torch import Tensor

from flbook import rng
from flbook.estimators import Ridge
from flbook.lectures.in_context_learning.learning_with_representations import feature_depth
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import FeatureMapPrompts, features
from flbook.lectures.in_context_learning.learning_with_representations.residual_stream import (
    TokenSubspace,
    continued,
    correlations,
    covariance_subspace,
    erased,
    opened,
    probe,
    scores,
)
from flbook.models.transformer import PromptTransformer
from flbook.shapes import Context

READ = ("features", "inputs", "features, at the label", "features, untrained", "ridge, at the query")
ERASED = ("inputs", "features", "random")
RULES = ("at the other query", "at its own query")
PARTS = ("features", "all but the features")
INPUTS, LABELS, QUERY = slice(0, None, 2), slice(1, None, 2), slice(-1, None)  # places of tokens
PROBING = 20_000_000  # step of the prompts of probes and tests: training and its test see none of them


class SeenPrompts(NamedTuple):
    """Prompts as a network reads them, examples and query in one row, and what it does not see."""

    x: Tensor  # (b, n + 1, d)
    y: Tensor  # (b, n + 1)
    clean: Tensor  # labels without noise, (b, n + 1)
    features: Tensor  # (b, n + 1, d)
    weight: Tensor  # of ridge regression on the features of the examples, (b, d)

    @property
    def ridge(self) -> Tensor:
        """The Bayes rule's answer at the query, shape (b,)."""
        return (self.weight * self.features[:, -1]).sum(-1)


def drawn(s: feature_depth.Setting, points: int, seed: tuple[int, ...], part: int, device: str = "cpu") -> SeenPrompts:
    """Fresh prompts, the groups of all seeds one behind another; part 0 is for finding probes, part 1 for testing."""
    data = FeatureMapPrompts(s.n, s.d, s.noise)
    found = feature_depth.whole(data.draw(points, seed, PROBING + part, device, torch.float32))
    x, y, clean = (tensor.flatten(0, 1) for tensor in found)
    seen = features(x)
    eye = torch.eye(s.d, device=device).expand(len(x), s.d, s.d)
    return SeenPrompts(x, y, clean, seen, Ridge(s.d * s.noise**2)(Context(seen[:, :-1], y[:, :-1]), eye))


class OpenedNetworks:
    """Trained networks, and the same before training, opened on prompts for finding and on groups for testing.

    What its methods give has the trailing axes (network, group).
    """

    def __init__(
        self, network: PromptTransformer, start: PromptTransformer, fit: SeenPrompts, test: SeenPrompts, groups: int
    ):
        self.network, self.fit, self.test, self.groups = network, fit, test, groups
        self.there, self.here = (opened(network, one.x[None], one.y[None]) for one in (fit, test))
        self.bare, self.test_bare = (opened(start, one.x[None], one.y[None]).stream for one in (fit, test))
        self.mixed = opened(network, self.previous(test.x[None]), test.y[None]).stream  # other inputs, own labels

    def grouped(self, tensor: Tensor) -> Tensor:
        """Prompts, the second axis, split into groups: shape (network, group, prompt, ...)."""
        return tensor.unflatten(1, (self.groups, -1))

    def previous(self, tensor: Tensor) -> Tensor:
        """What belongs to the prompt before in the same group; prompts are the second axis."""
        return self.grouped(tensor).roll(1, 2).flatten(1, 2)

    def whole(self) -> dict[str, Tensor]:
        """Without a change: the error at the query, and the answer's relative change if the query's sign flips."""
        mirror = torch.cat([self.test.x[:, :-1], -self.test.x[:, -1:]], 1)
        moved = opened(self.network, mirror[None], self.test.y[None]).answers - self.here.answers
        change, answer = (self.grouped(one[..., -1].square()).mean(-1) for one in (moved, self.here.answers))
        return {"intact": self.missed(self.here.answers), "mirrored": change / answer}

    def missed(self, answers: Tensor) -> Tensor:
        """Squared error at the query over the mean square of the label there: 1 is what the answer 0 misses."""
        clean = self.test.clean[None, :, -1]
        return self.grouped((answers[..., -1] - clean).square()).mean(-1) / self.grouped(clean.square()).mean(-1)

    def read(self, layer: int) -> Tensor:
        """R² of linear probes on fresh prompts, shape (quantity, network, group)."""
        fit, test, there, here = self.fit, self.test, self.there.stream[layer], self.here.stream[layer]

        def score(places: slice, truth: Tensor, fresh: Tensor, tokens: Tensor = there, tested: Tensor = here) -> Tensor:
            reads = probe(tokens[:, :, places], truth[None])
            return scores(self.grouped(reads(tested[:, :, places])), self.grouped(fresh[None]))

        return torch.stack([
            score(INPUTS, fit.features, test.features),
            score(INPUTS, fit.x, test.x),
            score(LABELS, fit.features[:, :-1], test.features[:, :-1]),
            score(INPUTS, fit.features, test.features, self.bare[layer], self.test_bare[layer]),
            score(QUERY, fit.ridge[:, None, None], test.ridge[:, None, None]),
        ])  # fmt: skip

    def erase(self, layer: int, network: tuple[int, ...], places: slice = INPUTS) -> Tensor:
        """Error without the part of inputs' tokens in a subspace of d dimensions, shape (erased, network, group)."""
        tokens, fit = self.there.stream[layer][:, :, INPUTS], self.fit
        found = [covariance_subspace(tokens, truth[None]) for truth in (fit.x, fit.features)]
        draws = rng.normal(tuple(found[0].basis.shape[1:]), network, f"random subspace, layer {layer}").to(tokens)
        found.append(TokenSubspace(torch.linalg.qr(draws)[0], found[0].mean))
        changed = (erased(self.here.stream[layer], one, places) for one in found)
        return torch.stack([self.missed(continued(self.network, one, layer).answers) for one in changed])

    def swapped(self, layer: int) -> tuple[Tensor, Tensor]:
        """Answers with the features of the prompt before at the query, (network, prompt), and RULES, (prompt, rule)."""
        tokens, test = self.here.stream[layer].clone(), self.test
        subspace = covariance_subspace(self.there.stream[layer][:, :, INPUTS], self.fit.features[None])
        part = subspace.part(tokens[:, :, QUERY])
        tokens[:, :, QUERY] += self.previous(part) - part
        other = (test.weight * self.previous(test.features[None, :, -1])[0]).sum(-1)
        return continued(self.network, tokens, layer).answers[..., -1], torch.stack([other, test.ridge], -1)

    def swap(self, layer: int) -> Tensor:
        """The correlations of the swapped answers with those of RULES, shape (rule, network, group)."""
        answers, rules = self.swapped(layer)
        return correlations(self.grouped(answers), self.grouped(rules[None])).movedim(-1, 0)

    def exchange(self, layer: int) -> Tensor:
        """A part of the inputs' tokens from the prompt of the labels, the rest from another; (part, network, group).

        The error at that prompt's query. Where it is no larger than without an exchange, the layers above need this
        part and no other.
        """
        subspace = covariance_subspace(self.there.stream[layer][:, :, INPUTS], self.fit.features[None])
        own, other = self.here.stream[layer].clone(), self.mixed[layer].clone()
        part = subspace.part(own[:, :, INPUTS]) - subspace.part(other[:, :, INPUTS])
        other[:, :, INPUTS] += part  # the features are its own
        own[:, :, INPUTS] -= part  # all but the features are
        return torch.stack([self.missed(continued(self.network, one, layer).answers) for one in (other, own)])
