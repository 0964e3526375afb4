"""The two protocols that carry all training: a problem knows its gradient, a rule asks for it and takes the step."""

import copy
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Size, Tensor

from flbook.training.losses import Weighted

Params = dict[str, Tensor]


class Problem:
    """What is trained: a network, data and a loss; or the same in coefficients, with the same answers.

    Parameters are dictionaries of tensors of shape ``(*E, ...)``, with the ensemble axes E first; whatever is asked of
    a problem is answered for each member, shape ``(*E, ...)``, and members do not feel each other.

    A class to inherit from, since asking whether an object has all of this would compute its properties.
    """

    coefficients: ClassVar[bool] = False
    """Are the parameters coefficients on the span of gradients? Then a rule that leaves the span is refused."""

    observed: Tensor
    """The labels of the loss, shape ``(*#E, n)``; a problem whose samples are fresh or integrated out has none."""

    loss: Any
    """One of `flbook.training.losses`, where there are labels."""

    @cached_property
    def ensemble(self) -> Size:
        """The shape ``*E``.

        Returns
        -------
        Size
            Lengths of the ensemble axes, none for a single network.
        """
        return self.norm(self.start()).shape

    def start(self) -> Params:
        """The parameters before training.

        Returns
        -------
        Params
            Parameters by name, each of shape ``(*E, ...)``.
        """
        raise NotImplementedError

    def at(self, step: int) -> "Problem":
        """The problem of one step. Its batch is a pure function of (seed, step); full batch: the problem itself.

        Parameters
        ----------
        step
            Number of the step, counted from 0.

        Returns
        -------
        Problem
            The problem that the step is taken on.
        """
        return self

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs ``(*E, n)`` on the training samples, or on others of the same kind.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.

        Returns
        -------
        Tensor
            Outputs, or logits of shape ``(*E, n, classes)``.
        """
        raise _without(self, "outputs on samples")

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Mean loss of each member, shape ``*E``; at other inputs or labels where these are given.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Tensor
            Mean over the n samples, one number a member.
        """
        raise _without(self, "training loss")

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of `train_loss`, in the form of the parameters; at other inputs or labels where these are given.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Params
            Gradient by name, each part of the shape of its parameter.
        """
        raise NotImplementedError

    def sample_indices(self) -> tuple[int, Any]:
        """How many samples there are, and which of them the loss is about: in weights, those of the step's batch.

        What a rule draws for each sample it draws for all of them, so that it is the same in every form of a problem.

        Returns
        -------
        tuple
            Number of all samples, and what picks the loss's own along an axis of them: places, or a slice.
        """
        return self.observed.shape[-1], slice(None)

    def batch(self, places: Tensor) -> "Problem":
        """The problem on some of its samples, as `flbook.training.batches` takes them at a step.

        Parameters
        ----------
        places
            Places of the b samples to take, shape ``(b,)``.

        Returns
        -------
        Problem
            A problem whose loss is that of b samples.
        """
        raise ValueError(f"{type(self).__name__} cannot be cut into batches")

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length, in the space of the weights, of a direction in the form of the parameters; shape ``*E``.

        Parameters
        ----------
        direction
            A direction, such as a gradient or a difference of parameters.

        Returns
        -------
        Tensor
            Length, one number a member.
        """
        raise NotImplementedError

    def output_gradients(self, params: Params) -> Tensor:
        r"""Inner products :math:`\langle\nabla f_i, \nabla f_j\rangle` of outputs' gradients, shape ``(*E, n, n)``.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Tangent kernel of the n training samples.
        """
        raise _without(self, "gradients of its outputs")

    def signal_learned(self, params: Params) -> Tensor:
        r"""The coefficients :math:`\gamma_{j,r}` of the filters on the signal, shape ``(*E, 2, m)``.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Coefficients, those of the filters of +1 first.
        """
        raise _without(self, "signal")

    def noise_memorised(self, params: Params) -> Tensor:
        r"""The coefficients :math:`\rho_{j,r,i}` of the filters on the training noise, shape ``(*E, 2, m, n)``.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Coefficients, those of the filters of +1 first.
        """
        raise _without(self, "noise patches")

    @property
    def test_directions(self) -> int:
        """How many standard normal numbers the outputs on one fresh sample take."""
        raise _without(self, "law of fresh samples")

    def test_outputs(self, params: Params, standard: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs ``(*E, points)`` on fresh samples of label +1 and of label -1, from ``(points, test_directions)``.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        standard
            Standard normal numbers, the same for every member.

        Returns
        -------
        tuple of Tensor
            Outputs at label +1, and outputs at label -1.
        """
        raise _without(self, "law of fresh samples")

    def decaying(self, params: Params) -> Params:
        """The parameters before training, for a rule that lets all weights decay, those of the start too.

        Parameters
        ----------
        params
            Parameters of `start`.

        Returns
        -------
        Params
            The same, and where the problem needs one a multiplier of the initial weights.
        """
        if self.coefficients:
            raise ValueError(f"{type(self).__name__} keeps the initial weights as they are, so it takes no weight decay"
                             "; train the weights themselves")
        return params

    def linear(self) -> "Problem":
        """The rival without an activation.

        Returns
        -------
        Problem
            The rival on the same data.
        """
        raise _without(self, "linear rival")

    def lazy(self) -> "Problem":
        """The rival whose features stay: the first-order expansion about the start.

        Returns
        -------
        Problem
            The rival on the same data.
        """
        raise _without(self, "lazy rival")

    def frozen(self) -> "Problem":
        """The rival whose first layer stays: random features.

        Returns
        -------
        Problem
            The rival on the same data.
        """
        raise _without(self, "frozen rival")


@runtime_checkable
class Rule(Protocol):
    """An optimizer: how parameters follow from parameters. Every scalar of a rule may be one number a member."""

    linear: ClassVar[bool] = True
    """Is a step a combination of gradients and parameters? Such a rule stays in the span of gradients."""

    decays: bool = False
    """Does it shrink the weights, those of the start too, by one multiplier?"""

    def check(self, problem: Problem) -> None:
        """Refuse, in a sentence and before the first step, a problem that the rule cannot take.

        Parameters
        ----------
        problem
            The problem to train on, wrapped or not.
        """

    def start(self, params: Params) -> Any:
        """What the rule remembers, before the first step.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        Any
            Memory for the first `step`.
        """

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """Parameters and memory after one step on the problem of this step, asked for gradients as often as needed.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Memory of the rule.

        Returns
        -------
        tuple
            Parameters and memory, in the form in which they came.
        """
        ...


class EmpiricalProblem(Problem):
    """A problem that knows its samples by their inner products only: it has no outputs on other inputs.

    A subclass has ``observed``, the labels of the loss, and ``loss``, and says what its outputs are and what their
    gradient is at given labels.
    """

    def outputs(self, params: Params) -> Tensor:
        """Outputs ``(*E, n)`` on the training samples.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Outputs, one for each member and sample.
        """
        raise NotImplementedError

    def gradient_at(self, params: Params, observed: Tensor) -> Params:
        """Gradient of the mean loss at these labels.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        observed
            Labels, shape ``(*#E, n)``.

        Returns
        -------
        Params
            Gradient in the form of `params`.
        """
        raise NotImplementedError

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs ``(*E, n)`` on the training samples; there are no others.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            None, since there are no other inputs.

        Returns
        -------
        Tensor
            Outputs, as `outputs` gives them.
        """
        refuse(self, x=x)
        return self.outputs(params)

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Mean loss of each member, shape ``*E``; `observed` replaces the labels.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            None, since there are no other inputs.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Tensor
            Mean over the n samples, one number a member.
        """
        refuse(self, x=x)
        return self.loss(self.outputs(params), self.observed if observed is None else observed).mean(-1)

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss; `observed` replaces the labels.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            None, since there are no other inputs.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Params
            Gradient in the form of `params`.
        """
        refuse(self, x=x)
        return self.gradient_at(params, self.observed if observed is None else observed)

    def batch(self, places: Tensor) -> "EmpiricalProblem":
        """The same problem with the loss of some samples only, the same places for every member.

        Parameters
        ----------
        places
            Places of the b samples whose loss counts, shape ``(b,)``.

        Returns
        -------
        EmpiricalProblem
            A copy whose loss weighs those samples by n/b and the others by 0.
        """
        n = self.observed.shape[-1]
        share = self.observed.new_zeros(n).index_fill(0, places, n / len(places))
        part = copy.copy(self)  # not made anew: labels have been looked at, and a look takes a value off the device
        object.__setattr__(part, "loss", Weighted(self.loss, share))
        return part


def forwarded(name: str) -> Any:
    """A property: what is asked of an object's ``problem``.

    Parameters
    ----------
    name
        Name of an attribute of the problem.

    Returns
    -------
    Any
        A property for the body of a class such as `WrappedProblem`.
    """
    return property(lambda self: getattr(self.problem, name))


class WrappedProblem(Problem):
    """Another problem, its ``problem``, with something changed: whatever a subclass does not say is asked of that."""

    problem: Problem
    coefficients, ensemble, start, at = map(forwarded, ("coefficients", "ensemble", "start", "at"))
    predict, train_loss, gradient, norm = map(forwarded, ("predict", "train_loss", "gradient", "norm"))
    batch, sample_indices, decaying = map(forwarded, ("batch", "sample_indices", "decaying"))
    output_gradients, signal_learned, noise_memorised = map(
        forwarded, ("output_gradients", "signal_learned", "noise_memorised"))
    test_directions, test_outputs = map(forwarded, ("test_directions", "test_outputs"))
    linear, lazy, frozen = map(forwarded, ("linear", "lazy", "frozen"))

    def __getattr__(self, name: str) -> Any:
        """Labels, measures, whatever else the problem has."""
        if name == "problem":  # not there yet: while being copied, say
            raise AttributeError(name)
        return getattr(self.problem, name)


class PopulationProblem(Problem):
    """A problem whose samples are drawn afresh at every step, or integrated out: it takes neither inputs nor labels."""

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
        raise NotImplementedError

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x, observed
            None, since there are neither inputs nor labels.

        Returns
        -------
        Params
            Gradient in the form of `params`.
        """
        refuse(self, x=x, observed=observed)
        return self.slope(params)

    def sample_indices(self) -> tuple[int, Any]:
        """There are no samples to number."""
        raise _without(self, "labels of its own")


def refuse(problem: Problem, **given: Tensor | None) -> None:
    """Refuse inputs or labels that a problem has no place for.

    Parameters
    ----------
    problem
        The problem that refuses.
    **given
        Inputs or labels by name, None where there are none.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{type(problem).__name__} takes no {name}: it is trained on what it was made of")


def gradient_of(loss: Callable[[Params], Tensor], params: Params) -> Params:
    """Gradient of each member's loss: one backward pass, since members do not share parameters.

    Parameters
    ----------
    loss
        Function of the parameters, one number a member, shape ``*E``.
    params
        Parameters by name, each of shape ``(*E, ...)``.

    Returns
    -------
    Params
        Gradient in the form of `params`.
    """
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    return dict(zip(leaves, torch.autograd.grad(loss(leaves).sum(), list(leaves.values())), strict=True))


def of_step(name: str, given: Tensor, step: int) -> Tensor:
    """What was given for one step of training, in the place of a draw.

    Parameters
    ----------
    name
        Of the argument, for the error.
    given
        What was given, one entry a step along the leading axis.
    step
        Number of the step, counted from 0.

    Returns
    -------
    Tensor
        The entry of this step.

    Raises
    ------
    ValueError
        If there are not as many.
    """
    if step >= len(given):
        raise ValueError(f"{name} holds the draws of {len(given)} steps, the leading axis of its shape "
                         f"{tuple(given.shape)}; step {step}, counted from 0, has none")
    return given[step]


def convert(problem: Any, kind: type) -> Any:
    """The same fields in another class of problem: a rival of it.

    Parameters
    ----------
    problem
        A problem that is a dataclass.
    kind
        Another dataclass with the same fields.

    Returns
    -------
    Any
        The rival, an instance of `kind`.
    """
    return kind(**{field.name: getattr(problem, field.name) for field in fields(problem)})


def check_fit(problem: Problem, rule: Rule) -> None:
    """Refuse a rule that cannot take this problem, or would compute something else on it than on the weights.

    Parameters
    ----------
    problem
        The problem to train on, wrapped or not.
    rule
        The optimizer.
    """
    whole = problem
    while isinstance(problem, WrappedProblem):
        problem = problem.problem
    if problem.coefficients and not rule.linear:
        raise ValueError(f"{type(rule).__name__} leaves the span of gradients, in which {type(problem).__name__} keeps "
                         "the weights; train the weights themselves")
    rule.check(whole)


def _without(problem: Problem, part: str) -> ValueError:
    return ValueError(f"{type(problem).__name__} has no {part}")
