"""Pictures with flipped labels: balanced, exactly flipped, standardised, and tested on others."""

import pytest
import torch

from flbook.data.images import Images, digits
from flbook.lectures.benign_overfitting.label_noise_stages.flipped_images import FlippedImages


def coloured(count: int, seed: int = 0) -> Images:
    """Made pictures with three channels."""
    pixels = torch.rand((count, 3, 8, 8), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Images(pixels, 1.0 - 2.0 * (torch.arange(count) % 2).double())


def test_the_sample():
    data = FlippedImages(digits((3, 8)), n=50, flip_prob=0.2)
    sample, test = data.draw((0, 1)), data.draw_test((0, 1))
    assert sample.x.shape == (2, 50, 1, 8, 8) and test.x.shape == (2, 357 - 50, 1, 8, 8)
    assert (sample.y.sum(-1) == 0).all() and ((sample.y != sample.observed).sum(-1) == 10).all()
    assert torch.equal(test.y, test.observed)
    for k in (0, 1):
        near = torch.cdist(sample.x[k].flatten(1), test.x[k].flatten(1))
        assert near.min() > 0, "no picture is in both"


def test_labels_belong_to_their_pictures():
    images = digits((3, 8))
    data = FlippedImages(images, n=20)
    every = (images.pixels - images.pixels.mean()) / images.pixels.std()
    for sample in (data.draw(3), data.draw_test(3)):
        places = torch.cdist(sample.x.flatten(1), every.flatten(1)).argmin(-1)
        assert torch.equal(images.y[places], sample.y)


def test_channels_are_standardised():
    data = FlippedImages(coloured(40), n=30)
    both = torch.cat([data.draw(0).x, data.draw_test(0).x])
    assert both.shape == (40, 3, 8, 8)
    torch.testing.assert_close(both.mean((0, 2, 3)), torch.zeros(3).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(both.std((0, 2, 3)), torch.ones(3).double())


def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="n must lie between 2 and 347, since the smaller class has 174.*got 400"):
        FlippedImages(digits((3, 8)), n=400)
