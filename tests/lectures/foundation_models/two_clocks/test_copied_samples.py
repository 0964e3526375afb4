"""Samples of readouts: what counts as a copy, and samples against the exact denoiser of one Gaussian."""

import pytest
import torch

from flbook.lectures.foundation_models.two_clocks import copied_samples


def test_a_copy_is_three_times_nearer_than_the_second():
    x = torch.tensor([[0.0], [4.0]]).double()
    y = torch.tensor([[[0.9], [1.1], [4.9], [-1.9]]]).double()
    assert copied_samples.share_of_copies(y, x).tolist() == [0.75]  # 0.9, 4.9 and -1.9, not 1.1


def test_pictures_have_variance_one_in_each_coordinate():
    x, new = copied_samples.draw(copied_samples.experiment.setting("tiny"), 1400, 0)
    assert x.shape == (1400, 8) and new.shape == (300, 8)
    torch.testing.assert_close(torch.cat([x, new]).std(0), torch.ones(8).double(), rtol=0.05, atol=0)


def test_noise_falls_and_long_training_copies():
    kept = copied_samples.levels()
    assert kept == sorted(kept) and kept[0] < 0.01 and kept[-1] > 0.95
    found = copied_samples.run(copied_samples.experiment.setting("tiny", n=(12,), m=200, pairs=2400, samples=60,
                                                                 s=(100.0, 1e7)))  # fmt: skip
    assert float(found.copied.isel(s=1).mean()) > 0.2 + float(found.copied.isel(s=0).mean())


def test_too_many_pictures_are_refused():
    with pytest.raises(ValueError, match="pictures are left"):
        copied_samples.experiment.setting(n=(1500,))
