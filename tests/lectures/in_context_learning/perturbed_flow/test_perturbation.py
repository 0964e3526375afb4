"""Products with the Wasserstein Hessian, and noise shaped by it."""

import torch

from flbook import rng
from flbook.lectures.in_context_learning.perturbed_flow.perturbation import (
    MeanFunctional,
    guided,
    norm,
    sized,
    smooth,
)

TARGET = torch.diag(torch.tensor([1.0, 0.5], dtype=torch.float64))
MATRIX = MeanFunctional(
    lambda theta: torch.einsum("...mi,...mj->...ij", theta, theta) / theta.shape[-2],
    lambda c: (c - TARGET).square().sum((-2, -1)) / 4,
)


def crowd(*shape, seed=0):
    return rng.normal(shape, seed, "crowd")


def dense(product, theta):
    basis = torch.eye(theta.numel(), dtype=torch.float64).reshape(-1, *theta.shape)
    return product(theta.expand_as(basis), basis).flatten(1)


def test_derivatives_of_the_factorisation_by_hand():
    theta, v = crowd(5, 2), crowd(5, 2, seed=1)
    residual = theta.T @ theta / 5 - TARGET
    slope, loss = MATRIX.slope(theta)
    torch.testing.assert_close(slope, theta @ residual)
    torch.testing.assert_close(loss, residual.square().sum() / 4)
    change = (theta.T @ v + v.T @ theta) / 5
    torch.testing.assert_close(MATRIX.interaction(theta, v), theta @ change)
    torch.testing.assert_close(MATRIX.whole(theta, v), theta @ change + v @ residual)


def test_an_ensemble_is_its_members():
    theta, v = crowd(3, 5, 2), crowd(3, 5, 2, seed=1)
    for product in (MATRIX.interaction, MATRIX.whole):
        torch.testing.assert_close(product(theta, v)[1], product(theta[1], v[1]))
    torch.testing.assert_close(MATRIX.slope(theta)[0][2], MATRIX.slope(theta[2])[0])


def test_the_spectrum_belongs_to_unit_fields():
    theta = crowd(4, 2)
    values, vectors = MATRIX.spectrum(theta)
    torch.testing.assert_close(norm(vectors), torch.ones(8, dtype=torch.float64))
    torch.testing.assert_close(MATRIX.whole(theta, vectors[0]), values[0] * vectors[0], rtol=1e-8, atol=1e-10)
    inner, _ = MATRIX.spectrum(theta, local=False)
    assert inner.min() > -1e-10 > values.min(), "the interaction is convex here, the instability is local"


def test_the_covariance_of_the_guided_push():
    theta = crowd(4, 2)
    h = dense(MATRIX.interaction, theta)
    basis = torch.eye(8, dtype=torch.float64).reshape(-1, 4, 2)
    rows = guided(MATRIX, theta.expand_as(basis), basis).flatten(1)
    torch.testing.assert_close(rows.T @ rows, 4 * h @ h)
    block = torch.einsum("ji,lk->jkli", theta, theta)
    block = block + torch.einsum("jl,ki->jkli", theta @ theta.T, torch.eye(2).double())
    kernel = torch.einsum("jkli,lihn->jkhn", block, block).reshape(8, 8) / 4
    torch.testing.assert_close(rows.T @ rows, kernel)


def test_a_smooth_field_moves_copies_together():
    theta = crowd(3, 2).repeat(2, 1)
    field = smooth(theta, crowd(6, 2, seed=2), 1.0)
    torch.testing.assert_close(field[:3], field[3:], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(norm(sized(field, 0.1)), torch.tensor(0.1, dtype=torch.float64))
