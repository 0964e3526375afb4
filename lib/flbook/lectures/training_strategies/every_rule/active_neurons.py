"""Noise neurons in training: how many answer to the noise of a sample of their own label, and what they weigh."""

import torch
import xarray as xr
from torch import Tensor

from flbook import measures
from flbook.lectures.training_strategies.every_rule.ground import Ground, GroundSample
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.optimizers import LabelNoise
from flbook.training.problem import Params, Rule


def active(problem: ByHand, params: Params, patch: int = 1) -> Tensor:
    """Share of pairs of a sample and a filter of its label that answer to the sample's noise patch; shape ``*E``."""
    z = torch.matmul(params["w"], problem.x[..., None, :, patch, :].mT)  # (*E, j, r, n)
    own = torch.stack([problem.observed > 0, problem.observed < 0], -2)[..., :, None, :].to(z)
    return ((z > 0) * own).sum((-3, -2, -1)) / own.sum((-3, -2, -1)) / z.shape[-2]


def squared_gradient(problem: ByHand, params: Params) -> Tensor:
    r""":math:`R = \frac1n\sum_i\|\nabla_w f(x_i)\|^2`, shape ``*E``."""
    x = problem.x
    z = torch.matmul(params["w"].flatten(-3, -2), x.flatten(-3, -2).mT).unflatten(-1, x.shape[-3:-1])  # (*E, k, n, P)
    slope = problem.model.activation.slope(z) * problem.a[:, None, None]
    products = torch.matmul(x, x.mT)  # of the patches of a sample, (*E, n, P, P)
    return torch.einsum("...knp,...knq,...npq->...n", slope, slope, products).mean(-1)


def late_loss(
    ground: Ground, sizes: tuple[float, ...], flip_prob: float, seed: tuple[int, ...], steps: int
) -> xr.DataArray:
    """Training loss under label noise, averaged over the second half of training; dimensions (lr, seed)."""
    problem = ground.problem(seed, ground.draw(seed)).spread(len(sizes))
    lr = torch.tensor(sizes)[:, None].expand(problem.ensemble)
    record = [Quantity("train_loss", problem.train_loss, (), "training loss", "nats")]
    at = range(steps // 2, steps + 1, 5)
    noisy = LabelNoise(lr, flip_prob, seed=seed, axis=1)
    return fit(problem, noisy, steps, record, ("lr", "seed"), at=at).history.train_loss.mean("step")


def course(ground: Ground, rule: Rule, steps: int, seed: tuple[int, ...], linear: bool = False) -> xr.Dataset:
    """Active noise neurons, R and test error over training; dimensions (step, seed)."""
    problem = ground.problem(seed, ground.draw(seed), linear)
    fresh: GroundSample = ground.draw_test(seed)
    record = [Quantity("active", lambda p: active(problem, p), (), "share of noise neurons active"),
              Quantity("square", lambda p: squared_gradient(problem, p), (), "squared gradient R of the outputs"),
              Quantity("train_loss", problem.train_loss, (), "training loss", "nats"),
              Quantity("test_error", lambda p: measures.test_error_on(problem, p, *fresh), (), "test error",
                       "fraction")]
    return fit(problem, rule, steps, record, ("seed",)).history
