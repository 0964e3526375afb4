"""Two ways to adapt to the examples of a prompt: read them, or train on them."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from flbook import rng
from flbook.data.prompts import Prompts, map_tensors
from flbook.models.transformer import PromptTransformer
from flbook.shapes import Context, Quantity
from flbook.training.fit import Trained, fit
from flbook.training.problem import Rule
from flbook.training.prompted import PromptTraining


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


def lone_states(network: PromptTransformer, x: Float[Tensor, "*E b n d"]) -> Float[Tensor, "*E b n width"]:
    """What an ensemble of networks reads its answer out of at each input, if it stands alone: without a context."""
    token = functional.pad(x, (0, 1)).flatten(-3, -2)[..., None, :]  # (*E, b n, 1, d + 1): (x, 0)
    return network.gpt(network.embedding(token))[..., 0, :].unflatten(-2, x.shape[-3:-1])


def linear_share(x: Float[Tensor, "*E b n d"], states: Float[Tensor, "*E b n width"]) -> Float[Tensor, "*E"]:
    """The share of the states' variance over all inputs that an affine map of the input explains."""
    x, states = (part.flatten(-3, -2) for part in (x, states))  # (*E, b n, ...)
    x, states = x - x.mean(-2, keepdim=True), states - states.mean(-2, keepdim=True)
    rest = states - x @ torch.linalg.lstsq(x, states).solution
    return 1 - rest.square().sum((-2, -1)) / states.square().sum((-2, -1))


def fine_tune(copies: nn.Module, prompts: Prompts, rule: Rule, steps: int, at: Sequence[int]) -> Trained:
    """Train all weights of each member of an ensemble on the examples of its own prompt, one input at a time.

    A member never sees a context, so what it learns of the task moves into its weights.
    copies: one network for each of S prompts; prompts: contexts (S, n, d), queries (S, 1, d). The history has the
    squared error at the query and the loss on the examples, each over (step, prompt), at the steps `at`.
    """
    x, y = prompts.context.x[:, None], prompts.context.y[:, None]  # (S, 1, n, d), (S, 1, n)
    given = Prompts(Context(x[..., :0, :], y[..., :0]), x, y, y[..., :0])
    problem = PromptTraining(copies, map_tensors(given, lambda t: t.expand(max(steps, 1), *t.shape)))

    def error(params):
        query = prompts.query[:, None]  # (S, 1, 1, d)
        nothing = Context(query[..., :0, :], query[..., :0, 0])
        answer = torch.func.functional_call(copies, params, (nothing, query))
        return (answer[:, 0, 0] - prompts.target[:, 0]).square()

    found = [Quantity("error", error), Quantity("loss", problem.train_loss)]
    return fit(problem, rule, steps, found, ["prompt"], at=at)
