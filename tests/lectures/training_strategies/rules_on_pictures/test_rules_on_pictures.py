"""Mixtures by hand; the trace exactly; CIFAR-10's own format; what was tuned."""

import numpy as np
import pytest
import torch

from flbook.data import crops, images
from flbook.data.crops import TwoClassPictures
from flbook.lectures.training_strategies import rules_on_pictures as lecture
from flbook.lectures.training_strategies.rules_on_pictures import mixing, picture_tuning
from flbook.lectures.training_strategies.rules_on_pictures.tuned import TUNED
from flbook.models.convnet import ConvNet
from flbook.training.losses import logistic
from flbook.training.network import Training, sample_gradients


def test_soft_labels_are_the_mean_of_both_classes():
    f, one = torch.tensor([-1.5, 0.3, 2.0]), torch.ones(3)
    both = 0.7 * logistic(f, one) + 0.3 * logistic(f, -one)
    torch.testing.assert_close(mixing.soft_logistic(f, (0.7 - 0.3) * one), both)
    with pytest.raises(ValueError, match="from -1 to 1"):
        mixing.soft_logistic.check(torch.tensor([1.5]))


def test_a_rectangle_is_pasted():
    x, other = torch.zeros(1, 3, 1, 8, 8), torch.ones(1, 3, 1, 8, 8)
    mixed, share = mixing.pasted(x, other, 0.25, (0.5, 0.5))
    assert share == 0.75 and mixed.sum() == 3 * 16 and mixed[0, 0, 0, 2:6, 2:6].all()
    assert mixing.pasted(x, other, 0.25, (0.0, 0.0))[1] == 1 - 4 / 64


def test_mixed_batches_mix_pictures_and_labels_alike():
    sample = TwoClassPictures("digits", n=20).draw((0,))
    training = Training(ConvNet((1, 8, 8), (2,), classes=1, seed=(0,)), sample.x, sample.y, mixing.soft_logistic)
    plain, mixed = (mixing.MixedBatches(training, 20, mix=mix).at(0) for mix in ("none", "mixup"))
    weights = torch.linalg.lstsq(plain.x[0].flatten(1).double().T, mixed.x[0].flatten(1).double().T).solution
    torch.testing.assert_close(weights.sum(0), torch.ones(20, dtype=torch.float64), rtol=0, atol=1e-3)
    torch.testing.assert_close(plain.observed[0].double() @ weights, mixed.observed[0].double(), rtol=0, atol=1e-3)


def test_the_trace_by_all_signs_is_the_sum_over_samples():
    sample = TwoClassPictures("digits", n=6).draw((0,))
    net = ConvNet((1, 8, 8), (2,), classes=1, seed=(0,), dtype=torch.float64)
    training = Training(net, sample.x, sample.y, mixing.soft_logistic)
    params = training.start()
    curvature = training.loss.curvature(training.predict(params), training.observed)
    exact = (curvature * sample_gradients(training, params, training.x).square().sum(-1)).mean(-1)
    torch.testing.assert_close(lecture.hessian_trace(training, params, probes=400), exact, rtol=0.15, atol=0)


def test_what_is_tuned_is_what_the_stored_tuning_chose():
    assert picture_tuning.chosen(picture_tuning.experiment.stored()) == TUNED


def test_the_cifar_preset_on_a_made_file_of_the_real_format(tmp_path, monkeypatch):
    def files(names):
        for name in names:
            draws = np.random.default_rng(len(name))
            rows = draws.integers(0, 256, (24, images.CIFAR10_ROW), dtype=np.uint8)
            rows[:, 0] = np.where(np.arange(24) % 2, 5, 3)  # dogs and cats
            rows.tofile(tmp_path / name)
        return [tmp_path / name for name in names]

    monkeypatch.setattr(images, "_cifar10_files", files)
    crops.stored.cache_clear()
    lecture.unseen.cache_clear()
    setting = lecture.experiment.setting(
        "cifar", rule=("label noise", "Adam", "CutMix"), seed=(0, 1), n=40, epochs=2, width=2, held_out=20, fresh=20)
    found = lecture.experiment.measure(setting).squeeze()
    assert found["last"].shape == (2, 3, 2) and bool(np.isfinite(found["last"]).all())
    crops.stored.cache_clear()
    lecture.unseen.cache_clear()
