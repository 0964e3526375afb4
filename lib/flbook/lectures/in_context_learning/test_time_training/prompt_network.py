"""A two-layer network trained on a prompt alone: what an answer costs without pretraining, if features are learned."""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.domains import Count, Positive, checked_arguments
from flbook.models.activations import relu
from flbook.models.two_layer import TwoLayer
from flbook.shapes import Context, Quantity
from flbook.training.fit import fit
from flbook.training.losses import Squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent


@checked_arguments
def two_layer(context: Context, query: Float[Tensor, "t q d"], width: Count = 64, lr: Positive = 0.5,
              steps: Count = 200, every: Count = 20) -> dict[str, Float[Tensor, "t q"]]:
    """Predictions of a two-layer ReLU network trained on each prompt by gradient descent, at several times.

    The constant 1 is appended to the inputs, so that the neurons have biases.

    Parameters
    ----------
    context, query
        t prompts.
    width
        Neurons, an even number.
    lr
        Step size in units of flow time, as of `TwoLayer.step`.
    steps, every
        Steps taken, and between two answers.

    Returns
    -------
    dict
        "20 steps" -> predictions ``(t, q)``, and so on.

    Raises
    ------
    ValueError
        If an argument is out of its domain.
    """
    def with_one(x):
        return torch.nn.functional.pad(x, (0, 1), value=1.0)

    prompts = tuple(range(len(context.y)))
    net = TwoLayer(context.x.shape[-1] + 1, width, 1 / width, "paired", relu, prompts, dtype=context.x.dtype)
    problem = Training(net, with_one(context.x), context.y, Squared())
    answer = Quantity("answer", lambda params: problem.predict(params, with_one(query)), ("query",))
    rule, at = GradientDescent(net.step(lr)), range(every, steps + 1, every)
    history = fit(problem, rule, steps, [answer], ("prompt",), at).history
    answers = torch.from_numpy(history.answer.transpose("step", "prompt", "query").to_numpy()).to(query)
    return {f"{step} steps": one for step, one in zip(history.step.values, answers, strict=True)}
