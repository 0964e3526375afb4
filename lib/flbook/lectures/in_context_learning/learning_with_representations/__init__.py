r"""Trained transformers opened: where they hold the features of the inputs, which of that they use, where they regress.

The networks are those of `feature_depth`, four layers, trained on prompts whose labels are linear in a fixed feature
map (Guo et al. 2024, who report a division into lower layers that compute the features and upper ones that regress).
Here the division is found by changing tokens: a probe says what can be read, an erasure what is used, and a swap of the
features at the query's token says up to which layer the answer is still open.
"""

from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from flbook.domains import Count, Natural
from flbook.estimators import GradientStep, KernelRidge, Ridge, predict_each
from flbook.lectures.in_context_learning.learning_with_representations import (
    attention_on_features,
    feature_depth,
    interventions,
    residual_stream,
)
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import (
    FeatureMapPrompts,
    class_kernel,
    features,
)
from flbook.lectures.in_context_learning.learning_with_representations.interventions import ERASED, PARTS, READ, RULES
from flbook.runs import Experiment, Grid, axis, labelled
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, pretrain


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep."""

    layer: tuple[Natural, ...] = axis(range(feature_depth.DEEPEST + 1), "layer ℓ")  # 0 is the embedding
    network: tuple[Natural, ...] = axis(feature_depth.ARRIVED, "network")
    seed: tuple[Natural, ...] = axis(range(10), "seed")  # of groups of test prompts
    fit: Count = 300  # prompts on which probes and subspaces are found
    points: Count = 30  # prompts of a group

    def check(self) -> None:
        """Refuse a layer that the networks do not have."""
        if max(self.layer) > feature_depth.DEEPEST:
            raise ValueError(f"layer must be at most {feature_depth.DEEPEST}; got {max(self.layer)}")
        if not set(self.network) <= set(feature_depth.ARRIVED):
            raise ValueError(f"network must be among {feature_depth.ARRIVED}; got {self.network}")


AXES = ("layer", "network", "seed")
experiment = Experiment(
    Setting, version=1,
    gives={
        "read": ("share of variance that a linear probe reads R²", "1", ("quantity", *AXES)),
        "error": ("squared error at the query over that of the answer 0", "1", ("erased", *AXES)),
        "agrees": ("correlation of the answer", "1", ("rule", *AXES)),
        "exchanged": ("squared error at the query over that of the answer 0", "1", ("part", *AXES)),
        "intact": ("squared error at the query over that of the answer 0", "1", AXES[1:]),
        "mirrored": ("squared change of the answer over its square if the query's sign flips", "1", AXES[1:]),
    },
    beside={
        "quantity": (READ, "what is read", "1"), "erased": (ERASED, "what is erased", "1"),
        "rule": (RULES, "ridge regression's answer", "1"), "part": (PARTS, "what is exchanged", "1"),
    },
    presets={"tiny": ("Two networks, few prompts", dict(layer=(0, 2), network=(0, 4), seed=(0, 1), fit=10, points=5))},
)  # fmt: skip


def networks(s: Setting, device: str = "cpu") -> interventions.OpenedNetworks:
    """The networks of a setting, opened on prompts for finding probes and on the groups of test prompts."""
    sizes = feature_depth.experiment.setting("gpu")
    start = feature_depth.untrained(sizes, feature_depth.DEEPEST, s.network).requires_grad_(False)
    fit = interventions.drawn(sizes, s.fit, (0,), 0, device)
    test = interventions.drawn(sizes, s.points, s.seed, 1, device)
    trained = feature_depth.trained(s.network).to(device)
    return interventions.OpenedNetworks(trained, start.to(device), fit, test, len(s.seed))


@experiment.cell
@torch.no_grad()
def cell(s: Setting, device: str) -> dict[str, Tensor]:
    """Read, erase, swap and exchange after every layer of every network."""
    opened = networks(s, device)
    found = {
        "read": [opened.read(layer) for layer in s.layer],
        "error": [opened.erase(layer, s.network) for layer in s.layer],
        "agrees": [opened.swap(layer) for layer in s.layer],
        "exchanged": [opened.exchange(layer) for layer in s.layer],
    }  # fmt: skip
    return {name: torch.stack(parts, 1) for name, parts in found.items()} | opened.whole()


run = experiment.run


@torch.no_grad()
def race(seeds: tuple[int, ...], points: int = 100) -> xr.DataArray:
    """Mean squared errors over the examples read, of networks and rivals; dimensions (rule, position, seed)."""
    s = feature_depth.experiment.setting("gpu")
    drawn = FeatureMapPrompts(s.n, s.d, s.noise).draw(points, seeds, interventions.PROBING + 2)
    x, y, clean = feature_depth.whole(drawn)  # (seed, points, n + 1, ...)
    seen = features(x)
    single = [tensor.flatten(0, 1).float()[None] for tensor in (x, y)]
    answers = residual_stream.opened(feature_depth.trained(), *single).answers.unflatten(1, y.shape[:2]).to(y)

    def step(context: Context, query: Tensor) -> Tensor:  # the best one for each number of examples
        n = context.y.shape[-1]
        return (
            GradientStep(attention_on_features.best_step(n, s.d, s.noise))(context, query) if n else 0 * query[..., 0]
        )

    found = {
        "transformer": (answers - clean).square().mean(0),
        "ridge, features": (predict_each(Ridge(s.d * s.noise**2), Context(seen, y)) - clean).square(),
        "one step, features": (predict_each(step, Context(seen, y)) - clean).square(),
        "class kernel": (predict_each(KernelRidge(class_kernel, s.noise**2), Context(x, y)) - clean).square(),
        "ridge, inputs": (predict_each(Ridge(s.d * (1 + s.noise**2)), Context(x, y)) - clean).square(),
    }
    errors = torch.stack([one.mean(1).mT for one in found.values()])
    axes = {"rule": list(found), "position": ("position", range(s.n + 1), "examples read"), "seed": list(seeds)}
    return labelled({"error": (("rule", "position", "seed"), errors.numpy(), "squared error")}, axes).error


def learned_attention(k: int, seeds: tuple[int, ...], steps: int = 800, batch: int = 64, points: int = 500) -> Tensor:
    """Risk of one layer of attention after training with k features from each seed's start; shape (seed,).

    On prompts of each seed, less what one step on the true features loses on the same prompts, plus what it loses on
    the mean, which is known.
    """
    data = FeatureMapPrompts()
    layer = attention_on_features.AttentionOnFeatures(data.d, k, seeds).float()
    dealt = feature_depth.Dealt(data, seeds)
    pretrain(layer, dealt, Recipe(steps, batch, lr=0.03, warmup=10, beta_2=0.99, clip=0), 0)
    (x, y), query, target, *_ = dealt.draw(points, 0, feature_depth.TEST)
    step = GradientStep(attention_on_features.best_step(data.n, data.d, data.noise))
    true = step(Context(features(x), y), features(query))
    with torch.no_grad():
        surplus = (layer(Context(x, y), query) - target).square() - (true - target).square()
    return surplus.mean((1, 2)) + attention_on_features.rung(data.d, data.n, data.d, data.noise)
