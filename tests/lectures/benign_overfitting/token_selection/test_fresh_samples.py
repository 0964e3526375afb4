"""Fresh samples of token selection: the error integrated over what scores do not tell, against drawing everything."""

import pytest
import torch

from flbook import measures
from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection import selection
from flbook.lectures.benign_overfitting.token_selection.fresh_samples import fresh_samples

DATA = TokenSelection(n=6, d=40, mu_norm=4.0, tokens=5, sigma_xi=1.5)
PROBLEM = TokenTraining.of(DATA, DATA.draw((0, 1)))
ALONG = torch.tensor([1.0, -1.0]).repeat(3).repeat_interleave(5) * torch.tensor([1.0, 0, 0, 0, 0]).repeat(6)
QUERY = {"query": (0.01 * torch.randn(2, 30, generator=torch.Generator().manual_seed(0)) + 0.03 * ALONG).double()}


def test_uniform_attention_is_exact():
    weights, error = fresh_samples(PROBLEM, PROBLEM.start(), measures.sobol_normal(8, 5))
    assert (weights == 1 / 5).all()
    expected = selection.uniform_attention_error(4.0, tokens=5, sigma_xi=1.5)
    torch.testing.assert_close(error, torch.full((2,), float(expected), dtype=torch.float64))


def test_it_is_the_law_of_drawn_samples():
    """Also where the query looks along the head."""
    signal, square = PROBLEM.direction(QUERY)
    cosine = (signal[:, 0] - signal[:, 1]) / (2**0.5 * 4.0 * square.sqrt())
    assert (cosine > 0.4).all()
    x = DATA.draw_test(20_000, (5, 6))
    drawn = torch.stack([_error(x, member) for member in range(2)])
    _, error = fresh_samples(PROBLEM, QUERY, measures.sobol_normal(2**14, 5))
    torch.testing.assert_close(error, drawn, rtol=0, atol=0.006)


def _error(test, member):
    train = DATA.draw((0, 1)).x[member].flatten(0, 1)
    u = QUERY["query"][member] @ train
    weight = (test.x[member] @ u).softmax(-1)
    return ((weight * (test.x[member] @ DATA.head)).sum(-1) * test.y[member] <= 0).double().mean()


def test_weights_are_those_of_the_problem():
    standard = measures.sobol_normal(2**13, 5)
    ours = fresh_samples(PROBLEM, QUERY, standard)[0].mean(-2)
    drawn = PROBLEM.fresh(QUERY, measures.sobol_normal(2**13, 10))[0].mean(-2)
    torch.testing.assert_close(ours, drawn, rtol=0, atol=0.01)
    assert float(ours[..., 0].mean()) == pytest.approx(float(drawn[..., 0].mean()), abs=0.005)
