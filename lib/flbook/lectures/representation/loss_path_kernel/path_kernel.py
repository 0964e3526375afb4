r"""The loss path kernel: which training sample lowered the loss of which other sample, summed along a training run.

Along the gradient flow :math:`\dot w = -\nabla L_S(w)`,

.. math:: K_T(z, z') = \int_0^T \nabla_w\ell(w_t, z)\cdot\nabla_w\ell(w_t, z')\, dt, \qquad
          \ell(w_T, z) = \ell(w_0, z) - \frac1n\sum_{i=1}^n K_T(z, z_i)

for every sample z, seen in training or not: its loss falls by what the training samples did for it, and nothing else.
The mean over the training set, :math:`L_S(w_0) - L_S(w_T) = \frac1{n^2}\sum_{ij} K_T(z_i, z_j)`, is the squared norm of
the function learned, in the space whose kernel is K.

Source: Chen et al. (2023), Definition 3 and Theorem 2; Chen et al. (2025).
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, vmap

from flbook.models.two_layer import TwoLayer
from flbook.shapes import per_member, signs
from flbook.training.network import Training
from flbook.training.problem import Params


class Probe(NamedTuple):
    """Samples whose losses are explained; the training samples themselves if there is no probe."""

    x: Float[Tensor, "*#E p d"]
    y: Float[Tensor, "*#E p"]
    within: bool = False  # the kernel among the probes, instead of between probes and training samples


class Point(NamedTuple):
    """A moment of the flow."""

    time: float
    params: Params
    kernel: Float[Tensor, "*E p n"] | Float[Tensor, "*E n"]  # K up to this time, or its diagonal


def loss_path(
    problem: Training,
    times: Sequence[float],
    probe: Probe | None = None,
    order: int = 4,
    diagonal: bool = False,
) -> Iterator[Point]:
    r"""Follow the gradient flow and its kernel through `times`, one Runge-Kutta step from each to the next.

    Weights and kernel are one differential equation, so the kernel is as exact as the weights. A two-layer network
    flows in the flow time of `TwoLayer.step`.

    times: where to stop, increasing from 0; the largest step must stay below 2.8 over the sharpness of the loss.
    order: 4 is the classical Runge-Kutta rule; 1 is gradient descent, for which the identities hold up to the step.
    diagonal: only what each training sample does for itself, K(z_i, z_i); its cost grows like n and not like n².
    """
    if diagonal and probe is not None:
        raise ValueError("the diagonal is that of the training samples; leave probe out, or ask for the whole kernel")
    if len(times) < 2 or times[0] != 0 or any(b <= a for a, b in zip(times, times[1:], strict=False)):
        raise ValueError(f"times must increase from 0; got {list(times[:4])}, {len(times)} of them")
    if order not in (1, 4):
        raise ValueError(f"order must be 1, gradient descent, or 4, Runge-Kutta; got {order}")
    params, kernel = problem.start(), None
    for k, time in enumerate(times):
        if k:
            h = time - times[k - 1]
            params, gain = _step(problem, params, h, order, probe, diagonal)
            kernel = kernel + gain
        else:
            kernel = torch.zeros_like(rates(problem, params, probe, diagonal)[1])
        yield Point(float(time), params, kernel)


def _step(
    problem: Training, params: Params, h: float, order: int, probe: Probe | None, diagonal: bool
) -> tuple[Params, Tensor]:
    """Parameters after a step of length h, and what the kernel gains in it."""
    stages = [rates(problem, params, probe, diagonal)]
    if order == 1:
        velocity, gram = stages[0]
        return _moved(params, h, velocity), h * gram
    for share in (0.5, 0.5, 1.0):
        stages.append(rates(problem, _moved(params, share * h, stages[-1][0]), probe, diagonal))
    weights = (h / 6, h / 3, h / 3, h / 6)
    for weight, (velocity, _) in zip(weights, stages, strict=True):
        params = _moved(params, weight, velocity)
    return params, sum(weight * gram for weight, (_, gram) in zip(weights, stages, strict=True))


def _moved(params: Params, h: float, velocity: Params) -> Params:
    return {name: p + h * velocity[name] for name, p in params.items()}


def rates(
    problem: Training, params: Params, probe: Probe | None = None, diagonal: bool = False
) -> tuple[Params, Float[Tensor, "*E p n"] | Float[Tensor, "*E n"]]:
    """How fast parameters and kernel change: minus the gradient, and the inner products of the samples' gradients.

    In closed form for a two-layer network; for any other by a backward pass of each sample, in the plain metric.
    """
    if isinstance(problem.model, TwoLayer) and type(problem) is Training:
        return _two_layer_rates(problem, params["w"], probe, diagonal)
    train = _loss_gradients(problem, params, problem.x, problem.observed)
    if diagonal:
        return _unflatten(-train.mean(-2), params), train.square().sum(-1)
    of = train if probe is None else _loss_gradients(problem, params, probe.x, probe.y)
    other = of if probe is not None and probe.within else train
    return _unflatten(-train.mean(-2), params), torch.einsum("...pk,...nk->...pn", of, other)


def _loss_gradients(problem: Training, params: Params, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of every sample's loss in all parameters, flattened: ``(*E, n, parameters)``."""
    axis, members = x.ndim - 1 - problem.sample_axes, len(problem.ensemble)

    def one(params: Params, x: Tensor, y: Tensor) -> Tensor:  # members share no parameter, so their sum mixes nothing
        return problem.loss(problem.predict(params, x.unsqueeze(axis)), y.unsqueeze(-1)).sum()

    found = vmap(grad(one), (None, axis, -1))(params, x, y.to(problem.x))
    return torch.cat([g.movedim(0, members).flatten(members + 1) for g in found.values()], -1)


def _unflatten(flat: Tensor, params: Params) -> Params:
    """A flat direction as parameters."""
    lead = flat.shape[:-1]
    sizes = [p[(0,) * len(lead)].numel() for p in params.values()]
    parts = zip(params.items(), flat.split(sizes, -1), strict=True)
    return {name: part.reshape(*lead, *p.shape[len(lead) :]) for (name, p), part in parts}


def _two_layer_rates(problem: Training, w: Tensor, probe: Probe | None, diagonal: bool) -> tuple[Params, Tensor]:
    """The same from pre-activations, in flow time."""
    model, x = problem.model, problem.x
    train = _preactivation_gradients(problem, w, x, problem.observed)
    gradient = torch.einsum("...nk,...nd->...kd", train, x) * signs(model.width, w)[:, None] / x.shape[-2]
    velocity = -gradient * per_member(model.step(1.0) * model.scale, gradient)
    if diagonal:
        return {"w": velocity}, train.square().mean(-1) * x.square().sum(-1)
    of, at = (train, x)
    if probe is not None:
        of, at = _preactivation_gradients(problem, w, probe.x, probe.y), probe.x.to(x)
    other, by = (of, at) if probe is not None and probe.within else (train, x)
    gram = torch.einsum("...pk,...nk->...pn", of, other) * torch.einsum("...pd,...nd->...pn", at, by)
    return {"w": velocity}, gram / model.width


def _preactivation_gradients(problem: Training, w: Tensor, x: Tensor, y: Tensor) -> Float[Tensor, "*E n k"]:
    """Derivative of each sample's loss in each neuron's pre-activation, up to the neuron's output weight."""
    model, x = problem.model, x.to(problem.x)
    z = torch.einsum("...nd,...kd->...nk", x, w)
    f = model.combine(model.activation(z))
    f = f - model.at_start(x) if model.start == "centred" else f
    return model.activation.slope(z) * problem.loss.slope(f, y.to(x))[..., None]


def trace(kernel: Float[Tensor, "*E n n"]) -> Float[Tensor, "*E"]:
    """The sum over the diagonal."""
    return kernel.diagonal(dim1=-2, dim2=-1).sum(-1)


def ball_bound(squared_norm: Float[Tensor, "*E"], diagonal: Float[Tensor, "*#E n"]) -> Float[Tensor, "*E"]:
    r"""Twice the Rademacher complexity of a kernel's ball: :math:`\frac2n \sqrt{B^2\, \mathrm{tr} K}`, by its diagonal.

    What the largest gap between test and training loss is of, up to the term of confidence, for a kernel chosen before
    the data were seen. Source: Bartlett and Mendelson (2002), Lemma 22.
    """
    return 2 / diagonal.shape[-1] * (squared_norm.clamp_min(0) * diagonal.sum(-1)).sqrt()


def confidence(n: int, share: float = 0.01) -> float:
    r"""What a Rademacher bound adds for a loss of range 1: :math:`3\sqrt{\log(2/\delta)/(2n)}`."""
    return 3 * math.sqrt(math.log(2 / share) / (2 * n))


def count_bound(n: int, parameters: int, bits: int = 32, share: float = 0.01) -> float:
    r"""The gap of any network that is stored in so many bits: :math:`\sqrt{(b p\log 2 + \log(1/\delta))/(2n)}`.

    A loss of range 1, Hoeffding's inequality, and a union over the :math:`2^{bp}` networks of p parameters.
    """
    return math.sqrt((bits * parameters * math.log(2) + math.log(1 / share)) / (2 * n))


def held_out(n: int, share: float = 0.01) -> float:
    r"""What Hoeffding's inequality adds to the loss on n samples not trained on: :math:`\sqrt{\log(1/\delta)/(2n)}`."""
    return math.sqrt(math.log(1 / share) / (2 * n))


def resampled_bound(
    kernel: Float[Tensor, "*E sets n n"], squared_norm: Float[Tensor, "*E sets"], losses: Float[Tensor, "*E sets n"]
) -> Float[Tensor, "*E"]:
    r"""Twice the smaller of the two complexities that training on other sets S' shows on the sample S.

    .. math:: U_1 = \frac Bn \Big(\max_{S'} \mathrm{tr} K_{S'} + \sum_{i\ne j} \tfrac12(\max_{S'} - \min_{S'}) K_{S',ij}
              \Big)^{1/2}, \qquad U_2 = \frac1n \max_{S', S''} \sum_i |\ell'_i - \ell''_i|

    kernel: among the samples of S, along the run on each S'; losses: of S at the end of each; squared_norm: the fall of
    each run's training loss, the largest of which is :math:`B^2`. Source: Chen et al. (2023) and their published code.
    """
    n = kernel.shape[-1]
    spread = (kernel.amax(-3) - kernel.amin(-3)) / 2
    spread = spread.sum((-2, -1)) - trace(spread)
    first = (squared_norm.amax(-1) * (trace(kernel).amax(-1) + spread)).clamp_min(0).sqrt() / n
    second = (losses[..., :, None, :] - losses[..., None, :, :]).abs().sum(-1).amax((-2, -1)) / n
    return 2 * torch.minimum(first, second)
