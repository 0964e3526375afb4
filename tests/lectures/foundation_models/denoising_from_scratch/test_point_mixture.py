"""The Bayes denoiser of a mixture: against integration, against autograd's score, and where it must memorise."""

import math

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models.denoising_from_scratch.gaussian_denoisers import GaussianDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import PointMixture, noise_of, two_mode_loss

MODES = PointMixture.two_modes()
SCHEDULE = NoiseSchedule()


@pytest.mark.parametrize("kept", [0.99, 0.5, 0.05])
def test_the_posterior_mean_against_a_sum_over_a_grid(kept):
    grid = torch.linspace(-4, 4, 4001, dtype=torch.float64)  # of the first coordinate; the second is one Gaussian
    prior = sum((-(grid - c) ** 2 / (2 * 0.09)).exp() for c in (-2, 2))
    for first in (-1.0, 0.1, 1.7):
        weight = prior * (-(first - kept**0.5 * grid) ** 2 / (2 * (1 - kept))).exp()
        x = torch.tensor([[first, 0.8]], dtype=torch.float64)
        found = MODES.denoise(x, kept)[0]
        assert float(found[0]) == pytest.approx(float((weight * grid).sum() / weight.sum()), abs=1e-6)
        assert float(found[1]) == pytest.approx(kept**0.5 * 0.09 / (kept * 0.09 + 1 - kept) * 0.8)


@pytest.mark.parametrize("kept", [0.99, 0.3])
def test_the_noise_is_minus_the_score(kept):
    x = rng.normal((20, 2), 0, "places").requires_grad_()
    v = kept * 0.09 + 1 - kept
    density = torch.logsumexp(-(x[:, None] - kept**0.5 * MODES.centres).square().sum(-1) / (2 * v), -1)
    score = torch.autograd.grad(density.sum(), x)[0]
    torch.testing.assert_close(MODES.noise(x.detach(), kept), -math.sqrt(1 - kept) * score)


@pytest.mark.parametrize("t", [5, 100, 260, 600])
def test_the_bayes_loss_against_draws(t):
    kept = SCHEDULE.kept(t)
    x_0, noise = MODES.draw(200_000, 0), rng.normal((200_000, 2), 0, "noise")
    x = math.sqrt(kept) * x_0 + math.sqrt(1 - kept) * noise
    errors = (MODES.noise(x, kept) - noise).square().mean(-1)
    assert float(errors.mean()) == pytest.approx(float(two_mode_loss(kept)), abs=5 * float(errors.std()) / 200_000**0.5)
    linear = sum(kept * c / (kept * c + 1 - kept) for c in (4.09, 0.09)) / 2  # the best linear denoiser
    assert two_mode_loss(kept) < linear and float(errors.mean()) < linear


def test_one_gaussian_has_the_textbook_loss():
    kept = np.array([0.9, 0.1])
    np.testing.assert_allclose(two_mode_loss(kept, apart=0.0, width=2.0), kept * 4 / (kept * 4 + 1 - kept))


def test_no_other_denoiser_does_better_by_exactly_its_distance():
    """The excess of a denoiser is its mean squared distance to the Bayes denoiser."""
    kept = 0.7
    x_0, noise = MODES.draw(400_000, 1), rng.normal((400_000, 2), 1, "noise")
    x = math.sqrt(kept) * x_0 + math.sqrt(1 - kept) * noise
    other = MODES.noise(x, kept) + 0.3 * x.sin()
    excess = (other - noise).square().mean() - (MODES.noise(x, kept) - noise).square().mean()
    assert float(excess) == pytest.approx(float((0.3 * x.sin()).square().mean()), rel=0.03)


def test_of_width_zero_it_gives_back_the_training_set_as_the_noise_goes():
    x_0 = rng.normal((30, 6), 0, "training set")
    memory, noise = PointMixture(x_0), rng.normal((30, 6), 0, "noise")
    for kept, most in ((0.9999, 1e-12), (0.99, 1e-6)):
        noisy = kept**0.5 * x_0 + (1 - kept) ** 0.5 * noise
        assert float((memory.denoise(noisy, kept) - x_0).abs().max()) < most
        assert float((memory.noise(noisy, kept) - noise).abs().max()) < most / (1 - kept) ** 0.5
    far = rng.normal((30, 6), 1, "new points")
    noisy = 0.9999**0.5 * far + 0.01 * noise
    nearest = x_0[torch.cdist(noisy, 0.9999**0.5 * x_0).argmin(-1)]
    torch.testing.assert_close(memory.denoise(noisy, 0.9999), nearest)
    smooth = PointMixture(x_0, 0.5).denoise(noisy, 0.9999)
    assert float((smooth - far).norm()) < 0.2 * float((nearest - far).norm())


def test_gaussians_of_one_class_and_of_several():
    points = rng.normal((500, 3), 0, "points") @ torch.diag(torch.tensor([2.0, 1.0, 0.2], dtype=torch.float64))
    kept, x = 0.6, rng.normal((7, 3), 0, "places")
    wiener = GaussianDenoiser.fitted(points)
    covariance, mean = torch.cov(points.T, correction=0), points.mean(0)
    gain = kept**0.5 * covariance @ torch.linalg.inv(kept * covariance + (1 - kept) * torch.eye(3))
    torch.testing.assert_close(wiener.denoise(x, kept), mean + (x - kept**0.5 * mean) @ gain.T)
    group = torch.arange(500) % 2  # equal variances: a mixture of points with a width
    two = GaussianDenoiser(torch.tensor([0.5, 0.5]), MODES.centres, 0.09 * torch.eye(2).double().expand(2, 2, 2))
    torch.testing.assert_close(two.noise(x[:, :2], kept), MODES.noise(x[:, :2], kept))
    assert GaussianDenoiser.fitted(points, group, ridge=0.1).covariance.shape == (2, 3, 3)


def test_noise_of_undoes_the_forward_process():
    x_0, noise = rng.normal((5, 2), 0, "x"), rng.normal((5, 2), 0, "noise")
    torch.testing.assert_close(noise_of(0.6**0.5 * x_0 + 0.4**0.5 * noise, x_0, 0.6), noise)


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="^width must be a number of at least 0"):
        PointMixture(MODES.centres, -1.0)
    with pytest.raises(ValueError, match="^centres must have the shape"):
        PointMixture(torch.zeros(3))
    with pytest.raises(ValueError, match="^batch must be a whole number"):
        MODES.draw(0, 0)


@pytest.mark.parametrize("kept", [0.9, 0.7, 0.5])
def test_a_training_point_is_recognised_as_often_as_the_bound_says(kept):
    """Part 2 of the page's proposition on memorising: the weight of the own point, and how often it is large."""
    x_0 = 1.5 * rng.normal((40, 30), 0, "training set")
    r = torch.cdist(x_0, x_0).fill_diagonal_(math.inf).amin(-1)
    square = r.square() * kept / (1 - kept)
    bound, allowed = 1 - 40 * (-square / 4).exp(), 40 * (-square / 32).exp()
    held = torch.zeros(40, dtype=torch.float64)
    for draw in range(200):
        noisy = kept**0.5 * x_0 + (1 - kept) ** 0.5 * rng.normal((40, 30), draw, "noise")
        weights = torch.softmax(-torch.cdist(noisy, kept**0.5 * x_0).square() / (2 * (1 - kept)), -1)
        held += weights.diagonal() >= bound - 1e-6  # of rounding
    assert bool((1 - held / 200 <= allowed + 1e-12).all())


def test_the_border_of_recognition_is_where_the_exercise_puts_it():
    """Points at one distance r from each other: with kappa² above 4 log n the own weight is near 1, below it near 0."""
    n = 2000
    for kappa_square, low, high in ((8 * math.log(n), 0.9, 1.0), (1.5 * math.log(n), 0.0, 0.2)):
        noise = rng.normal((200, n), 0, "noise")
        logs = math.sqrt(kappa_square / 2) * noise  # of every point's likelihood, up to what they share
        logs[:, 0] += kappa_square / 2  # the own point
        assert low <= float(torch.softmax(logs, -1)[:, 0].mean()) <= high
