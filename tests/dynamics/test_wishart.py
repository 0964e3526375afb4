"""Drawn Gram matrices: the law of those of drawn vectors, at a cost that does not depend on d."""

import math
import time
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from flbook import measures, rng
from flbook.data import SignalNoise
from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import Gram, GramTraining, draw_gram
from flbook.dynamics.wishart import bartlett, draw_training
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent

N, K, D, SIGMA_XI, SIGMA_0 = 4, 4, 12, 0.5, 0.3
SEEDS = tuple(range(3000))
ORTHOGONAL = pytest.mark.parametrize("orthogonal", [False, True], ids=["noise along mu", "orthogonal noise"])
SE = len(SEEDS) ** -0.5


@cache
def drawn(orthogonal):
    return draw_gram(N, K, D, sigma_0=SIGMA_0, sigma_xi=SIGMA_XI, orthogonal=orthogonal, seed=SEEDS)


@cache
def given(orthogonal):
    sample = SignalNoise(n=N, d=D, mu_norm=1.0, sigma_xi=SIGMA_XI, orthogonal=orthogonal).draw(SEEDS)
    return Gram.of(sample, SIGMA_0 * rng.normal((K, D), SEEDS, "weights"))


def statistics(gram, orthogonal):
    """Numbers of each seed that a wrong law would show: entries, joint functions of all, and the end of a training."""
    y, observed = flipped_labels(N, 0.25, 0)
    law = SignalNoise(sigma_xi=SIGMA_XI, orthogonal=orthogonal).test_law
    problem = GramTraining(gram, y, observed, 2 / K, law=law)
    params = fit(problem, GradientDescent(1.0), 30).params
    found = {
        "|xi_1|^2": gram.xi_xi[:, 0, 0], "|xi_n|^2": gram.xi_xi[:, -1, -1], "<xi_1, xi_n>": gram.xi_xi[:, 0, -1],
        "largest of xi xi": torch.linalg.eigvalsh(gram.xi_xi)[:, -1],
        "smallest of xi xi": torch.linalg.eigvalsh(gram.xi_xi)[:, 0],
        "|w_1|^2": gram.w_w[:, 0, 0], "|w_k|^2": gram.w_w[:, -1, -1], "<w_1, w_2>": gram.w_w[:, 0, 1],
        "<w_1, xi_1>": gram.w_xi[:, 0, 0], "<w_k, xi_n>": gram.w_xi[:, -1, -1], "<w_1, mu>": gram.w_mu[:, 0],
        "<w_1, mu><xi_1, mu><w_1, xi_1>": gram.w_mu[:, 0] * gram.mu_xi[:, 0] * gram.w_xi[:, 0, 0],
        "<xi_1, xi_2><xi_2, xi_3><xi_3, xi_1>": gram.xi_xi[:, 0, 1] * gram.xi_xi[:, 1, 2] * gram.xi_xi[:, 2, 0],
        "gamma": problem.signal_learned(params).flatten(1).amax(-1),
        "rho": problem.noise_memorised(params).flatten(1).amax(-1),
        "test error": measures.test_error(problem, params, 256), "training loss": problem.train_loss(params),
    }
    return found if orthogonal else found | {"<xi_1, mu>": gram.mu_xi[:, 0]}


@ORTHOGONAL
def test_same_distribution_as_from_vectors(orthogonal):
    here, there = statistics(drawn(orthogonal), orthogonal), statistics(given(orthogonal), orthogonal)
    p = {name: stats.ks_2samp(here[name].numpy(), there[name].numpy()).pvalue for name in here}
    worst = min(p, key=p.get)
    assert p[worst] > 1e-3 / len(p), (worst, p[worst])


@ORTHOGONAL
def test_moments_are_those_of_a_wishart_matrix(orthogonal):
    gram, d = drawn(orthogonal), D - orthogonal
    size = torch.tensor([SIGMA_XI] * N + [SIGMA_0] * K, dtype=torch.float64)
    whole = torch.cat([torch.cat([gram.xi_xi, gram.w_xi.mT], -1), torch.cat([gram.w_xi, gram.w_w], -1)], -2)
    whole = whole / (size[:, None] * size)
    freedom = torch.tensor([d] * N + [D] * K, dtype=torch.float64)
    shared = torch.minimum(freedom[:, None], freedom)  # dimensions that two vectors have in common
    mean, variance = torch.diag(freedom), shared * (1 + torch.eye(N + K))
    # 36 entries each: five standard errors
    assert ((whole.mean(0) - mean).abs() < 5 * SE * variance.sqrt()).all()
    kurtosis = 3 + torch.where(torch.eye(N + K, dtype=bool), 12 / freedom, 6 / shared)
    assert ((whole.var(0) / variance - 1).abs() < 5 * SE * (kurtosis - 1).sqrt()).all()
    along = torch.cat([gram.mu_xi, gram.w_mu], -1) / size
    expected = torch.tensor([1.0 - orthogonal] * N + [1.0] * K)
    assert (along.mean(0).abs() < 5 * SE).all() and ((along.var(0) - expected).abs() < 5 * SE * 2**0.5).all()
    assert (gram.mu_mu == 1).all() and (gram.b == 0).all()
    assert bool((gram.mu_xi == 0).all()) == orthogonal


def test_squared_lengths_are_chi_squared_also_in_the_smallest_and_in_huge_dimensions():
    seeds = tuple(range(800))
    for d in (N + K + 1, 10**7):
        gram = draw_gram(N, K, d, sigma_0=SIGMA_0, seed=seeds)
        assert stats.kstest(gram.xi_xi[:, 0, 0].numpy(), stats.chi2(d).cdf).pvalue > 1e-3
        assert stats.kstest(gram.w_w[:, -1, -1].numpy() / SIGMA_0**2, stats.chi2(d).cdf).pvalue > 1e-3
        overlap = gram.xi_xi[:, 0, 1] / (gram.xi_xi[:, 0, 0] * gram.xi_xi[:, 1, 1]).sqrt()
        assert overlap.var().item() == pytest.approx(1 / d, rel=5 * (2 / len(seeds)) ** 0.5)


def test_it_is_the_gram_matrix_of_vectors_that_exist():
    gram = draw_gram(N, K, N + K + 1, sigma_0=SIGMA_0, seed=tuple(range(200)))
    rows = [torch.cat([gram.mu_mu[:, None], gram.mu_xi, gram.w_mu], -1)[:, None, :],
            torch.cat([gram.mu_xi[..., None], gram.xi_xi, gram.w_xi.mT], -1),
            torch.cat([gram.w_mu[..., None], gram.w_xi, gram.w_w], -1)]
    whole = torch.cat(rows, -2)
    torch.testing.assert_close(whole, whole.mT)
    assert (torch.linalg.eigvalsh(whole) > 0).all()


def test_bartlett_by_hand():
    low, high = bartlett(3, np.array([5, 50]), 7)
    assert torch.equal(low.triu(1), torch.zeros(3, 3)) and torch.equal(low.tril(-1), high.tril(-1))
    uniform = stats.chi2([5, 4, 3]).cdf(low.diagonal().numpy() ** 2)
    np.testing.assert_allclose(stats.chi2([50, 49, 48]).cdf(high.diagonal().numpy() ** 2), uniform, rtol=1e-9)


def test_an_ensemble_is_a_loop_and_a_cell_does_not_see_the_grid_around_it():
    kind = dict(sigma_0=SIGMA_0, orthogonal=True)
    grid = draw_gram(N, K, (20, 50, 30), seed=(4, 1), **kind)
    assert grid.xi_xi.shape == (3, 2, N, N) and grid.mu_mu.shape == (3, 2) and grid.w_mu.shape == (3, 2, K)
    for i, d in enumerate((20, 50, 30)):
        for j, seed in enumerate((4, 1)):
            for whole, one in zip(grid, draw_gram(N, K, d, seed=seed, **kind), strict=True):
                torch.testing.assert_close(whole[i, j], one, rtol=1e-13, atol=1e-15)
    assert draw_gram(N, K, (20,), seed=4, **kind).xi_xi.shape == (1, N, N)
    assert draw_gram(N, K, 20, seed=(4,), **kind).xi_xi.shape == (1, N, N)


def test_sizes_scale_what_they_name():
    one, other = (draw_gram(N, K, 30, sigma_0=a, sigma_xi=b) for a, b in ((1.0, 1.0), (0.1, 3.0)))
    for name, factor in dict(mu_mu=1, mu_xi=3, xi_xi=9, w_mu=0.1, w_xi=0.3, w_w=0.01).items():
        torch.testing.assert_close(getattr(other, name), factor * getattr(one, name))


def test_ten_million_dimensions_draw_no_more_numbers_than_a_thousand(monkeypatch):
    numbers, normal = [], rng.normal

    def counted(shape, seed, role):
        numbers.append(math.prod(shape) * (len(seed) if isinstance(seed, tuple) else 1))
        return normal(shape, seed, role)

    monkeypatch.setattr(rng, "normal", counted)
    totals, seconds = [], []
    for d in (1_000, 10_000_000):
        numbers.clear()
        start = time.perf_counter()
        gram = draw_gram(20, 20, d, sigma_0=1e-3, seed=(0, 1))
        seconds.append(time.perf_counter() - start)
        totals.append(sum(numbers))
    assert totals[0] == totals[1] <= 2 * (40 * 40 + 40)
    assert seconds[1] < 1, "40 vectors of that length take gigabytes, and seconds"
    assert gram.xi_xi.diagonal(dim1=-2, dim2=-1).mean().item() == pytest.approx(1e7, rel=5e-3)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(d=8), r"d must be at least n \+ k \+ 1 = 9, so that 4 noise patches and 4 filters are .*; got d = 8"),
        (dict(d=(100, 8, 50)), r"d must be at least n \+ k \+ 1 = 9, .*; got d = 8"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        draw_gram(**dict(n=4, k=4, d=100, sigma_0=0.1) | arguments)
    assert "\n" not in str(error.value)


def test_filters_of_several_sizes_are_those_drawn_at_each():
    sizes = torch.tensor([[0.125], [3.0]], dtype=torch.float64)  # beside the seeds
    together = draw_gram(6, 4, 50, sigma_0=1.0, seed=(0, 1)).with_filters(sizes)
    for member, size in enumerate(sizes.flatten().tolist()):
        for name, part in draw_gram(6, 4, 50, sigma_0=size, seed=(0, 1))._asdict().items():
            found = getattr(together, name)
            torch.testing.assert_close(found[member] if name.startswith("w") else found, part, rtol=1e-12, atol=1e-14)


def test_a_grid_of_training_problems_is_each_of_its_cells():
    grid = draw_training(10, 3, (40, 90), n_snr2=(0.5, 2.0), flip_prob=(0.0, 0.2), start=0.1, seed=(0, 1, 2))
    params, _ = fit(grid, GradientDescent(0.01), 20)
    y, observed = flipped_labels(10, 0.2, 0)
    gram = draw_gram(10, 6, 90, sigma_0=0.1 / 90**0.5, seed=1).with_signals(torch.tensor([(2.0 * 90 / 10) ** 0.5]))
    one, _ = fit(GramTraining(gram, y, observed, scale=1 / 3), GradientDescent(0.01), 20)
    for name, value in one.items():
        torch.testing.assert_close(params[name][1, 1, 1, 1], value[0], msg=name)
