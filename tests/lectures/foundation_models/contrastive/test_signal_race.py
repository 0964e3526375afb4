"""Closed forms of the race, each against training with exactly orthogonal noise, and against a wrong one."""

import math
from dataclasses import replace

import pytest
import torch

from flbook import GradientDescent, fit
from flbook.lectures.foundation_models.contrastive import downstream, signal_race
from flbook.lectures.foundation_models.contrastive.paired_training import ONE_MODALITY, TWO_MODALITIES, drawn_pairs
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.shared.info_nce import all_others
from flbook.models.activations import identity

N, D, LR, STEPS = 12, 600, 0.01, 15
DATA = TwoModalities(n=N, d=D, mu_norm=3.0, second_norm=6.0, sigma_eps=0.0, orthogonal=True)
LOSSES = {1: ONE_MODALITY, 2: TWO_MODALITIES}


def orthogonal(encoders, **options):
    """Training from a start near zero on noise patches of squared length D, exactly orthogonal to each other."""
    problem = drawn_pairs(DATA, 20, 1e-9, LOSSES[encoders], encoders, (0,))
    eye = D * torch.eye(N, dtype=torch.float64)
    xi_xi = eye if encoders == 2 else eye.repeat(2, 2)
    xi = problem.gram.w_xi if encoders == 2 else problem.gram.w_xi[..., :N].repeat(1, 1, 1, 2)
    return replace(problem, gram=problem.gram._replace(xi_xi=xi_xi.expand_as(problem.gram.xi_xi), w_xi=xi), **options)


def responses(problem, steps):
    """Responses to unit signals (V, m) and to noise (V, m, n)."""
    on_mu, on_xi = problem.preactivations(fit(problem, GradientDescent(LR), steps).params)
    return (on_mu / problem.gram.mu_mu.sqrt()[..., None])[0], on_xi[0, ..., :N]


@pytest.mark.parametrize("encoders, product", [(1, 9.0), (2, 18.0)])
def test_growth_of_the_signal(encoders, product):
    problem, rate = orthogonal(encoders), signal_race.signal_rate(product, LR, N // 2)
    (before, _), (after, _) = responses(problem, 0), responses(problem, STEPS)
    torch.testing.assert_close(after.sum(0), before.sum(0) * (1 + rate) ** STEPS, rtol=1e-6, atol=0)
    if encoders == 2:
        expected = (before[0] - before[1]) * (1 - rate) ** STEPS
        torch.testing.assert_close(after[0] - after[1], expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("encoders", [1, 2])
def test_growth_of_the_noise(encoders):
    problem, rate = orthogonal(encoders), signal_race.noise_rate(float(D), N, LR, N // 2)
    (_, before), (_, after) = responses(problem, 0), responses(problem, 1)
    assert bool((after.amax((0, -1)) <= before.amax((0, -1)) * (1 + rate) * (1 + 1e-7)).all())
    same = torch.arange(0, N, 2)  # one label
    sums = (one[..., same].sum(0) for one in (before, after))
    gaps_before, gaps_after = (one[:, :, None] - one[:, None] for one in sums)
    excited = (before[..., same] > 0).all(0)
    both = excited[:, :, None] & excited[:, None] & (gaps_before != 0)
    assert int(both.sum()) > 10
    torch.testing.assert_close(gaps_after[both], gaps_before[both] * (1 + rate), rtol=1e-6, atol=0)


def test_all_other_samples_as_negatives_halve_the_signals_rate():
    problem = orthogonal(2, negatives=all_others(N))
    (before, _), (after, _) = responses(problem, 0), responses(problem, 1)
    torch.testing.assert_close(after.sum(0), before.sum(0) * (1 + LR / 2 * 18.0 / 2), rtol=1e-6, atol=0)


def test_a_linear_encoders_signal_grows_four_times_as_fast_and_its_label_mode_twice():
    problem = orthogonal(1, activation=identity)
    rate, noise = signal_race.signal_rate(9.0, LR, N // 2), signal_race.noise_rate(float(D), N, LR, N // 2)
    (before, u), (after, v) = responses(problem, 0), responses(problem, 1)
    torch.testing.assert_close(after, before * (1 + 4 * rate), rtol=1e-6, atol=0)
    mode = problem.y.double()
    torch.testing.assert_close(v @ mode, (u @ mode) * (1 + 2 * noise), rtol=1e-6, atol=0)


@pytest.mark.parametrize("encoders", [1, 2])
def test_first_loss(encoders):
    problem = orthogonal(encoders)
    found = float(problem.train_loss(problem.start()))
    assert found == pytest.approx(signal_race.first_loss(N // 2, encoders), rel=1e-9)
    assert found != pytest.approx(encoders * math.log(N // 2), rel=1e-3)


def test_the_rates_are_equal_where_the_product_of_the_ratios_is_two():
    data = TwoModalities(n=N, d=D, mu_norm=3.0, second_norm=2 * D * 0.25 / (3.0 * N), sigma_xi=0.5)
    assert N * data.snr * data.second_snr == pytest.approx(2)
    signal = signal_race.signal_rate(data.mu_norm * data.second_norm, 0.3, 6)
    assert signal == pytest.approx(signal_race.noise_rate(0.25 * D, N, 0.3, 6))


def test_accuracies_in_closed_form():
    data = TwoModalities(n=100, d=2000)
    seen, fresh = data.draw(0), data.draw_test(20_000)
    pure = fresh.x[..., 0]  # neurons along the signal alone see the first coordinate
    embedded = torch.stack([pure.relu().sum(-1), (-pure).relu().sum(-1)], -1)
    right = downstream.accuracy(torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64), embedded[fresh.y > 0],
                                embedded[fresh.y < 0])
    assert float(right) == pytest.approx(signal_race.pure_signal_accuracy(2.0), abs=0.004)
    mean = torch.einsum("n,npd->pd", seen.y, seen.x)
    found = ((fresh.x * mean).sum((-2, -1)) * fresh.y > 0).double().mean()
    assert float(found) == pytest.approx(signal_race.averaging_accuracy(100, 2000, 5.0, 2.0), abs=0.004)
