"""The page's propositions: the resting output against brute force, and what may and may not move at the minimum."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.cutmix import smoothing_for
from flbook.lectures.training_strategies.cutmix.pasting import CutMix, Cutout
from flbook.lectures.training_strategies.cutmix.resting import loss_of, plateau, resting_output
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures

LAWS = [(3, None), (4, None), (5, None), (3, (0.0, 0.9, 0.1, 0.0)), (4, (0.3, 0.3, 0.1, 0.1, 0.2))]


def test_the_number_of_the_page():
    z = resting_output()
    assert z == pytest.approx(1.3954000, abs=1e-6)
    assert 9 * np.tanh(1.5 * z) + np.tanh(z / 2) == pytest.approx(28 / 3)
    assert resting_output(2) == np.inf and resting_output(4, (0, 0, 1.0, 0, 0)) == np.inf


@pytest.mark.parametrize(("patches", "law"), LAWS)
def test_the_even_loss_is_the_recipes_and_is_smallest_at_the_root(patches, law):
    y = torch.tensor([1.0, -1.0] * 4).double()
    recipe, rest = CutMix(law, partners=None), resting_output(patches, law)
    for z in (0.3, rest):
        even = z * y[:, None].expand(-1, patches)
        assert recipe.loss(even, y).mean().item() == pytest.approx(float(loss_of(z, patches, law)))
    assert recipe.slope(even, y).abs().max() < 1e-12
    assert loss_of(rest, patches, law) < min(loss_of(rest - 0.01, patches, law), loss_of(rest + 0.01, patches, law))


@pytest.mark.parametrize(("patches", "law"), LAWS)
def test_only_shifts_of_sum_zero_are_free_at_the_minimum(patches, law):
    y = torch.tensor([1.0, -1.0] * 3).double()
    recipe = CutMix(law, partners=None)
    even = (resting_output(patches, law) * y[:, None].expand(-1, patches)).flatten()
    hessian = torch.func.hessian(lambda f: recipe.loss(f.unflatten(0, (6, patches)), y).mean())(even)
    values, vectors = torch.linalg.eigh(hessian)
    assert (values[: patches - 1].abs() < 1e-12).all() and values[patches - 1] > 1e-3
    free = vectors[:, : patches - 1].unflatten(0, (6, patches))
    assert (free - free[:1]).abs().max() < 1e-10 and free.sum(1).abs().max() < 1e-10


def test_plateaus_lie_above_the_root_and_end_at_it():
    data = RareFeatures(n=40, d=20)
    both, last, none = plateau(data, (1, 2)), plateau(data, (2,)), plateau(data, ())
    np.testing.assert_allclose(none, resting_output(), rtol=1e-5)
    np.testing.assert_allclose(both, [1.49154, 0, 0], atol=1e-4)
    np.testing.assert_allclose(last, [1.41833, 1.41833, 0], atol=1e-4)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_smoothing_bounds_the_sum_and_cutting_makes_it_even(size):
    y, p = torch.tensor([1.0, -1.0]).double(), smoothing_for(1.2)
    recipe = Cutout(size, p)
    f = torch.tensor([[1.0, 0.1, 0.1], [-0.2, -0.9, -0.1]], dtype=torch.float64)
    hessian = torch.func.hessian(lambda g: recipe.loss(g.unflatten(0, (2, 3)), y).sum())(f.flatten())
    at_rest = 1.2 / (3 - size) * y[:, None].expand(-1, 3)
    assert recipe.slope(at_rest, y).abs().max() < 1e-12
    assert torch.linalg.matrix_rank(hessian) == (2 if size == 0 else 6)
    if size == 0:
        assert recipe.slope(f, y).abs().max() < 1e-12  # the same sum, by one patch
