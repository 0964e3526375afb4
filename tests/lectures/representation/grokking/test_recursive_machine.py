"""The machine: its gradients against Jacobians, its measures by hand, and the two propositions of the page."""

import torch

from flbook import observe
from flbook.lectures.representation.grokking.modular_table import ModularTable, TablePairs, differences, inputs, targets
from flbook.lectures.representation.grokking.recursive_machine import (
    accuracy_in,
    batches,
    circulant,
    coefficients,
    explained,
    gradient_product,
    one_round,
    profile,
    progress,
    rank,
    recursion,
    root,
    similarities,
)

P = 7
SPLIT = ModularTable(P, 0.6).draw((0, 1))
X, Y = inputs(SPLIT.train, P), targets(SPLIT.train, P)


def _metric() -> torch.Tensor:
    c = torch.linspace(-0.1, 0.1, P, dtype=torch.float64)
    return circulant(torch.stack([c, c.flip(0)]))


def test_the_fit_passes_through_the_labels():
    for metric in (torch.eye(2 * P, dtype=torch.float64).expand(2, -1, -1), _metric()):
        alpha = coefficients(X, Y, metric)
        torch.testing.assert_close(similarities(X, X, metric).square() @ alpha, Y, rtol=0, atol=1e-6)


def test_the_product_is_that_of_jacobians():
    metric = _metric()
    alpha = coefficients(X, Y, metric)
    found = gradient_product(X, alpha, metric, centred=False)
    for k in range(2):
        def f(params, x, k=k):
            return ((x @ params["m"]) @ X[k].T).square() @ alpha[k]

        torch.testing.assert_close(4 * found[k], observe.agop(f, {"m": metric[k]}, X[k]))
        slopes = torch.func.jacrev(lambda x, f=f, k=k: f({"m": metric[k]}, x[None])[0])
        jacobians = torch.stack([slopes(x) for x in X[k]])
        centred = (jacobians - jacobians.mean(0)).flatten(0, 1)
        torch.testing.assert_close(4 * gradient_product(X, alpha, metric)[k], centred.T @ centred / len(X[k]))


def test_a_root_is_a_root():
    product = gradient_product(X, coefficients(X, Y, _metric()), _metric())
    half = root(product)
    torch.testing.assert_close(half.diagonal(dim1=-2, dim2=-1).mean(-1), torch.ones(2, dtype=torch.float64))
    square = half @ half
    torch.testing.assert_close(square / square[:, :1, :1], product / product[:, :1, :1], rtol=1e-6, atol=1e-7)


def test_measures_of_a_circulant():
    c = torch.randn(2, P, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    metric = circulant(c)
    torch.testing.assert_close(profile(metric), c)
    assert metric[0, P + 2, 5] == c[0, 3] and torch.equal(metric, metric.mT)  # v - u = 5 - 2
    torch.testing.assert_close(progress(metric), torch.fft.fft(c).abs()[:, 1:].mean(-1))
    torch.testing.assert_close(progress(3 * metric), progress(metric))
    circular, hankel = explained(metric)
    torch.testing.assert_close(circular, torch.ones(2, dtype=torch.float64))
    assert (hankel < 1e-20).all()
    turned = metric.clone()
    turned[:, P:, :P] = turned[:, P:, :P].flip(-1)
    assert explained(turned)[0].max() < 1e-20 and explained(turned)[1].min() > 1 - 1e-12


def test_the_solutions_features_are_the_histogram():
    a, b = SPLIT.train[0].T
    c = torch.arange(P)[:, None]
    one_hot = torch.nn.functional.one_hot
    gradients = torch.cat([one_hot((c - b) % P, P), one_hot((c - a) % P, P)], -1).double()  # (class, sample, 2 p)
    product = torch.einsum("csq,csr->qr", gradients, gradients) / len(a)
    torch.testing.assert_close(product, circulant(differences(SPLIT.train[0], P) / len(a)))
    centred = gradients - gradients.mean(1, keepdim=True)
    block = torch.einsum("csq,csr->qr", centred, centred)[P:, :P]
    torch.testing.assert_close(block, circulant(profile(torch.einsum("csq,csr->qr", centred, centred)))[P:, :P])


def test_drive_and_growth_at_a_moderate_modulus():
    p, table = 29, ModularTable(29, 0.6)
    train = table.draw(0).train
    x, y = inputs(train, p), targets(train, p)
    f, N = table.n / p**2, differences(train, p)
    eye = torch.eye(2 * p, dtype=torch.float64)
    drive = profile(one_round(x, y, eye)[1])
    drive, theory = drive - drive.mean(), (N - N.mean()) / (2 * p**2)
    assert abs((drive @ theory) / (theory @ theory) - 1) < 0.12
    c = 1e-4 * torch.cos(2 * torch.pi * 3 * torch.arange(p, dtype=torch.float64) / p)
    grown = (profile(one_round(x, y, circulant(c))[1]) - profile(one_round(x, y, circulant(-c))[1])) / 2
    assert abs((grown @ c) / (c @ c) - 1 - f) < 0.05


def test_rounds_and_single_fits_agree():
    rounds = list(recursion(P, SPLIT, 3))
    assert len(rounds) == 4 and torch.equal(rounds[0].metric[0], torch.eye(2 * P, dtype=torch.float64))
    last = rounds[-1]
    torch.testing.assert_close(accuracy_in(last.metric, P, SPLIT), last.accuracy)
    torch.testing.assert_close(last.metric, one_round(X, Y, rounds[-2].metric)[1])
    alone = list(recursion(P, TablePairs(*(part[1] for part in SPLIT)), 3))[-1]
    torch.testing.assert_close(alone.metric, last.metric[1], rtol=1e-6, atol=1e-8)


def test_batches_share_out_all_seeds():
    assert list(batches((3, 1, 2), 400)) == [(3, 1, 2)] and list(batches((3, 1), 2000)) == [(3,), (1,)]


def test_the_rank_by_hand():
    """Of the pairs (0, 0) and (1, 2), whose classes are 0 and 0, one class is above the right one, and two."""
    outputs = torch.tensor([[2.0, 3.0, 1.0], [0.0, 1.0, 2.0]]).double()
    assert rank(outputs, torch.tensor([[0, 0], [1, 2]]), 3).item() == 0.75


def test_before_the_first_round_the_right_sum_is_among_those_that_row_and_column_have_not_shown():
    """So are (1 - f)^2 of the other classes, and half of these are above it."""
    f = ModularTable(31, 0.61).n / 31**2
    start = next(recursion(31, ModularTable(31, 0.61).draw(tuple(range(4))), 0))
    torch.testing.assert_close(start.rank, torch.full((4,), 1 - (1 - f) ** 2 / 2).double(), rtol=0, atol=0.02)
    candidates = torch.distributions.Binomial(30, torch.tensor((1 - f) ** 2))
    by_chance = (candidates.log_prob(torch.arange(31.0)).exp() / (1 + torch.arange(31))).sum().double()
    torch.testing.assert_close(start.least.mean(), by_chance, rtol=0, atol=0.05)
    assert (start.accuracy == 0).all()
