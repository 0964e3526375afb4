"""Images with redrawn labels: portions, splits, ensembles, every error message."""

import pytest
import torch

from flbook.data.images import Images, digits
from flbook.lectures.representation.loss_path_kernel.redrawn_labels import RedrawnLabels, even_or_odd

DATA = RedrawnLabels(digits((1, 7)), n=60)
PORTIONS = (0.0, 0.5, 1.0)


def test_images_are_centred_and_of_the_books_size():
    assert DATA.d == 64 and DATA.x.shape == (len(DATA.images.y), 64)
    torch.testing.assert_close(DATA.x.mean(0), torch.zeros(64, dtype=torch.float64), atol=1e-12, rtol=0)
    assert DATA.x.square().sum(-1).mean().item() == pytest.approx(64)


def test_even_digits_are_plus_one():
    images = even_or_odd()
    assert images.pixels.shape == (1797, 8, 8) and images.pixels.max() == 1
    assert images.y[:4].tolist() == [1, -1, 1, -1], "the set begins with 0, 1, 2, 3"


def test_a_picture_is_the_image_again():
    torch.testing.assert_close(DATA.picture(DATA.x), DATA.images.pixels.double())


def test_training_and_test_images_are_all_images():
    train, test = DATA.draw(PORTIONS, 3), DATA.draw_test(PORTIONS, 3)
    both = torch.cat([train.x, test.x])
    assert both.shape == DATA.x.shape
    torch.testing.assert_close(both.sum(-1).sort().values, DATA.x.sum(-1).sort().values)
    for part in (train, test):
        for row, y in zip(part.x[:5], part.clean[:5], strict=True):
            assert DATA.images.y[(DATA.x == row).all(-1)][0] == y


def test_a_portion_is_redrawn_and_half_of_it_stays_right():
    many = DATA.draw(PORTIONS, tuple(range(40)))
    wrong = (many.y != many.clean).double()
    assert (wrong[0] == 0).all() and (wrong[:, :, :].sum(-1)[1] <= 30).all()
    assert wrong.mean((-2, -1))[1:].tolist() == pytest.approx([0.25, 0.5], abs=0.04)
    assert (wrong[2] >= wrong[1]).all(), "a larger portion redraws the same labels and more"
    assert (many.y.abs() == 1).all()


def test_an_ensemble_is_the_loop_over_seeds():
    many = DATA.draw(PORTIONS, (1, 4))
    assert many.x.shape == (2, 60, 64) and many.y.shape == (3, 2, 60)
    for i, seed in enumerate((1, 4)):
        one = DATA.draw(PORTIONS, seed)
        assert (many.x[i] == one.x).all() and (many.y[:, i] == one.y).all() and (many.clean[i] == one.clean).all()


def test_bad_input_is_one_sentence():
    images = Images(torch.zeros(4, 2, 2), torch.tensor([1.0, -1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="n must be at most 3, so that an image is left .* got 4"):
        RedrawnLabels(images, 4)
    with pytest.raises(ValueError, match=r"portions must lie in \[0, 1\]; got \(0.5, 1.5\)"):
        DATA.draw((0.5, 1.5))
