r"""How many tasks a prompt can tell apart: its information decides when a pool's Bayes rule is ridge regression.

Tasks :math:`\beta \sim N(0, I)`, labels :math:`y = X\beta + \varepsilon` with noise of variance :math:`\sigma_y^2`.
With the likelihood :math:`p(\beta) = \exp(-|y - X\beta|^2/2\sigma_y^2)` and its mean over all tasks, :math:`Z = E\,p`,
the *information density* of a prompt about its own task is :math:`\iota = \log(p(\beta)/Z)`.
"""

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook.data.prompts import LinearPrompts, TaskPool
from flbook.domains import Positive, require
from flbook.estimators import Ridge
from flbook.runs import labelled
from flbook.shapes import Context


def information_density(context: Context, task: Float[Tensor, "*E d"], noise: float) -> Float[Tensor, "*E"]:
    r"""What a prompt says about its own task, in nats.

    .. math:: \iota = \tfrac12\log\det(I + A) + \tfrac12\Big(\frac{|y|^2}{\sigma_y^2} - b^\top(I + A)^{-1}b\Big)
              - \frac{|y - X\beta|^2}{2\sigma_y^2}, \qquad A = \frac{X^\top X}{\sigma_y^2}, \quad
              b = \frac{X^\top y}{\sigma_y^2}

    Its mean over prompts and tasks is `mean_information`. Raises ValueError if the noise is no number above 0.
    """
    require("noise", noise, Positive)
    x, y = context
    a, b = x.mT @ x / noise**2, (x.mT @ y[..., None]) / noise**2
    shifted = a + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    residual = y - (x @ task[..., None])[..., 0]
    explained = (b * torch.linalg.solve(shifted, b)).sum((-2, -1))
    misfit = (y.square().sum(-1) - residual.square().sum(-1)) / noise**2
    return (torch.linalg.slogdet(shifted).logabsdet + misfit - explained) / 2


def mean_information(x: Float[Tensor, "*E n d"], noise: float) -> Float[Tensor, "*E"]:
    r"""The mean of `information_density` over tasks and labels at given inputs, :math:`\frac12\log\det(I + A)`."""
    require("noise", noise, Positive)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return torch.linalg.slogdet(eye + x.mT @ x / noise**2).logabsdet / 2


def recalled(density: Float[Tensor, "*E"], size: float) -> Float[Tensor, "*E"]:
    r"""The weight of a prompt's own task in a pool of M, if all other tasks have their mean weight.

    .. math:: w = \frac1{1 + (M - 1)e^{-\iota}}

    The expected weight, over pools that hold this task, is at least this (Jensen's inequality). Raises ValueError if M
    is below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, the tasks of a pool; got {size}")
    return 1 / (1 + (size - 1) * torch.exp(-density))


def own_weight(d: int, n: int, noise: float, sizes: tuple[int, ...], seed: int, prompts: int = 200) -> Tensor:
    r"""The weight that Bayes' rule gives to a prompt's own task, in pools of several sizes; shape (sizes, prompts).

    All pools of one prompt hold its own task, and of the others the larger have those of the smaller.
    """
    drawn = LinearPrompts(n=n, d=d, noise=noise).draw(prompts, seed)
    (x, y), others = drawn.context, TaskPool(max(sizes), seed).tasks(d)
    gram, moment = x.mT @ x, (x.mT @ y[..., None])[..., 0]

    def exponent(fit: Tensor, size: Tensor) -> Tensor:  # of p, without what all tasks have in common
        return (fit - size / 2) / noise**2

    squares = torch.einsum("md,me->mde", others, others).flatten(-2)
    rivals = exponent(moment @ others.T, gram.flatten(-2) @ squares.T)  # (prompts, tasks)
    task = drawn.task
    own = exponent((moment * task).sum(-1), torch.einsum("bd,bde,be->b", task, gram, task))
    mass = torch.logcumsumexp(rivals, -1)[:, [size - 2 for size in sizes]]  # of M - 1 others
    return torch.sigmoid(own[:, None] - mass).T


def growing_pools(d: int, n: int, noise: float, sizes: tuple[int, ...], seed: int = 0,
                  prompts: int = 240) -> xr.Dataset:
    r"""What the pool's Bayes rule makes of pools that hold a prompt's own task, and of pools of other tasks alone.

    Over size, means over prompts: squared errors over d, :math:`|\hat\beta - \beta|^2/d`, of the rule with the own task
    in the pool (`own`) and without it (`fresh`), the weight of the own task (`weight`) and its bound (`bound`, see
    `recalled`); without an axis the error of ridge regression (`ridge`) and the `information` in a prompt. Each prompt
    has pools of its own, of which the larger hold the smaller.
    """
    drawn = LinearPrompts(n=n, d=d, noise=noise).draw(prompts, seed)
    (x, y), task = drawn.context, drawn.task
    others = TaskPool(prompts * max(sizes), seed).tasks(d).reshape(prompts, -1, d)

    def exponents(tasks: Tensor) -> Tensor:
        misfit = y[:, None] - torch.einsum("bmd,bnd->bmn", tasks, x)
        return -misfit.square().sum(-1) / (2 * noise**2)

    rivals, own = exponents(others), exponents(task[:, None])
    top = torch.maximum(rivals.amax(1, keepdim=True), own)
    p, p_own = torch.exp(rivals - top), torch.exp(own - top)
    start = torch.zeros_like(p_own)
    mass = torch.cat([start, p.cumsum(1)], 1)[..., None]  # of the first 0, 1, 2, ... other tasks
    moment = torch.cat([start[..., None] * task[:, None], (p[..., None] * others).cumsum(1)], 1)
    last, p_own = torch.tensor(sizes), p_own[..., None]
    held = mass[:, last - 1] + p_own
    estimates = {"own": (moment[:, last - 1] + p_own * task[:, None]) / held, "fresh": moment[:, last] / mass[:, last]}
    columns = {name: (guess - task[:, None]).square().mean((0, 2)) for name, guess in estimates.items()}
    density = information_density(drawn.context, task, noise)
    columns["weight"] = (p_own / held).mean((0, 2))
    columns["bound"] = torch.stack([recalled(density, size).mean() for size in sizes])
    axes = torch.eye(d, dtype=x.dtype).expand(prompts, d, d)
    found = labelled({name: (("size",), column.numpy(), name) for name, column in columns.items()},
                     {"size": ("size", list(sizes), "tasks in the pool")})
    return found.assign(ridge=float((Ridge(noise**2)(drawn.context, axes) - task).square().mean()),
                        information=float(mean_information(x, noise).mean()))


LAWS = ((2, 2, 0.5), (2, 8, 0.5), (2, 32, 0.5), (4, 2, 0.5), (4, 4, 0.5), (4, 8, 0.5), (4, 16, 0.5), (8, 4, 0.5),
        (8, 8, 1.0))  # fmt: skip
SIZES = tuple(2**k for k in range(1, 14))


def half_weight(laws: tuple[tuple[int, int, float], ...] = LAWS, seed: tuple[int, ...] = tuple(range(10)),
                sizes: tuple[int, ...] = SIZES, prompts: int = 100) -> xr.Dataset:
    r"""The pool in which prompts give half of the weight to their own task, and the information in the prompts.

    `log_size` over (law, seed) is :math:`\log M` where the mean of `own_weight` passes one half, interpolated in
    :math:`\log M`; `information` over law is the mean of `mean_information`, from 4000 other prompts. Laws are
    (d, n, noise).
    """
    scale, places = np.log(sizes), np.empty((len(laws), len(seed)))
    for row, law in zip(places, laws, strict=True):
        for k, one in enumerate(seed):
            weight = own_weight(*law, sizes, one, prompts).mean(1).numpy()
            row[k] = np.interp(-0.5, -weight, scale) if weight[-1] < 0.5 else np.nan
    inputs = [LinearPrompts(n=n, d=d).draw(4000, seed=0, step=1).context.x for d, n, _ in laws]
    information = [float(mean_information(x, noise).mean()) for x, (*_, noise) in zip(inputs, laws, strict=True)]
    found = labelled({"log_size": (("law", "seed"), places, "log of the pool at half of the weight"),
                      "information": (("law",), np.array(information), "information in the prompt", "nats")},
                     {"law": ("law", list(range(len(laws))), "law"), "seed": ("seed", list(seed), "seed")})
    return found.assign_coords(d=("law", [law[0] for law in laws]))
