"""Digits as tokens: the grey values of scikit-learn, each picture once, batches a function of seed and step."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from flbook.lectures.foundation_models.distilled_attention.pixel_sequences import PixelSequences


def test_tokens_are_the_grey_values_each_picture_once():
    data = PixelSequences(n=1000, split=3)
    found = torch.cat([data.train, data.test]).numpy()
    images = load_digits().images.reshape(-1, 64).astype(int)
    assert data.train.shape == (1000, 64) and data.test.shape == (797, 64)
    np.testing.assert_array_equal(np.sort(found.view([("", found.dtype)] * 64).ravel()),
                                  np.sort(images.astype(found.dtype).view([("", found.dtype)] * 64).ravel()))
    assert not torch.equal(data.train, PixelSequences(n=1000, split=4).train)


def test_batches_come_from_the_training_pictures():
    data = PixelSequences(n=5)
    drawn = data.draw(40, seed=(0, 1), step=2).tokens
    assert drawn.shape == (2, 40, 64)
    assert all(any(torch.equal(one, picture) for picture in data.train) for one in drawn.flatten(0, 1))
    assert not torch.equal(drawn[0], data.draw(40, seed=0, step=3).tokens)


def test_frequencies_are_those_of_training():
    data = PixelSequences(n=200)
    p = data.frequencies(pseudo=0.5)
    torch.testing.assert_close(p.sum(-1), torch.ones(64))
    inked = (data.train[:, 20] == 16).sum()
    assert p[20, 16].item() == pytest.approx((inked + 0.5) / (200 + 17 * 0.5))


def test_bad_input_is_one_sentence():
    for n in (0, 1797):
        with pytest.raises(ValueError, match=r"^n must be a whole number in \[1, 1796\]"):
            PixelSequences(n=n)
