"""Pictures with flipped labels at a tiny preset, and the CIFAR preset on made pictures in CIFAR's format."""

import pytest
import torch

from flbook.data.images import Images
from flbook.lectures.benign_overfitting.label_noise_stages import label_noise_images as pictures
from flbook.lectures.benign_overfitting.label_noise_stages.label_noise_images import experiment


@pytest.fixture
def made_cifar(monkeypatch):
    """Six made colour pictures a class for training and two to test on, whose red tells the class."""
    def made(classes, train=True):
        count = 12 if train else 4
        y = 1.0 - 2.0 * (torch.arange(count) % 2).double()
        pixels = torch.rand((count, 3, 32, 32), generator=torch.Generator().manual_seed(count), dtype=torch.float64)
        pixels[:, 0] += y[:, None, None]
        assert classes == ("airplane", "automobile")
        return Images(pixels, y)

    monkeypatch.setattr(pictures, "cifar10", made)


def test_the_cifar_preset_on_made_pictures(made_cifar):
    setting = experiment.setting("cifar", seed=(0, 1), n=6, batch=3, epochs=2)
    run = experiment.measure(setting).squeeze()
    assert run.epoch.values.tolist() == [0, 1, 2]
    assert run.test_accuracy.isel(epoch=-1).mean() >= 0.5
    task = pictures.problem(setting, "vgg", pictures.pictures("airplane automobile", 6, 0.2), "cpu")
    assert task.size == 3 and task.start()["w0"].shape == (2, 64, 3, 3, 3) and task.x.shape == (2, 6, 3, 32, 32)


TINY = experiment.setting("tiny", model=("network",), pair=("3 8",))


def test_flipped_pictures_come_last():
    run = experiment.measure(TINY.thinned(n=20, epochs=100, every=10)).squeeze()
    assert (run.train_clean[:, -1] == 1).all() and run.noise_flipped[:, -1].mean() > 0.9
    assert run.noise_flipped.min("epoch").mean() < 0.5
    assert run.small_loss[:, -1].mean() > run.small_loss.min("epoch").mean()
    assert 0 <= int(pictures.best_epoch(run)) <= 100
