"""Teachers: the target by hand, moments, ensembles, representable by K neurons, every error message."""

import math

import pytest
import torch

from flbook.data import Teacher
from flbook.models import TwoLayer


def test_target_by_hand():
    x = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64)
    y = Teacher(n=1, d=3, k=2, sharpness=2.0).target(x).item()
    assert y == pytest.approx((math.tanh(1.0) + math.tanh(-2.0)) / 2)


def test_directions_are_unit_vectors():
    for data in (Teacher(d=5, k=3), Teacher(d=2, k=3, spread=True), Teacher(d=4, k=7, spread=True)):
        assert data.u.shape == (data.k, data.d)
        torch.testing.assert_close(data.u.norm(dim=-1), torch.ones(data.k, dtype=torch.float64))
    spread = Teacher(d=2, k=3, spread=True).u
    torch.testing.assert_close(spread @ spread.T, torch.full((3, 3), -0.5, dtype=torch.float64).fill_diagonal_(1.0))


def test_moments_and_independence():
    data = Teacher(n=4000, d=3)
    sample, fresh = data.draw(0), data.draw_test(4000, 0)
    for part in (sample, fresh):
        torch.testing.assert_close(part.x.T @ part.x / 4000, torch.eye(3, dtype=torch.float64), atol=0.1, rtol=0)
        assert abs(part.y.mean()) < 0.06
    assert not torch.equal(sample.x, fresh.x)


def test_an_ensemble_is_the_loop_over_seeds():
    data = Teacher(n=5, d=3, k=2)
    many, test = data.draw((1, 4)), data.draw_test(6, (1, 4))
    for i, seed in enumerate((1, 4)):
        torch.testing.assert_close(many.x[i], data.draw(seed).x)
        torch.testing.assert_close(many.y[i], data.draw(seed).y)
        torch.testing.assert_close(test.y[i], data.draw_test(6, seed).y)


def test_a_mean_field_network_represents_it():
    data = Teacher(n=9, d=2, k=3, spread=True)
    sample, model = data.draw(0), TwoLayer(2, 6, scale=1 / 6)
    w = data.sharpness * torch.cat([data.u, -data.u])
    torch.testing.assert_close(torch.func.functional_call(model, {"w": w}, (sample.x,)), sample.y)


def test_bad_input_is_one_sentence():
    for change, sentence in [
        (dict(n=0), "n must be a whole number of at least 1; got 0"),
        (dict(k=3, d=2), "3 directions do not fit into d = 2"),
        (dict(k=3, d=1, spread=True), "3 directions do not fit into d = 1"),
        (dict(sharpness=0.0), "sharpness must be a number above 0; got 0.0"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            Teacher(**change)
