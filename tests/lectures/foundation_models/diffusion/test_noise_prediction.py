"""Closed forms of the tied denoiser: the loss against Monte Carlo, first steps and end against a network."""

import math

import numpy as np
import pytest
import torch

from flbook import GradientDescent, fit
from flbook.dynamics.patches import Basis
from flbook.lectures.foundation_models.diffusion import noise_prediction as theory
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining, draw_basis
from flbook.lectures.foundation_models.diffusion.noise_prediction import noising
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser

ALPHA, BETA = noising(0.3)
D, M = 6, 3


def patches(power: int) -> tuple[TiedDenoiser, torch.Tensor, torch.Tensor]:
    model = TiedDenoiser(D, M, 0.5, power, dtype=torch.float64)
    x = torch.randn(4, D, generator=torch.Generator().manual_seed(0)).double()
    return model, x, torch.tensor([1.0, 0.5, 0.3, 0.2])


@pytest.mark.parametrize("power", [1, 2])
def test_the_expected_loss_is_the_mean_over_noise(power):
    model, x, share = patches(power)
    w = model.w.detach()
    exact = theory.expected_loss(w @ x.T, w @ w.T, share.double(), ALPHA, BETA, D, power)
    noise = torch.randn(100_000, 4, D, generator=torch.Generator().manual_seed(1)).double()
    error = (model(ALPHA * x + BETA * noise) - noise).detach().square().sum(-1) @ share.double()
    spread = error.std() / math.sqrt(len(error))
    assert abs(exact - error.mean()) < 4 * spread < 0.01 * exact
    for changed in (dict(alpha=ALPHA * 0.9), dict(beta=1 - BETA**2)):  # the slip of beta for its square among them
        wrong = dict(alpha=ALPHA, beta=BETA) | changed
        off = theory.expected_loss(w @ x.T, w @ w.T, share.double(), d=D, power=power, **wrong)
        assert abs(off - error.mean()) > 8 * spread


def test_numpy_and_torch_agree():
    model, x, share = patches(2)
    w = model.w.detach()
    one = theory.expected_loss(w @ x.T, w @ w.T, share.double(), ALPHA, BETA, D)
    parts = (part.numpy() for part in (w @ x.T, w @ w.T, share.double()))
    assert theory.expected_loss(*parts, ALPHA, BETA, D) == pytest.approx(float(one), rel=1e-12)


def test_noising_keeps_the_variance_and_refuses_no_time():
    alpha, beta = noising(1e-9)
    assert alpha == pytest.approx(1) and beta == pytest.approx(math.sqrt(2e-9), rel=1e-6)
    for t in (0, -0.5):
        with pytest.raises(ValueError, match="^t must be a number above 0"):
            noising(t)


def orthogonal(mu: float, square: float, n: int, m: int, t: float, sigma_0: float) -> DenoisingTraining:
    """Patches that are exactly orthogonal, and neurons whose overlaps with them are drawn."""
    drawn = draw_basis(n, m, 400, mu_norm=mu, sigma_xi=math.sqrt(square / 400), sigma_0=sigma_0)
    exact = torch.diag(torch.cat([torch.full((2,), mu**2), torch.full((n,), square)]).double())
    share = torch.tensor([1 / 2] * 2 + [1 / n] * n, dtype=torch.float64)
    return DenoisingTraining(Basis(exact, drawn.w_b, drawn.w_w), share, *noising(t), 400)


def test_first_increments():
    problem = orthogonal(2.0, 40.0, 6, 5, 0.3, 1e-6)
    lr, steps = 0.01, 20
    params = fit(problem, GradientDescent(lr), steps).params
    grown = (problem.responses(params) - problem.basis.w_b) / (lr * steps)
    square = problem.basis.b_b.diagonal().numpy()
    for neuron, length in enumerate(problem.basis.w_w.diagonal().tolist()):
        expected = theory.first_increments(problem.share.numpy(), square, length, ALPHA, BETA, 5)
        np.testing.assert_allclose(grown[neuron], expected, rtol=5e-2)


@pytest.mark.parametrize("mu, n_snr2, t, lr", [(2.0, 0.75, 0.3, 0.02), (5.0, 6.75, 0.1, 0.02)])
def test_training_ends_at_the_stationary_point_of_three_variables(mu, n_snr2, t, lr):
    n, m = 6, 5
    problem = orthogonal(mu, n * mu**2 / n_snr2, n, m, t, 0.02)
    params = fit(problem, GradientDescent(lr), 4000).params
    end, gram = theory.stationary_point(mu, n_snr2, m, *noising(t)), problem.neuron_gram(params)
    z = problem.responses(params)
    assert problem.norm(problem.gradient(params)) < 1e-8
    np.testing.assert_allclose(z[:, :2], end.signal, rtol=1e-5)
    np.testing.assert_allclose(z[:, 2:], end.noise, rtol=1e-5)
    expected = torch.full((m, m), end.between).fill_diagonal_(end.length)
    np.testing.assert_allclose(gram, expected, rtol=1e-4, atol=1e-5)
    assert float(problem.train_loss(params)) - 2 * 400 == pytest.approx(end.gain, rel=1e-6)
    span = theory.stationary_point(mu, n_snr2, m, *noising(t), span_only=True)
    assert (end.ratio - 1) * (span.ratio - 1) < 0 and end.gain < span.gain < 0


def test_the_reduced_loss_is_the_loss_there():
    s, q, own, mu, n_snr2, m, n = 0.7, 1.1, 0.4, 2.0, 3.0, 4, 6
    square = n * mu**2 / n_snr2
    data = 2 * s**2 / mu**2 + n * q**2 / square
    gram = torch.full((m, m), data - own / (m - 1)).fill_diagonal_(data + own).double()
    z = torch.cat([torch.full((m, 2), s), torch.full((m, n), q)], 1).double()
    share = torch.tensor([1 / 2] * 2 + [1 / n] * n, dtype=torch.float64)
    whole = theory.expected_loss(z, gram, share, ALPHA, BETA, 50)
    assert theory.reduced_loss(s, q, own, mu, n_snr2, m, ALPHA, BETA) == pytest.approx(float(whole) - 100, rel=1e-6)


def test_the_ratio_lies_between_one_and_half_n_snr2_and_hangs_on_one_strength():
    for n_snr2 in (0.2, 2.0, 8.0):
        for strength in (0.1, 3.0, 30.0):
            ratio = theory.stationary_point(strength, n_snr2, 20).ratio
            low, high = sorted((1.0, n_snr2 / 2))
            assert low - 1e-5 <= ratio <= high + 1e-5
            alpha, beta = noising(0.7)
            same = theory.stationary_point(strength * beta / alpha, n_snr2, 20, alpha, beta)
            assert same.ratio == pytest.approx(ratio, rel=1e-4)
    assert theory.stationary_point(0.01, 8.0, 20).ratio == pytest.approx(4.0, rel=0.01)
    assert theory.stationary_point(1e4, 8.0, 20).ratio == pytest.approx(1.0, rel=0.01)


def test_two_known_ratios_and_refusals():
    ratios = [theory.stationary_point(mu, mu**2 * 0.03, 20, *noising(0.2)).ratio for mu in (5.0, 15.0)]
    assert ratios == pytest.approx([0.779, 1.220], abs=0.0006)
    for wrong in (dict(mu=0.0), dict(n_snr2=-1.0), dict(m=0), dict(beta=0.0)):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
            theory.stationary_point(**(dict(mu=1.0, n_snr2=1.0, m=2) | wrong))
