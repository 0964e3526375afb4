"""Training on given prompts: another batch at every step, of one's own draws."""

import copy

import torch
from torch import Tensor, nn

from flbook.data.prompts import Prompts, map_tensors
from flbook.training.network import check_model
from flbook.training.pretrain import at_the_query
from flbook.training.problem import Params, PopulationProblem, gradient_of, of_step


class PromptTraining(PopulationProblem):
    """The mean squared error at the queries, on the prompts that are given for each step; a problem for `flbook.fit`.

    `flbook.training.pretrain.pretrain` draws its prompts and takes AdamW; here any rule takes the step.

    Parameters
    ----------
    model
        A network that, called with contexts and queries, returns predictions ``(*E, b, q)``; E leads its parameters.
    prompts
        `Prompts` whose tensors have a leading axis of the steps, contexts ``(steps, *E, b, n, d)``.

    Raises
    ------
    ValueError
        If the model has no parameters, or there are no more prompts at a step.

    Examples
    --------
    >>> from flbook import GradientDescent, fit
    >>> from flbook.shapes import Context
    >>> class Slope(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.g = nn.Parameter(torch.zeros(1))
    ...     def forward(self, context, query):
    ...         return self.g * query.sum(-1)
    >>> x, query = torch.ones(3, 4, 5, 2), torch.ones(3, 4, 1, 2)  # three steps, four prompts, five examples
    >>> prompts = Prompts(Context(x, x[..., 0]), query, query.sum(-1), x[..., 0, :])
    >>> round(fit(PromptTraining(Slope(), prompts), GradientDescent(0.125), 3).params["g"].item(), 3)
    1.0
    """

    def __init__(self, model: nn.Module, prompts: Prompts):
        check_model(model)
        self.model, self.step = model, 0
        like = next(model.parameters())
        self.prompts = map_tensors(prompts, lambda t: t.to(like))

    def start(self) -> Params:
        """The parameters before training.

        Returns
        -------
        Params
            Copies of the model's parameters by name, each of shape ``(*E, ...)``.
        """
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def at(self, step: int) -> "PromptTraining":
        """The problem of the prompts of one step.

        Parameters
        ----------
        step
            Number of the step, counted from 0.

        Returns
        -------
        PromptTraining
            A copy that looks at this step's prompts.
        """
        there = copy.copy(self)
        there.step = step
        return there

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Mean squared error of each member on the prompts of this step.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x, observed
            None, since there are neither inputs nor labels.

        Returns
        -------
        Tensor
            Mean over prompts and queries, shape ``*E``.
        """
        now = map_tensors(self.prompts, lambda t: of_step("prompts", t, self.step))
        return at_the_query(lambda *given: torch.func.functional_call(self.model, params, given), now)

    def slope(self, params: Params) -> Params:
        """Gradient of the loss.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Params
            Gradient in the form of `params`.
        """
        return gradient_of(self.train_loss, params)

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction.

        Parameters
        ----------
        direction
            A direction in the form of the parameters, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Length over all parameters, one number a member.
        """
        lead = self.prompts.target.ndim - 3
        return torch.stack([p.square().flatten(lead).sum(-1) for p in direction.values()]).sum(0).sqrt()
