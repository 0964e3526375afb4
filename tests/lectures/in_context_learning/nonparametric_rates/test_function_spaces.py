"""Function spaces: orthonormal bases, exact Gram matrices, the moments of prompts."""

import math

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import (
    FourierBasis,
    FunctionPrompts,
    fourier_line,
    hidden_line,
    mixed_blocks,
)
from flbook.lectures.in_context_learning.nonparametric_rates.splines import (
    HiddenSplines,
    SplineBasis,
    cardinal,
    inverse_root,
)


def grid(points: int, d: int = 1) -> torch.Tensor:
    axis = torch.arange(points, dtype=torch.float64) / points
    return torch.cartesian_prod(*[axis] * d).reshape(-1, d)


def integrated(basis, points: int) -> torch.Tensor:
    f = basis.features(grid(points, basis.d))
    return f.mT @ f / len(f)


def test_fourier_functions_by_hand():
    x = torch.tensor([[0.1], [0.7]], dtype=torch.float64)
    f = fourier_line(5).features(x)
    root, turn = math.sqrt(2), 2 * math.pi
    expected = [[1, root * math.cos(turn * a), root * math.sin(turn * a), root * math.cos(2 * turn * a),
                 root * math.sin(2 * turn * a)] for a in (0.1, 0.7)]
    torch.testing.assert_close(f, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("basis", [fourier_line(33), hidden_line(3, seed=5),
                                   FourierBasis(((0, 0), (1, -2), (1, 2), (0, 3)))])
def test_fourier_bases_are_orthonormal(basis):
    torch.testing.assert_close(integrated(basis, 200 if basis.d == 1 else 32), basis.gram())


def test_many_frequencies_and_few_are_the_same_functions():
    x = torch.rand(3, 7, 1, dtype=torch.float64)
    few = FourierBasis(((40,), (-33,))).features(x)
    rows = fourier_line(101)
    many = rows.features(x)[..., [rows.frequency.index((40,)), rows.frequency.index((-33,))]]
    torch.testing.assert_close(few, many, rtol=1e-11, atol=1e-11)


def test_hidden_frequencies_stay_in_their_groups():
    for seed in range(20):
        rows = [row[0] for row in hidden_line(4, power=2, spread=3, seed=seed).frequency]
        for i, r in enumerate(rows[::2], 1):
            assert 3 * (i - 1) ** 2 < r <= 3 * i**2
        assert rows[1::2] == [-r for r in rows[::2]]
    assert hidden_line(4, 1, 1).frequency == ((1,), (-1,), (2,), (-2,), (3,), (-3,), (4,), (-4,))


def test_the_mixed_smooth_class():
    assert mixed_blocks((1.0,), 9.0) == [(0.0, (0,)), (3.0, (1,)), (6.0, (2,)), (9.0, (3,))]
    counted = [sum(2 ** sum(block) for _, block in mixed_blocks(tuple(range(1, d + 1)), 12.0)) for d in (1, 2, 5, 9)]
    assert counted[2] == counted[3], "inputs too smooth for these bits add nothing"
    assert mixed_blocks((1.0, 2.0), 5.0) == [(0.0, (0, 0)), (3.0, (1, 0)), (5.0, (0, 1))]


def test_splines_by_hand():
    t = torch.tensor([-0.1, 0.0, 0.5, 1.0, 1.5, 2.5, 3.0], dtype=torch.float64)
    torch.testing.assert_close(cardinal(t, 0), torch.tensor([0, 1, 1, 0, 0, 0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(cardinal(t, 1), torch.tensor([0, 0, 0.5, 1, 0.5, 0, 0], dtype=torch.float64))
    torch.testing.assert_close(cardinal(t, 2), torch.tensor([0, 0, 0.125, 0.5, 0.75, 0.125, 0], dtype=torch.float64))
    x = torch.rand(50, 2, dtype=torch.float64)
    torch.testing.assert_close(SplineBasis(2, 2, (2,)).features(x).sum(-1), torch.ones(50, dtype=torch.float64))


@pytest.mark.parametrize("basis", [SplineBasis(1, 2, (3,)), SplineBasis(1, 1, (0, 2)), SplineBasis(2, 2, (1,)),
                                   SplineBasis(1, 2, (2,), whiten=True), HiddenSplines(4, 2, 2, seed=3)])
def test_spline_gram_matrices(basis):
    points = grid(4096 if basis.d == 1 else 256, basis.d) + 0.5 / (4096 if basis.d == 1 else 256)
    f = basis.features(points)
    torch.testing.assert_close(f.mT @ f / len(f), basis.gram(), rtol=0.01, atol=2e-3)


def test_levels_together_are_dependent():
    gram = SplineBasis(1, 2, (0, 1, 2)).gram()
    assert np.linalg.matrix_rank(gram.numpy(), 1e-10) == SplineBasis(1, 2, (2,)).size == 6
    with pytest.raises(ValueError, match="gram must be positive definite"):
        inverse_root(gram)


def test_hidden_splines_have_different_places():
    basis = HiddenSplines(8, 8, 2, seed=1)
    places = basis.places()
    assert len(set(places)) == 8 and all(len(place) == 2 for place in places)
    assert places == HiddenSplines(8, 8, 2, seed=1).places() != HiddenSplines(8, 8, 2, seed=2).places()


def test_prompts_are_sums_of_functions():
    data = FunctionPrompts(fourier_line(3), (1.0, 0.5, 0.5), n=6, noise=0.3, queries=2)
    one = data.draw(5, 1)
    torch.testing.assert_close(one.target, torch.einsum("bqj,bj->bq", data.basis.features(one.query), one.task))
    many = data.draw(4000, 0)
    assert ((many.query >= 0) & (many.query <= 1)).all()
    np.testing.assert_allclose(many.task.square().mean(0), data.variance, rtol=0.1)
    np.testing.assert_allclose((many.observed - many.target).std(), 0.3, rtol=0.05)


def test_bad_input_is_one_sentence():
    line = fourier_line(3)
    for make, sentence in [
        (lambda: FunctionPrompts(line, (1.0,) * 2), "variance must hold 3 numbers"),
        (lambda: FunctionPrompts(line, (1.0, -1.0, 0.0)), "each a number of at least 0; got"),
        (lambda: FunctionPrompts(line, (1.0,) * 3).draw(0, 0), "batch must be at least 1"),
        (lambda: FourierBasis(((1,), (1,))), "every row once"),
        (lambda: FourierBasis(((1,), (1, 2))), "each of d >= 1 integers"),
        (lambda: fourier_line(3).features(torch.zeros(4, 2)), "x must hold points of d = 1"),
        (lambda: hidden_line(0), "pairs, power and spread must be at least 1"),
        (lambda: mixed_blocks((2.0, 1.0), 3.0), "smoothness must hold positive numbers"),
        (lambda: SplineBasis(levels=(1, 1)), "levels must differ"),
        (lambda: SplineBasis(levels=(1, 2), whiten=True), "whiten needs one level"),
        (lambda: HiddenSplines(active=9), "active must be at most d = 8"),
        (lambda: HiddenSplines(size=100, d=2), "size must be at most"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            make()
