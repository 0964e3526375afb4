"""Two ways to adapt to the examples of a prompt: read them, or train on them."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook import rng
from flbook.data.prompts import Prompts
from flbook.shapes import Context
from flbook.training.pretrain import Recipe, at_the_query, pretrain


def implied_weights(
    predict: Callable, context: Context, probes: int = 32, seed: int = 0
) -> tuple[Float[Tensor, "*E d"], Float[Tensor, "*E"]]:
    """The linear rule that a predictor applies to the queries of one context.

    Returns the weights of the straight line through its answers to random queries, and the share of the answers' mean
    square that this line explains.
    """
    query = rng.normal((probes, context.x.shape[-1]), seed, "probes").to(context.x)
    query = query.expand(*context.x.shape[:-2], *query.shape)
    answers = predict(context, query)
    weights = torch.linalg.lstsq(query, answers[..., None]).solution[..., 0]
    residual = answers - torch.einsum("...d,...qd->...q", weights, query)
    return weights, 1 - residual.square().sum(-1) / answers.square().sum(-1)


def fine_tune(copies: nn.Module, network: nn.Module, context: Context, recipe: Recipe) -> nn.Module:
    """One copy of a network for each prompt, trained on the examples of that prompt, one input at a time.

    A copy never sees a context, so what it learns of the task moves into its weights. copies: an ensemble of networks
    like `network`, one for each prompt of the context, which is flattened to that one axis; returned, trained.
    """
    x, y = context.x.flatten(0, -3)[:, None], context.y.flatten(0, -2)[:, None]
    with torch.no_grad():
        for mine, original in zip(copies.parameters(), network.parameters(), strict=True):
            if mine.shape != (len(x), *original.shape):
                raise ValueError(f"copies must be {len(x)} networks, one a prompt: a parameter of shape "
                                 f"{tuple(original.shape)} has the shape {tuple(mine.shape)} there")
            mine.copy_(original.expand_as(mine))
    alone = Prompts(Context(x[..., :0, :], y[..., :0]), x, y, y[..., :0])
    return pretrain(copies, _Repeated(alone), recipe, loss=at_the_query).model


class _Repeated:
    """The same prompts at every step."""

    def __init__(self, prompts: Prompts):
        self.prompts = prompts

    def draw(self, *_) -> Prompts:
        """The prompts, whatever is asked for."""
        return self.prompts
