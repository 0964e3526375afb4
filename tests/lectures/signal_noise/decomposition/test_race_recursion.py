"""The race in three numbers: its first step, its end, and networks on noise that is orthogonal."""

import numpy as np
import pytest
import torch

from flbook.dynamics.gram import GramTraining
from flbook.dynamics.inner_products import Gram
from flbook.lectures.signal_noise.decomposition.race_recursion import limit, race, share_after_one_step
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

EVERY = pytest.mark.parametrize(("a", "p"), [(0.5, 0.0), (4.0, 0.1), (10.0, 0.25)])


def orthogonal(a: float, n: int = 8, m: int = 4) -> GramTraining:
    """A network on orthogonal noise of one length: half of the filters see each sample, and nothing overlaps."""
    y = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(n // 2)
    observed = torch.cat([-y[:2], y[2:]])
    open_ = torch.ones(2 * m, n, dtype=torch.float64)
    open_[::2] = -1
    sees = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64).repeat(m // 2)
    zeros, eye = torch.zeros(n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)  # n is 2 m, too
    gram = Gram(mu_mu=torch.tensor(a / n, dtype=torch.float64), mu_xi=zeros, xi_xi=eye, w_mu=1e-9 * sees,
                w_xi=1e-9 * open_, w_w=1e-9 * eye, b=zeros)  # fmt: skip
    return GramTraining(gram, y, observed, scale=1 / m)


def test_three_numbers_are_the_network():
    """Two of eight labels wrong, one of either class; a step size of half the natural unit."""
    a, steps = 3.0, 40
    problem = orthogonal(a)
    params = fit(problem, GradientDescent(torch.tensor(0.5 * 8 * 4, dtype=torch.float64)), steps).params
    told = race(a, 0.25, lr=0.5, steps=steps)
    learned = problem.signal_learned(params)
    np.testing.assert_allclose(learned, np.full(learned.shape, told.gamma[-1]), rtol=1e-6)
    rho = problem.noise_memorised(params)
    np.testing.assert_allclose(rho[rho > 1e-3].mean(), told.rho[-1], rtol=1e-6)


@EVERY
def test_the_first_step(a, p):
    told = race(a, p, steps=1)
    np.testing.assert_allclose(told.gamma[1] / told.rho[1], (1 - 2 * p) * a / 2)


@EVERY
def test_it_ends_at_its_limit_under_small_steps(a, p):
    told = race(a, p, share=0.7, lr=0.2, steps=40_000)
    first = (1 - 2 * p) * a / 2
    assert (told.gamma[1:] / told.rho[1:] <= first * (1 + 1e-12)).all()
    slope = (told.gamma[-1] - told.gamma[20_000]) / (told.rho[-1] - told.rho[20_000])
    np.testing.assert_allclose(slope, limit(a, p, 0.7), rtol=5e-3)


def test_right_labels_keep_the_ratio_at_any_step_size_and_share():
    for share, lr in ((0.1, 0.1), (0.9, 5.0)):
        told = race(2.0, 0.0, share=share, lr=lr, steps=50)
        np.testing.assert_allclose(told.gamma[1:] / told.rho[1:], 1.0)


def test_unequal_shares_raise_the_ratio_and_many_filters_do_not():
    few, many = race(1.0, 0.0, filters=10, m=10).ratio, race(1.0, 0.0, filters=1000, m=1000).ratio
    assert 0.5 * 1.05 < few < 0.5 * 1.1 and 0.5 < many < 0.5 * 1.002


def test_an_angle_of_two_gaussian_numbers():
    rng = np.random.default_rng(0)
    start, step = 0.3 * rng.normal(size=400_000), 0.5 * np.sqrt(2 + 4.0) / 4 * rng.normal(size=400_000)
    sampled = 0.5 + np.mean((start < 0) & (start + step > 0))
    assert abs(share_after_one_step(0.3, 4.0, 0.0) - sampled) < 0.003
