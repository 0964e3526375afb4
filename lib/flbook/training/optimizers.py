"""Optimizers: each asks a problem for gradients, as often and wherever it likes, and returns new parameters.

A rule gets the problem, not a gradient, because some rules ask twice: sharpness-aware minimisation calls
``problem.gradient`` again at perturbed parameters, label-noise descent calls it with other labels, and both may ask
``problem.norm`` for lengths, one a member. Parameters are dictionaries of tensors of shape ``(*E, ...)``; every scalar
of a rule may be a tensor of shape ``*E``.

Rules whose step is a combination of gradients and parameters (``linear``) also run on the coefficients of
`flbook.dynamics.gram`, unchanged; the others leave the span of gradients, and `fit` refuses them there.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from flbook import rng
from flbook.domains import Checked, Count, FlipProbability, Fraction, Natural, NonNegative, Positive
from flbook.shapes import broadcasts, per_member
from flbook.training.orthogonalised import newton_schulz, polar_factor
from flbook.training.problem import Params, Problem, Rule, WrappedProblem, of_step

Scalar = float | Tensor
AHEAD = 16  # steps for which label noise is drawn at once


def _zeros(params: Params) -> Params:
    return {name: torch.zeros_like(p) for name, p in params.items()}


# With many parameters a rule is bound by arrays made afresh; a pass over one that is there costs a quarter of that.


def _plus(p: Tensor, size: Scalar, direction: Tensor) -> Tensor:
    """p + size * direction, the size one a member perhaps; one new array."""
    size = per_member(size, p)
    if isinstance(size, Tensor):
        return torch.addcmul(p, size.to(p), direction)
    return torch.add(p, direction, alpha=size)


def _moved(params: Params, size: Scalar, direction: Params) -> Params:
    """Parameters after a step of this size, one a member perhaps, down a direction."""
    return {name: _plus(p, -size, direction[name]) for name, p in params.items()}


def _remembered(beta: Scalar, memory: Params, direction: Params) -> Params:
    """Heavy-ball memory after a step in this direction."""
    return {name: _plus(direction[name], beta, v) for name, v in memory.items()}


def _blend(memory: Tensor, share: Scalar, new: Tensor) -> Tensor:
    """(1 - share) memory + share new; one new array."""
    share = per_member(share, memory)
    kept = memory * (1 - share)
    return kept.addcmul_(share.to(kept), new) if isinstance(share, Tensor) else kept.add_(new, alpha=share)


def _blend_square(memory: Tensor, share: Scalar, new: Tensor) -> Tensor:
    """(1 - share) memory + share new^2; one new array."""
    share = per_member(share, memory)
    kept = memory * (1 - share)
    if isinstance(share, Tensor):
        return kept.addcmul_(share.to(kept) * new, new)
    return kept.addcmul_(new, new, value=share)


def _divided(p: Tensor, size: Scalar, direction: Tensor, scale: Tensor) -> Tensor:
    """p - size * direction / scale, written over `scale`."""
    size = per_member(size, p)
    if isinstance(size, Tensor):
        return torch.div(direction, scale, out=scale).mul_(-size).add_(p)
    return torch.addcdiv(p, direction, scale, value=-size, out=scale)


class _Plain(Checked):
    """What most rules share: nothing to remember."""

    linear: ClassVar[bool] = True
    decays: ClassVar[bool] = False
    lr: Scalar  # of every rule but those made of others, which ask them for their `rate`

    def check(self, problem: Problem) -> None:
        """There is no problem that the rule could not take."""

    def start(self, params: Params) -> Any:
        """No memory."""
        return None

    def rate(self, state: Any) -> Scalar:
        """The step size of the next step."""
        return self.lr


@dataclass(frozen=True)
class GradientDescent(_Plain):
    r""":math:`w \leftarrow w - \eta \nabla L(w)`.

    Attributes
    ----------
    lr
        The step size :math:`\eta`, positive; one number, or one a member, shape ``(*E,)``.

    Raises
    ------
    ValueError
        If it is no positive number.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, GradientDescent(0.1), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    lr: Positive | Tensor

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """One step.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            None, since there is nothing to remember.

        Returns
        -------
        tuple
            Parameters after the step, and the state as it was.
        """
        return _moved(params, self.lr, problem.gradient(params)), state


@dataclass(frozen=True)
class Momentum(_Plain):
    r"""Heavy ball: :math:`v \leftarrow \beta v + \nabla L(w)`, :math:`w \leftarrow w - \eta v`.

    nesterov: step along :math:`\nabla L(w) + \beta v` instead, with the new v.

    averaged: :math:`v \leftarrow \beta v + (1 - \beta)\nabla L(w)`, so that in the long run a step has the length of
    one of gradient descent, whatever the memory.

    Source: Polyak (1964); Sutskever et al. (2013) for the second form; Jelassi and Li (2022) for the third.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> heavy, plain = (fit(problem, rule, 30).params for rule in (Momentum(0.1), GradientDescent(0.1)))
    >>> bool(problem.train_loss(heavy) < problem.train_loss(plain))
    True
    """

    lr: Positive | Tensor
    beta: Fraction | Tensor = 0.9
    nesterov: bool = False
    averaged: bool = False

    def start(self, params: Params) -> Params:
        """The velocity, zero at first.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        Params
            Zeros in the form of `params`.
        """
        return _zeros(params)

    def step(self, problem: Problem, params: Params, state: Params) -> tuple[Params, Params]:
        """One step.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Velocity v, in the form of `params`.

        Returns
        -------
        tuple of Params
            Parameters and velocity after the step.
        """
        grad = problem.gradient(params)
        if self.averaged:
            grad = {name: per_member(1 - self.beta, g) * g for name, g in grad.items()}
        state = _remembered(self.beta, state, grad)
        return _moved(params, self.lr, _remembered(self.beta, state, grad) if self.nesterov else state), state


@dataclass(frozen=True)
class BoundedDescent(_Plain):
    r"""Gradient descent whose step shrinks where a full one would overshoot.

    .. math:: w \leftarrow w - \eta_t \nabla L(w), \qquad
              \eta_t = \min\big(\eta,\ \kappa\,L(w)/\|\nabla L(w)\|^2\big)

    To first order a step lowers the loss by at most the share :math:`\kappa` of it. The path is that of gradient
    descent, at a pace of its own: large steps while a race is slow, small ones while something blows up.

    Source: the bound is Polyak's step size for a loss whose minimum is 0, Polyak (1987).
    """

    lr: Positive | Tensor
    share: Positive | Tensor = 0.3

    def rate(self, state: Any) -> Scalar:
        """Not known before the step.

        Parameters
        ----------
        state
            None, since there is nothing to remember.
        """
        raise ValueError("BoundedDescent finds its step size in the step, so its weights decay only with coupled=True")

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """One step; it asks the problem for its loss too.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            None, since there is nothing to remember.

        Returns
        -------
        tuple
            Parameters after the step, and the state as it was.
        """
        grad = problem.gradient(params)
        square = problem.norm(grad) ** 2
        bound = self.share * problem.train_loss(params) / square.clamp(min=torch.finfo(square.dtype).tiny)
        lr = torch.minimum(torch.as_tensor(self.lr, dtype=bound.dtype, device=bound.device), bound)
        return _moved(params, lr, grad), state


@dataclass(frozen=True)
class SharpnessAware(_Plain):
    r"""SAM: descend by the gradient at the worst point nearby.

    .. math:: w \leftarrow w - \eta\,\nabla L\Big(w + r\,\frac{\nabla L(w)}{\|\nabla L(w)\|}\Big)

    The norm is one a member, over all its parameters; both gradients are those of the step's batch. A gradient of zero
    stays where it is.

    Source: Foret et al. (2021), Section 3.

    Attributes
    ----------
    lr, radius
        Step size :math:`\eta` and radius r, a length in the space of the weights; one number each, or one a member,
        shape ``(*E,)``.

    Raises
    ------
    ValueError
        If lr is not positive or radius is negative.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, SharpnessAware(0.1, radius=0.05), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    lr: Positive | Tensor
    radius: NonNegative | Tensor

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """One step, two gradients.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            None, since there is nothing to remember.

        Returns
        -------
        tuple
            Parameters after the step, and the state as it was.
        """
        grad = problem.gradient(params)
        length = problem.norm(grad)
        reach = -self.radius / length.clamp(min=torch.finfo(length.dtype).tiny)
        return _moved(params, self.lr, problem.gradient(_moved(params, reach, grad))), state


@dataclass(frozen=True)
class LabelNoise(_Plain):
    r"""Label-noise gradient descent: every label is flipped with probability p, afresh for member, sample and step.

    .. math:: w \leftarrow w - \eta\,\nabla L(w; \epsilon_1\tilde y_1, \dots, \epsilon_n\tilde y_n), \qquad
              P(\epsilon_i = -1) = p

    Source: HaoChen et al. (2021); Huang et al. (2025).

    Attributes
    ----------
    lr, flip_prob
        Step size :math:`\eta` and probability p in [0, 1/2); one number each, or one a member, shape ``(*E,)``.
    seed, axis
        Of the flips. One number draws them for the whole ensemble; a tuple gives each member along `axis` a stream of
        its own, shared by the other axes, so that a cell's value does not change with the grid around it.
    noise
        Flips of one's own in place of drawn ones: :math:`\epsilon_i`, -1 or +1, shape ``(steps, *#E, n)``.

    Raises
    ------
    ValueError
        If a number is outside its range, there are not as many seeds as members along `axis`, or `noise` is not made
        of -1 and +1 or ends before training does.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, LabelNoise(0.1, flip_prob=0.1, seed=(0, 1)), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    lr: Positive | Tensor
    flip_prob: FlipProbability | Tensor
    seed: Natural | tuple[Natural, ...] = 0
    axis: Natural = 0
    noise: Tensor | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.noise is not None and not bool((self.noise.abs() == 1).all()):
            raise ValueError("noise must hold -1 where a label is flipped and +1 where it is not; got other numbers")

    def check(self, problem: Problem) -> None:
        """Refuse given flips of another number than there are samples.

        Parameters
        ----------
        problem
            The problem to train on.
        """
        if self.noise is not None:
            n, lead = problem.sample_indices()[0], self.noise.shape[1:-1]
            if self.noise.ndim < 2 or self.noise.shape[-1] != n or not broadcasts(lead, problem.ensemble):
                raise ValueError(f"noise must have the shape (steps, *E, {n}), E the ensemble axes, here "
                                 f"{tuple(problem.ensemble)}; got {tuple(self.noise.shape)}")

    def start(self, params: Params) -> tuple[int, None]:
        """The number of the next step, of which the flips are a function; none drawn yet.

        Parameters
        ----------
        params
            Parameters before training, on which no flip depends.

        Returns
        -------
        tuple
            ``(0, None)``.
        """
        return 0, None

    def step(self, problem: Problem, params: Params, state: tuple) -> tuple[Params, tuple]:
        """One step; what decides on flips is drawn, and brought to the device, for AHEAD steps at once.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Number of this step, and uniform numbers for it and the next ones, shape ``(steps, *E, n)``, or None.

        Returns
        -------
        tuple
            Parameters after the step, and the state of the next one.
        """
        taken, ahead = state
        n, places = problem.sample_indices()
        if self.noise is not None:
            sign = of_step("noise", self.noise, taken).to(problem.observed)[..., places]
            grad = problem.gradient(params, observed=sign * problem.observed)
            return _moved(params, self.lr, grad), (taken + 1, None)
        if ahead is None or not len(ahead):
            ahead = torch.stack([self._unit(problem.ensemble, n, taken + k) for k in range(AHEAD)]).to(problem.observed)
        unit = ahead[0][..., places]
        sign = 1 - 2 * (unit < per_member(self.flip_prob, unit)).to(unit)
        grad = problem.gradient(params, observed=sign * problem.observed)
        return _moved(params, self.lr, grad), (taken + 1, ahead[1:])

    def _unit(self, members: torch.Size, n: int, step: int) -> Tensor:
        """Uniform numbers, shape ``(*E, n)``: a label is flipped where one is below p."""
        def draw(seed: int, shape: tuple[int, ...]) -> Tensor:
            return torch.rand(shape, generator=rng.generator(seed, f"label noise {step}"), dtype=torch.float64)

        if not isinstance(self.seed, tuple):
            return draw(self.seed, (*members, n))
        if len(members) <= self.axis or members[self.axis] != len(self.seed):
            raise ValueError(f"seed must name one stream for each member along axis {self.axis} of the ensemble, "
                             f"shape {tuple(members)}; got {len(self.seed)}")
        each = torch.stack([draw(one, (n,)) for one in self.seed])
        return each.reshape(len(self.seed), *[1] * (len(members) - self.axis - 1), n).expand(*members, n)


@dataclass(frozen=True)
class LabelSmoothing(_Plain):
    r"""Gradient descent on smoothed labels: the mean of what label noise does in a step.

    .. math:: w \leftarrow w - \eta\,\big[(1 - p)\,\nabla L(w; \tilde y) + p\,\nabla L(w; -\tilde y)\big]

    Its loss has its minimum at the margin :math:`\log\frac{1-p}{p}`, and there the step is zero; that of `LabelNoise`
    is zero on average only.

    Source: Szegedy et al. (2016), Section 7, for two classes, where their :math:`\epsilon` is 2 p.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> smooth, plain = (fit(problem, rule, 200).params for rule in (LabelSmoothing(0.1, 0.2), GradientDescent(0.1)))
    >>> bool(problem.train_loss(smooth) > problem.train_loss(plain))  # it does not grow confident
    True
    """

    lr: Positive | Tensor
    flip_prob: FlipProbability | Tensor

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """One step, two gradients.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            None, since there is nothing to remember.

        Returns
        -------
        tuple
            Parameters after the step, and the state as it was.
        """
        right, wrong = problem.gradient(params), problem.gradient(params, observed=-problem.observed)
        mean = {name: _blend(g, self.flip_prob, wrong[name]) for name, g in right.items()}
        return _moved(params, self.lr, mean), state


class _Rescaled(_Plain):
    """A direction made of the gradient, then heavy ball: the memory is one of directions, not of gradients."""

    beta: Scalar

    def start(self, params: Params) -> Params:
        """The velocity, zero at first."""
        return _zeros(params)

    def direction(self, problem: Problem, grad: Params) -> Params:
        """Made of the gradient."""
        raise NotImplementedError

    def step(self, problem: Problem, params: Params, state: Params) -> tuple[Params, Params]:
        """One step."""
        state = _remembered(self.beta, state, self.direction(problem, problem.gradient(params)))
        return _moved(params, self.lr, state), state


@dataclass(frozen=True)
class SignDescent(_Rescaled):
    r""":math:`w \leftarrow w - \eta\,\mathrm{sign}(\nabla L(w))` in every coordinate, with sign(0) = 0.

    With a memory, :math:`v \leftarrow \beta v + \mathrm{sign}(\nabla L(w))` and :math:`w \leftarrow w - \eta v`: the
    memory is one of signs. (Signum takes the sign of the memory.)

    Source: Bernstein et al. (2018); it is Adam's first step, and Adam with both memories at 0. With a memory of signs,
    Kunstner et al. (2023).

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> rule, start = SignDescent(0.1), problem.start()
    >>> moved, _ = rule.step(problem, start, rule.start(start))
    >>> bool(((moved["w"] - start["w"]).abs() - 0.1).abs().max() < 1e-4)
    True
    """

    linear: ClassVar[bool] = False
    lr: Positive | Tensor
    beta: Fraction | Tensor = 0.0

    def direction(self, problem: Problem, grad: Params) -> Params:
        """Signs.

        Parameters
        ----------
        problem
            The problem of this step; signs need nothing of it.
        grad
            Gradient in the form of the parameters.

        Returns
        -------
        Params
            -1, 0 or +1 for each coordinate, in the same form.
        """
        return {name: g.sign() for name, g in grad.items()}


@dataclass(frozen=True)
class NormalisedDescent(_Rescaled):
    r""":math:`w \leftarrow w - \eta\,\nabla L(w) / \|\nabla L(w)\|`, one norm a member; a gradient of zero stays.

    With a memory, :math:`v \leftarrow \beta v + \nabla L(w) / \|\nabla L(w)\|` and :math:`w \leftarrow w - \eta v`.
    Linear all the same: the step is a combination of gradients.

    Source: Kunstner et al. (2023).

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> rule, start = NormalisedDescent(0.1), problem.start()
    >>> moved, _ = rule.step(problem, start, rule.start(start))
    >>> length = problem.norm({name: moved[name] - start[name] for name in start})
    >>> bool((length - 0.1).abs() < 1e-4)
    True
    """

    lr: Positive | Tensor
    beta: Fraction | Tensor = 0.0

    def direction(self, problem: Problem, grad: Params) -> Params:
        """A gradient of length 1.

        Parameters
        ----------
        problem
            The problem of this step, asked for the norm of the gradient.
        grad
            Gradient in the form of the parameters, each of shape ``(*E, ...)``.

        Returns
        -------
        Params
            Direction in the same form, of length 1 for each member, or 0 where the gradient is 0.
        """
        length = problem.norm(grad)
        shrink = 1 / length.clamp(min=torch.finfo(length.dtype).tiny)
        return {name: per_member(shrink, g) * g for name, g in grad.items()}


@dataclass(frozen=True)
class SpectralDescent(_Plain):
    r"""Singular values of the step are 1: :math:`w \leftarrow w - \eta\,UV^\top` for :math:`\nabla L(w) = USV^\top`.

    With a memory, :math:`v \leftarrow \beta v + \nabla L(w)`, and the step is the polar factor of v: unlike that of
    `SignDescent`, the memory is one of gradients. A parameter of more than two axes is a matrix of its first axis
    against the others, as a convolution's filters are; one of a single axis is divided by its length.

    Source: Carlson et al. (2015), stochastic spectral descent; Jordan et al. (2024): Muon takes a few steps of
    `newton_schulz` in place of the polar factor. ``torch.optim.Muon`` is this with ``steps=5``, in half precision.

    Attributes
    ----------
    lr, beta
        Step size :math:`\eta` and memory :math:`\beta` in [0, 1); one number each, or one a member, shape ``(*E,)``.
    steps
        Of Newton and Schulz; None for the polar factor itself.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, SpectralDescent(0.1), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    linear: ClassVar[bool] = False
    lr: Positive | Tensor
    beta: Fraction | Tensor = 0.0
    steps: Count | None = None

    def start(self, params: Params) -> Params:
        """The memory of gradients, zero at first.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        Params
            Zeros in the form of `params`.
        """
        return _zeros(params)

    def step(self, problem: Problem, params: Params, state: Params) -> tuple[Params, Params]:
        """One step.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Memory v, in the form of `params`.

        Returns
        -------
        tuple of Params
            Parameters and memory after the step.
        """
        lead = len(problem.ensemble)
        state = _remembered(self.beta, state, problem.gradient(params))
        direction = {name: self._orthogonalised(v, lead) for name, v in state.items()}
        return _moved(params, self.lr, direction), state

    def _orthogonalised(self, v: Tensor, lead: int) -> Tensor:
        """One parameter's direction: as a matrix, or divided by its length where a member has a single axis."""
        if v.ndim - lead < 2:
            column = v.reshape(*v.shape[:lead], -1, 1)
            length = torch.linalg.vector_norm(column, dim=-2, keepdim=True)
            return (column / length.clamp(min=torch.finfo(v.dtype).tiny)).reshape(v.shape)
        matrix = v.flatten(lead + 1)
        found = polar_factor(matrix) if self.steps is None else newton_schulz(matrix, self.steps)
        return found.reshape(v.shape)


@dataclass(frozen=True)
class Adam(_Plain):
    r"""Each coordinate by its own scale: :math:`w \leftarrow w - \eta_t\,\hat m / (\sqrt{\hat v} + \epsilon)`.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
              \hat m = \frac{m}{1 - \beta_1^t}, \quad \hat v = \frac{v}{1 - \beta_2^t}

    Source: Kingma and Ba (2015), Algorithm 1.

    Attributes
    ----------
    lr, betas, epsilon
        Step size :math:`\eta`, the two memories :math:`\beta_1, \beta_2` in [0, 1), and :math:`\epsilon`; one number
        each, or one a member, shape ``(*E,)``.
    horizon
        If given, the step size falls to zero along half a cosine, :math:`\eta_t = \frac\eta2(1 + \cos\pi t/h)`.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, Adam(0.01), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    linear: ClassVar[bool] = False
    lr: Positive | Tensor
    betas: tuple[Fraction | Tensor, Fraction | Tensor] = (0.9, 0.999)
    epsilon: NonNegative | Tensor = 1e-8
    horizon: Count | None = None

    def check(self, problem: Problem) -> None:
        """Refuse epsilon = 0 where a gradient is zero at the start: the step there is 0/0.

        Parameters
        ----------
        problem
            The problem to train on, asked for its gradient at the start if epsilon is 0.
        """
        if not bool((torch.as_tensor(self.epsilon) == 0).any()):
            return
        still = sum(int((g == 0).sum()) for g in problem.gradient(problem.start()).values())
        if still:
            raise ValueError(f"epsilon must be positive where gradients are 0, since Adam divides by their size; "
                             f"{still} of them are 0 at the start")

    def start(self, params: Params) -> tuple[int, Params, Params]:
        """No step taken, both averages zero.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        tuple
            ``(0, m, v)``, m and v zeros in the form of `params`.
        """
        return 0, _zeros(params), _zeros(params)

    def rate(self, state: tuple) -> Scalar:
        r"""The step size of the next step.

        Parameters
        ----------
        state
            Memory ``(t, m, v)``, of which t, the number of steps taken, matters.

        Returns
        -------
        float or Tensor
            :math:`\eta_t`, one number, or one a member, shape ``(*E,)``.
        """
        decay = 1.0 if self.horizon is None else (1 + math.cos(math.pi * min(1.0, state[0] / self.horizon))) / 2
        return decay * self.lr

    def step(self, problem: Problem, params: Params, state: tuple) -> tuple[Params, tuple]:
        """One step.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Memory ``(t, m, v)``: steps taken, averages of gradients and of their squares.

        Returns
        -------
        tuple
            Parameters and memory after the step.
        """
        (taken, first, second), (one, two), grad = state, self.betas, problem.gradient(params)
        lr, taken = self.rate(state), taken + 1
        first = {name: _blend(m, 1 - one, grad[name]) for name, m in first.items()}
        second = {name: _blend_square(v, 1 - two, grad[name]) for name, v in second.items()}
        root = (1 - two**taken) ** 0.5  # taken out of the scale, which has many numbers, into the size, which has one
        size, epsilon, moved = lr * root / (1 - one**taken), self.epsilon * root, {}
        for name, p in params.items():
            scale = second[name].sqrt().add_(per_member(epsilon, p))
            moved[name] = _divided(p, size, first[name], scale)
        return moved, (taken, first, second)


@dataclass(frozen=True)
class RMSProp(_Plain):
    r""":math:`v \leftarrow \alpha v + (1 - \alpha) g^2`, :math:`w \leftarrow w - \eta\,g / (\sqrt v + \epsilon)`.

    Source: Tieleman and Hinton (2012).

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> rule, start = RMSProp(0.1, alpha=0.75, epsilon=0.0), problem.start()
    >>> moved, _ = rule.step(problem, start, rule.start(start))
    >>> bool(((moved["w"] - start["w"]).abs() - 0.2).abs().max() < 1e-4)  # first a step of signs, twice as long
    True
    """

    linear: ClassVar[bool] = False
    lr: Positive | Tensor
    alpha: Fraction | Tensor = 0.99
    epsilon: NonNegative | Tensor = 1e-8

    def start(self, params: Params) -> Params:
        """The average of squares, zero at first.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        Params
            Zeros in the form of `params`.
        """
        return _zeros(params)

    def step(self, problem: Problem, params: Params, state: Params) -> tuple[Params, Params]:
        """One step.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Average v of squared gradients, in the form of `params`.

        Returns
        -------
        tuple of Params
            Parameters and average after the step.
        """
        grad = problem.gradient(params)
        state = {name: _blend_square(v, 1 - self.alpha, grad[name]) for name, v in state.items()}
        scale = {name: v.sqrt().add_(per_member(self.epsilon, v)) for name, v in state.items()}
        return {name: _divided(p, self.lr, grad[name], scale[name]) for name, p in params.items()}, state


@dataclass(frozen=True)
class WeightDecay(_Plain):
    r"""Another rule, with weights that decay.

    Decoupled, every step of size :math:`\eta_t` also shrinks the weights, :math:`w \leftarrow \dots - \eta_t\lambda w`;
    coupled, the rule sees the gradient of :math:`L(w) + \frac\lambda2\|w\|^2`. For gradient descent both are the same.
    Biases decay too. In coefficients the initial weights shrink by one multiplier, a parameter of its own.

    Source: Loshchilov and Hutter (2019), Algorithms 1 and 2; AdamW is ``WeightDecay(Adam(lr), decay)``.

    Attributes
    ----------
    rule
        The optimizer whose weights decay.
    decay
        :math:`\lambda`, not negative; one number, or one a member, shape ``(*E,)``.
    coupled
        Does the rule see the decay as part of the gradient?

    Raises
    ------
    ValueError
        If `rule` is no optimizer or `decay` negative.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01, seed=(0, 1)), sample.x, sample.observed)
    >>> params = fit(problem, WeightDecay(Adam(0.01), decay=0.1), 30).params
    >>> bool((problem.train_loss(params) < problem.train_loss(problem.start())).all())
    True
    """

    rule: Any
    decay: NonNegative | Tensor
    coupled: bool = False

    def __post_init__(self):
        if not isinstance(self.rule, Rule):
            raise ValueError(f"rule must be an optimizer; got {self.rule!r}")
        super().__post_init__()

    @property
    def decays(self) -> bool:
        """Do initial weights shrink by one multiplier? With a penalty that the rule rescales they do not.

        Returns
        -------
        bool
            True if the decay is decoupled, or the rule linear.
        """
        return self.linear or not self.coupled

    @property
    def linear(self) -> bool:
        """As the rule is.

        Returns
        -------
        bool
            Is its step a combination of gradients and parameters?
        """
        return self.rule.linear

    def check(self, problem: Problem) -> None:
        """What the rule refuses.

        Parameters
        ----------
        problem
            The problem to train on.
        """
        self.rule.check(problem)

    def start(self, params: Params) -> Any:
        """What the rule remembers.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        Any
            Memory of the rule.
        """
        return self.rule.start(params)

    def rate(self, state: Any) -> Scalar:
        r"""The step size of the rule.

        Parameters
        ----------
        state
            Memory of the rule.

        Returns
        -------
        float or Tensor
            :math:`\eta_t`, one number, or one a member, shape ``(*E,)``.
        """
        return self.rule.rate(state)

    def step(self, problem: Problem, params: Params, state: Any) -> tuple[Params, Any]:
        """One step.

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
            Parameters and memory after the step.
        """
        if self.coupled:
            return self.rule.step(_Penalised(problem, self.decay), params, state)
        shrink = self.decay * self.rule.rate(state)
        moved, state = self.rule.step(problem, params, state)
        return _moved(moved, shrink, params), state


@dataclass(frozen=True)
class Then(_Plain):
    r"""One rule for a number of steps, then another, which starts with a memory of its own.

    "SAM, then gradient descent" is ``Then(SharpnessAware(lr, radius), 2000, GradientDescent(lr))``.

    Attributes
    ----------
    first, steps, second
        The rules, and how many steps the first one takes.

    Raises
    ------
    ValueError
        If one of them is no optimizer, or `steps` no whole number of at least 0.

    Examples
    --------
    >>> from flbook import SignalNoise, Training, TwoLayerCNN, fit
    >>> sample = SignalNoise(n=20, d=100).draw(seed=0)
    >>> problem = Training(TwoLayerCNN(d=100, sigma_0=0.01), sample.x, sample.observed)
    >>> rule = Then(SharpnessAware(0.1, radius=0.05), 10, GradientDescent(0.1))
    >>> bool(problem.train_loss(fit(problem, rule, 30).params) < problem.train_loss(problem.start()))
    True
    """

    first: Any
    steps: Natural
    second: Any

    def __post_init__(self):
        super().__post_init__()
        for name, rule in (("first", self.first), ("second", self.second)):
            if not isinstance(rule, Rule):
                raise ValueError(f"{name} must be an optimizer; got {rule!r}")
        if self.first.decays != self.second.decays:
            raise ValueError("first and second must both let weights decay, or neither; a decay of 0 is one, too")

    @property
    def linear(self) -> bool:
        """If both rules are.

        Returns
        -------
        bool
            Are steps combinations of gradients and parameters from first to last?
        """
        return self.first.linear and self.second.linear

    @property
    def decays(self) -> bool:
        """As both rules do.

        Returns
        -------
        bool
            The same for `first` and `second`.
        """
        return self.first.decays

    def check(self, problem: Problem) -> None:
        """What one of the rules refuses.

        Parameters
        ----------
        problem
            The problem to train on.
        """
        self.first.check(problem)
        self.second.check(problem)

    def start(self, params: Params) -> tuple[int, Any]:
        """No step taken, and what the rule at work remembers.

        Parameters
        ----------
        params
            Parameters before training, each of shape ``(*E, ...)``.

        Returns
        -------
        tuple
            Steps taken, 0, and the memory of the rule at work.
        """
        return 0, (self.first if self.steps else self.second).start(params)

    def rate(self, state: tuple[int, Any]) -> Scalar:
        r"""That of the rule at work.

        Parameters
        ----------
        state
            Steps taken, and the memory of the rule at work.

        Returns
        -------
        float or Tensor
            :math:`\eta_t`, one number, or one a member, shape ``(*E,)``.
        """
        taken, memory = state
        return (self.first if taken < self.steps else self.second).rate(memory)

    def step(self, problem: Problem, params: Params, state: tuple[int, Any]) -> tuple[Params, tuple[int, Any]]:
        """One step of the rule at work.

        Parameters
        ----------
        problem
            The problem of this step.
        params
            Parameters before the step, each of shape ``(*E, ...)``.
        state
            Steps taken, and the memory of the rule at work.

        Returns
        -------
        tuple
            Parameters after the step, and the state of the next one.
        """
        taken, memory = state
        params, memory = (self.first if taken < self.steps else self.second).step(problem, params, memory)
        return params, (taken + 1, self.second.start(params) if taken + 1 == self.steps else memory)


@dataclass
class _Penalised(WrappedProblem):
    r"""A problem whose loss has :math:`\frac\lambda2\|w\|^2` added."""

    problem: Problem
    decay: Scalar

    def train_loss(self, params: Params, **change: Tensor) -> Tensor:
        """The sum."""
        return self.problem.train_loss(params, **change) + self.decay / 2 * self.problem.norm(params) ** 2

    def gradient(self, params: Params, **change: Tensor) -> Params:
        """The gradient of the sum."""
        grad = self.problem.gradient(params, **change)
        return {name: _plus(grad[name], self.decay, p) for name, p in params.items()}
