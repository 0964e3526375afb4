"""Crops: no pixel is shared between roles, brightness and contrast tell nothing, digits of two roles are different."""

import numpy as np
import pytest
import torch

from flbook.data import crops
from flbook.data.crops import COLUMNS, TwoClassPictures


def test_no_pixel_is_shared():
    ends = sorted(COLUMNS.values())
    assert all(right <= left for (_, right), (left, _) in zip(ends[:-1], ends[1:], strict=True))
    assert ends[-1][1] == crops.photographs().shape[-1]


@pytest.mark.parametrize("kind", ["colour crops", "grey crops"])
def test_crops_are_standardised_and_classes_take_turns(kind):
    sample = TwoClassPictures(kind, n=20, flip_prob=0.2).draw((0, 1))
    assert sample.x.shape[:2] == (2, 20) and sample.y[0, :4].tolist() == [1, -1, 1, -1]
    assert (sample.observed != sample.y).sum(-1).tolist() == [4, 4]
    np.testing.assert_allclose(sample.x.mean((-3, -2, -1)), 0, atol=1e-12)
    assert (sample.x.std((-3, -2, -1)) < 1.01).all()


def test_digits_of_different_roles_are_different():
    data = TwoClassPictures("digits", n=60, held_out=40, fresh=50)
    parts = [sample.x.flatten(1) for sample in (data.draw(3), data.draw_held_out(3), data.draw_test(3))]
    assert len(torch.unique(torch.cat(parts), dim=0)) == 150
    with pytest.raises(ValueError, match="at most 1797"):
        TwoClassPictures("digits", n=1000, held_out=400, fresh=400)
