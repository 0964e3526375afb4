"""Teachers: the target by hand, moments, ensembles, representable by K neurons, every error message."""

import math

import pytest
import torch

from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher
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


def test_a_mean_field_network_represents_it():
    data = Teacher(n=9, d=2, k=3, spread=True)
    sample, model = data.draw(0), TwoLayer(2, 6, scale=1 / 6)
    w = data.sharpness * torch.cat([data.u, -data.u])
    torch.testing.assert_close(torch.func.functional_call(model, {"w": w}, (sample.x,)), sample.y)


def test_bad_input_is_one_sentence():
    for change, sentence in [
        (dict(k=3, d=2), "3 directions do not fit into d = 2"),
        (dict(k=3, d=1, spread=True), "3 directions do not fit into d = 1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            Teacher(**change)
