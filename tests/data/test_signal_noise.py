"""The signal-noise data model: labels, moments, the exact law of fresh noise, and what it refuses."""

import math

import pytest
import torch

from flbook.data import SignalNoise
from flbook.data.signal_noise import covariance_factor, flipped_labels, noise_preactivations

SEEDS = tuple(range(400))


def test_a_sample_by_hand():
    data = SignalNoise(n=4, d=3, mu_norm=2.0, sigma_xi=0.5, flip_prob=0.25)
    sample = data.draw(7)
    assert sample.mu.tolist() == [2, 0, 0]
    assert sample.y.tolist() == [1, -1, 1, -1] and sample.observed.tolist() == [-1, -1, 1, -1]
    assert sample.x.shape == (4, 2, 3) and sample.x.dtype == torch.float64
    assert sample.x[:, 0].tolist() == [[2, 0, 0], [-2, 0, 0], [2, 0, 0], [-2, 0, 0]], "the signal has the true label"
    assert torch.equal(sample.x[:, 1], sample.xi)
    assert data.snr == pytest.approx(2 / (0.5 * math.sqrt(3)))


def test_the_same_noise_at_every_signal_strength():
    weak, strong = (SignalNoise(mu_norm=mu).draw((0, 1)) for mu in (0.1, 9.0))
    assert torch.equal(weak.xi, strong.xi) and torch.equal(weak.observed, strong.observed)


def test_fresh_samples_are_fresh():
    data = SignalNoise(n=50, d=30)
    train, test = data.draw(0), data.draw_test(50, 0)
    assert not torch.isclose(train.xi[:, None], test.xi).any()


def test_exact_flips_are_exact_and_balanced():
    y, observed = flipped_labels(40, 0.1, 0)
    assert y.sum() == 0 and (y != observed).sum() == 4
    assert y[y != observed].sum() == 0, "as many flips in one class as in the other"
    assert torch.equal(flipped_labels(40, 0.1, (5, 6))[1], observed.expand(2, 40))
    assert not (flipped_labels(40, 0.0, 0)[0] != flipped_labels(40, 0.0, 0)[1]).any()


def test_independent_flips_have_their_probability():
    y, observed = flipped_labels(100, 0.3, SEEDS, exact=False)
    assert set(y.unique().tolist()) == set(observed.unique().tolist()) == {-1.0, 1.0}
    trials = 100 * len(SEEDS)
    assert abs(y.mean().item()) < 4 / trials**0.5
    for label in (-1, 1):  # a flip does not look at the label
        assert abs((observed != y)[y == label].double().mean().item() - 0.3) < 4 * (0.21 * 2 / trials) ** 0.5
    counts = (observed != y).sum(-1).double()
    assert counts.var().item() == pytest.approx(100 * 0.3 * 0.7, rel=4 * (2 / len(SEEDS)) ** 0.5), "a binomial count"


def test_test_labels_are_drawn_and_flipped():
    fresh = SignalNoise(flip_prob=0.2, d=2).draw_test(20000, 3)
    assert abs(fresh.y.mean().item()) < 4 / 20000**0.5
    assert abs((fresh.observed != fresh.y).double().mean().item() - 0.2) < 4 * (0.16 / 20000) ** 0.5
    assert torch.equal(fresh.x[:, 0, 0].sign(), fresh.y)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_noise_has_the_stated_covariance(orthogonal):
    data = SignalNoise(n=50, d=6, sigma_xi=1.5, orthogonal=orthogonal)
    xi = data.draw(SEEDS).xi.flatten(0, 1)
    cov, mu = xi.T @ xi / len(xi), data.mu
    expected = 1.5**2 * (torch.eye(6) - (torch.outer(mu, mu) / (mu @ mu) if orthogonal else 0))
    # an entry's standard error is at most sigma^2 sqrt(2 / samples); 21 entries
    assert (cov - expected).abs().max() < 4.5 * 1.5**2 * (2 / len(xi)) ** 0.5
    assert (xi @ mu == 0).all() == orthogonal


@pytest.mark.parametrize("orthogonal", [False, True])
def test_fresh_noise_meets_given_weights_with_the_covariance_of_the_law(orthogonal):
    w = torch.randn(2, 5, 30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    w[1, 3] = w[1, 2]  # two equal filters: a singular covariance
    data = SignalNoise(n=2, d=30, mu_norm=3.0, sigma_xi=0.7, orthogonal=orthogonal)
    mu = data.mu
    p = torch.eye(30) - (torch.outer(mu, mu) / (mu @ mu) if orthogonal else 0)
    standard = torch.eye(5, dtype=torch.float64)  # the rows of what comes back are the factor of the covariance
    factor = data.test_law(torch.einsum("ekd,eld->ekl", w, w), w @ mu, mu @ mu, standard)
    expected = 0.7**2 * torch.einsum("ekd,dc,elc->ekl", w, p.double(), w)
    torch.testing.assert_close(factor.mT @ factor, expected, rtol=1e-8, atol=1e-8)


def test_small_filters_are_not_drowned_by_large_ones():
    w_w = torch.diag(torch.tensor([1e12, 1e-12, 1e-16], dtype=torch.float64))
    z = noise_preactivations(w_w, torch.zeros(3).double(), torch.tensor(1.0), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(z.diagonal(), w_w.diagonal().sqrt(), rtol=1e-9, atol=0)


def test_the_law_in_float32_of_filters_that_learned_the_signal_alone():
    # all of w but a part of 1e-4 along mu: the covariance of orthogonal noise is a difference of nearly equal numbers
    w = torch.randn(6, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 1e-4
    mu = SignalNoise(d=20, mu_norm=3.0).mu
    w = w + mu
    z = noise_preactivations(w @ w.T, w @ mu, mu @ mu, torch.eye(6).double(), orthogonal=True)
    assert z.square().sum(0).sqrt().max() < 1e-3
    assert z.square().sum(0).sqrt().max() > 1e-4


@pytest.mark.parametrize("lost", [float("inf"), float("nan")])
def test_a_member_that_diverged_leaves_the_others_their_law(lost):
    cov = torch.diag_embed(torch.tensor([[4.0, 9.0], [lost, 1.0], [16.0, 25.0]]).double())
    factor = covariance_factor(cov)
    torch.testing.assert_close(factor[[0, 2]].diagonal(dim1=-2, dim2=-1), torch.tensor([[2.0, 3], [4, 5]]).double())
    assert not factor[1].isfinite().all()


def test_noise_cannot_be_orthogonal_to_nothing():
    one = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"noise can be orthogonal to a signal only if \|mu\| > 0"):
        noise_preactivations(one, one[0], torch.tensor(0.0), one, orthogonal=True)
