"""Axes: what acts along the ensemble, and that shapes are checked while the tests run."""

import jaxtyping
import pytest
import torch

from flbook.estimators import averaging
from flbook.shapes import per_member, signs


def test_a_number_stays_a_number():
    assert per_member(0.5, torch.ones(3, 2)) == 0.5
    assert per_member(torch.tensor(0.5), torch.ones(3, 2)) == 0.5


def test_one_number_a_member_scales_that_member():
    like = torch.ones(2, 3, 4)
    scaled = per_member(torch.tensor([1.0, -2.0]), like) * like
    assert scaled[0].eq(1).all() and scaled[1].eq(-2).all() and scaled.shape == like.shape
    over_d = per_member(torch.tensor([[1.0], [5.0]]), like)  # an axis of length 1 broadcasts over that ensemble axis
    assert over_d.shape == (2, 1, 1) and per_member(torch.arange(6.0).reshape(2, 3), like).shape == (2, 3, 1)


@pytest.mark.parametrize("shape", [(4,), (3,), (2, 4), (2, 3, 4, 1)])
def test_a_scalar_of_another_ensemble_is_one_sentence(shape):
    with pytest.raises(ValueError, match=r"a scalar given for each member has the ensemble's shape: got \(") as error:
        per_member(torch.ones(shape), torch.ones(2, 3, 4))
    assert "(2, 3, 4)" in str(error.value) and str(tuple(shape)) in str(error.value)


def test_signs_of_the_filters():
    like = torch.zeros(1, dtype=torch.float64)
    assert signs(4, like).tolist() == [1, 1, -1, -1] and signs(4, like).dtype == torch.float64


def test_shape_annotations_are_checked_while_testing():
    with pytest.raises(jaxtyping.TypeCheckError):
        averaging(torch.ones(3, 2), torch.ones(4))
