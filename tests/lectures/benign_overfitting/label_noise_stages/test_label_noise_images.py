"""Pictures with flipped labels at a tiny preset, and the CIFAR preset on made pictures in CIFAR's format."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.data.images import Images
from flbook.lectures.benign_overfitting.label_noise_stages import label_noise_images as pictures
from flbook.lectures.benign_overfitting.label_noise_stages.label_noise_images import Setting, measure
from flbook.runs import results, settings

TINY = Setting(seed=(0, 1), n=30, epochs=12, every=6)


def test_a_labelled_dataset():
    setting = replace(TINY, model=("network", "linear", "lazy"), pair=("3 8", "1 7"), flip_prob=(0.1, 0.2), epochs=2,
                      every=1)
    dataset = measure(setting)
    assert dataset.epoch.values.tolist() == [0, 1, 2]
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    for name in ("train_clean", "noise_flipped", "test_accuracy"):
        assert ((dataset[name] >= 0) & (dataset[name] <= 1)).all()


def test_flipped_pictures_come_last():
    run = measure(replace(TINY, n=20, epochs=100, every=10)).squeeze()
    assert (run.train_clean[:, -1] == 1).all() and run.noise_flipped[:, -1].mean() > 0.9
    assert run.noise_flipped.min("epoch").mean() < 0.5
    assert run.small_loss[:, -1].mean() > run.small_loss.min("epoch").mean()
    assert 0 <= int(pictures.best_epoch(run)) <= 100


def test_a_cell_does_not_see_the_grid_around_it():
    whole = measure(replace(TINY, pair=("3 8", "1 7")))
    one = measure(replace(TINY, pair=("1 7",), seed=(1,)))
    for name in one:
        np.testing.assert_allclose(one[name].squeeze(), whole[name].sel(pair="1 7", seed=1).squeeze(), atol=0.04)


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
    setting = replace(Setting.cifar(), seed=(0, 1), n=6, batch=3, epochs=2)
    run = measure(setting).squeeze()
    assert run.epoch.values.tolist() == [0, 1, 2]
    assert run.test_accuracy.isel(epoch=-1).mean() >= 0.5
    task = pictures.problem(setting, "vgg", pictures.pictures("airplane automobile", 6, 0.2), "cpu")
    assert task.size == 3 and task.start()["w0"].shape == (2, 64, 3, 3, 3) and task.x.shape == (2, 6, 3, 32, 32)


def test_presets_can_be_run():
    for preset in (Setting.book, Setting.rivals, Setting.paper, Setting.cifar):
        pictures.check(preset())
        assert settings.to_json(preset())
    cifar = Setting.cifar()
    assert (cifar.n, cifar.flip_prob, cifar.epochs, cifar.model) == (10000, (0.2,), 60, ("vgg",))


def test_bad_settings_are_one_sentence():
    for change, sentence in [
        (dict(flip_prob=(0.01,)), "flip_prob must leave at least one flipped and one clean picture .*got 0.01"),
        (dict(model=("mlp",)), "model must be among network, linear, lazy, vgg; got 'mlp'"),
        (dict(every=20), "every must lie between 1 and epochs = 12; got 20"),
        (dict(flip_prob=(0.7,)), r"flip_prob must lie in \[0, 1/2\)"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            pictures.run(replace(TINY, **change))


def test_the_stored_result_again():
    kept = results.open("label_noise_images")
    one = replace(Setting.paper(), model=("network",), pair=("4 9",), flip_prob=(0.1,), seed=(2,), epochs=20, every=10)
    again = measure(one).squeeze()
    expected = kept.sel(model="network", pair="4 9", flip_prob=0.1, seed=2)
    for epoch in (0, 10, 20):
        found, stored = (run.test_accuracy.sel(epoch=epoch) for run in (again, expected))
        np.testing.assert_allclose(found, stored, atol=0.03)
