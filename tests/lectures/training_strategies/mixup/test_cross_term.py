"""The cross term against a network's own first step and growth, for several weights; and the tie of single samples."""

import math

import pytest
import torch

from flbook import fit
from flbook.lectures.training_strategies.mixup.cross_term import fastest, rates, weights
from flbook.lectures.training_strategies.mixup.mixed_pairs import MixedPairs
from flbook.lectures.training_strategies.mixup.squares import training, weighted
from flbook.lectures.training_strategies.mixup.tied import grown
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.training.optimizers import GradientDescent

PAIRS = [(0.6, 0.6), (0.6, 1.0), (1.0, 0.6), (0.75, 0.6), (1.0, 1.0)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_step_from_small_outputs_is_the_matrix_of_the_page(pair, share):
    data, m, lr = CommonAndRare(n=20, d=60, share=share), 3, 0.7
    problem = MixedPairs.of_samples(training(data, (0, 1), m=m, sigma_0=1e-6), *pair)
    before = problem.overlaps(problem.start())
    after = problem.overlaps(GradientDescent(lr).step(problem, problem.start(), None)[0])
    matrix = torch.from_numpy(rates(share, *pair))
    for own, sign, k in ((slice(0, m), 1, 0), (slice(m, None), 1, 1), (slice(0, m), -1, 1), (slice(m, None), -1, 0)):
        seen = before[:, own, k::2]  # common and rare feature of one label; the other label's shrink
        expected = seen + sign * lr / (2 * m) * seen @ matrix
        torch.testing.assert_close(after[:, own, k::2], expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("pair", PAIRS[:2])
def test_the_bounds_of_the_proposition(pair):
    own, cross = weights(*pair)
    for share in (0.005, 0.1, 0.3, 0.5):
        value, ratio = fastest(share, *pair)
        low = (1 - share) * (own + cross * (1 - share))
        assert low < value <= low + cross * share**2 + 1e-12
        assert ratio == pytest.approx(cross * share * (1 - share) / (value - own * share - cross * share**2))
        assert 0 < ratio <= 1 + 1e-12


def test_without_a_cross_term_the_features_do_not_meet():
    assert fastest(0.1, 1.0, 0.6) == (pytest.approx(0.9 * 0.6), 0.0)
    assert fastest(0.9, 1.0, 1.0) == (pytest.approx(0.9), math.inf)


def test_random_signs_take_the_cross_term_away_and_random_places_half_of_it():
    n, lr, m = 400, 1.0, 2

    def coupling(**change):
        data = CommonAndRare(n=n, d=450, share=0.5, noise_square=1e-6, **change)
        problem = MixedPairs.of_samples(training(data, 0, m=m, sigma_0=1e-6), 0.6)
        before = problem.overlaps(problem.start())
        after = problem.overlaps(GradientDescent(lr).step(problem, problem.start(), None)[0])
        moved = (after - before)[:m, [0, 2]] * 2 * m / lr
        return torch.linalg.solve(before[:m, [0, 2]], moved)[0, 1].item()

    whole = 0.24 * 0.25
    assert coupling() == pytest.approx(whole, rel=1e-3)
    assert coupling(places=True) == pytest.approx(whole / 2, rel=0.2)
    assert abs(coupling(signs=True)) < 0.1 * whole


@pytest.mark.parametrize("times", [1.0, 9.0])
def test_no_weighting_loosens_the_tie(times):
    data = CommonAndRare(n=20, d=4000, share=0.2, noise_square=8.0)
    plain = training(data, (0, 1, 2), sigma_0=0.001)
    g = plain.basis.b_b.clone()
    noise = g[:, 4:, 4:]
    noise.copy_(8.0 * torch.eye(20, dtype=g.dtype).expand_as(noise))  # exactly orthogonal
    object.__setattr__(plain, "basis", plain.basis._replace(b_b=g))
    problem = weighted(plain, data.rare(), times)
    lr = 0.2
    left, right = grown(problem, fit(problem, GradientDescent(lr), 1500).params, data.rare())
    assert (right > 0.3).all()
    h = 2 * lr * 8.0 / (10 * 20) * times
    assert (left <= (1 + h) * right).all() and (left > 0.95 * right).all()
    mixed = MixedPairs.of_samples(plain, 0.6)
    left, right = grown(mixed, fit(mixed, GradientDescent(lr), 1500).params, data.rare())
    assert (left > 1.5 * right).all()
