"""Estimators on prompts: each against its definition, prompts together equal to prompts one by one, and bad input."""

import pytest
import torch

from flbook import estimators, rng
from flbook.estimators import kernel_ridge
from flbook.shapes import Context

POOL = rng.normal((7, 4), 3, "pool")
EVERY = (
    estimators.LeastSquares(),
    estimators.Ridge(0.3),
    estimators.KernelRidge(lambda x, other: torch.einsum("...nd,...pd->...np", x, other).exp(), 0.3),
    estimators.NearestNeighbours(3),
    estimators.Averaging(),
    estimators.GradientStep(0.2, steps=3),
    estimators.Lasso(0.05),
    estimators.DiscreteMMSE(POOL, 0.5, chunk=3),
)
NAMES = [type(one).__name__ for one in EVERY]


def prompts(n=9, d=4):
    x, beta = rng.normal((2, n, d), (0, 1, 2), "x"), rng.normal((2, 1, d), (0, 1, 2), "task")
    y = (x * beta).sum(-1) + 0.1 * rng.normal((2, n), (0, 1, 2), "noise")
    return Context(x, y), rng.normal((2, 5, d), (0, 1, 2), "query")


@pytest.mark.parametrize("estimator", EVERY, ids=NAMES)
@pytest.mark.parametrize("n", [9, 2, 0])
def test_prompts_together_are_prompts_one_by_one(estimator, n):
    context, query = prompts(n)
    together = estimator(context, query)
    assert together.shape == (3, 2, 5)
    alone = estimator(Context(context.x[1, 0], context.y[1, 0]), query[1, 0])
    torch.testing.assert_close(together[1, 0], alone)


def test_least_squares_fits_and_is_the_shortest_that_does():
    context, query = prompts(n=3)  # fewer examples than dimensions
    torch.testing.assert_close(estimators.LeastSquares()(context, context.x), context.y)
    off = torch.linalg.qr(context.x.mT, mode="complete")[0][..., -1:].mT  # a query that no example has a part along
    assert estimators.LeastSquares()(context, off).abs().max() < 1e-12
    context, query = prompts()
    exact = torch.linalg.lstsq(context.x, context.y[..., None]).solution
    torch.testing.assert_close(estimators.LeastSquares()(context, query), (query @ exact)[..., 0])
    torch.testing.assert_close(estimators.Ridge(1e-10)(context, query), (query @ exact)[..., 0])


def test_ridge_kernel_ridge_and_a_matrix_of_ridges_agree():
    context, query = prompts()
    ridge = estimators.Ridge(0.7)(context, query)
    linear = estimators.KernelRidge(lambda x, other: x @ other.mT, 0.7)
    torch.testing.assert_close(linear(context, query), ridge, rtol=1e-12, atol=1e-12)  # 0.7 in the prompts' precision
    torch.testing.assert_close(estimators.Ridge(0.7 * torch.eye(4))(context, query), ridge)
    alpha = kernel_ridge(context.x @ context.x.mT, context.y, 0.7 / 9, rtol=1e-13)
    torch.testing.assert_close(torch.einsum("...qd,...nd,...n->...q", query, context.x, alpha), ridge)
    scale = torch.tensor([1.0, 2.0, 0.5, 3.0]).double()  # tasks of covariance scale^2: ridge in rescaled inputs
    rescaled = estimators.Ridge(0.7)(Context(context.x * scale, context.y), query * scale)
    torch.testing.assert_close(estimators.Ridge(0.7 * torch.diag(scale**-2))(context, query), rescaled)


def test_gradient_steps():
    context, query = prompts()
    torch.testing.assert_close(estimators.GradientStep(1.0)(context, query), estimators.Averaging()(context, query))
    torch.testing.assert_close(estimators.GradientStep((0.2, 0.2, 0.2))(context, query),
                               estimators.GradientStep(0.2, steps=3)(context, query))
    torch.testing.assert_close(estimators.GradientStep(0.3, steps=3000)(context, query),
                               estimators.LeastSquares()(context, query))


def test_nearest_neighbours():
    x = torch.tensor([[0.0], [1.0], [3.0], [10.0]]).double()
    context = Context(x, torch.tensor([1.0, 2.0, 4.0, 100.0]).double())
    query = torch.tensor([[0.4], [9.0]]).double()
    torch.testing.assert_close(estimators.NearestNeighbours(2)(context, query), torch.tensor([1.5, 52.0]).double())
    torch.testing.assert_close(estimators.NearestNeighbours(9)(context, query), torch.full((2,), 26.75).double())


def test_lasso_satisfies_its_optimality_conditions():
    context, _ = prompts(n=30)
    weights = estimators.Lasso(0.2)(context, torch.eye(4).double().expand(3, 2, 4, 4))
    pull = torch.einsum("...nd,...n->...d", context.x, context.y - (context.x @ weights[..., None])[..., 0]) / 30
    active = weights != 0
    torch.testing.assert_close(pull[active], 0.2 * weights[active].sign(), rtol=1e-2, atol=1e-3)
    assert pull.abs().max() < 0.2 + 1e-3 and 0 < active.double().mean() < 1


@pytest.mark.parametrize("chunk", [1, 3, 4096])
def test_discrete_mmse_is_the_posterior_mean(chunk):
    context, query = prompts()
    errors = (context.y[..., None] - context.x @ POOL.T).square().sum(-2)
    weights = torch.softmax(-errors / (2 * 0.5**2), -1) @ POOL
    found = estimators.DiscreteMMSE(POOL, 0.5, chunk)
    torch.testing.assert_close(found.weights(context), weights)
    torch.testing.assert_close(found(context, query), (query @ weights[..., None])[..., 0])
    none = Context(context.x[..., :0, :], context.y[..., :0])
    torch.testing.assert_close(found.weights(none), POOL.mean(0).expand(3, 2, 4))


def test_discrete_mmse_far_from_every_task_takes_the_nearest():
    x = 1e4 * rng.normal((9, 4), 0, "x")
    found = estimators.DiscreteMMSE(POOL, 0.5, chunk=2).weights(Context(x, x @ POOL[5]))
    torch.testing.assert_close(found, POOL[5])


def test_predict_each_looks_only_back():
    context, _ = prompts()
    each = estimators.predict_each(estimators.Ridge(0.3), context)
    assert each.shape == context.y.shape and not each[..., 0].any()
    before = Context(context.x[..., :6, :], context.y[..., :6])
    torch.testing.assert_close(each[..., 6], estimators.Ridge(0.3)(before, context.x[..., 6:7, :])[..., 0])


@pytest.mark.parametrize("make, message", [
    (lambda: estimators.Ridge(0.0), "lam must be a number above 0; got 0.0"),
    (lambda: estimators.DiscreteMMSE(POOL[0], 1.0), "pool must hold at least one task"),
])
def test_bad_input_is_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
