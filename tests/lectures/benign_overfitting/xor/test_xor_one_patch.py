"""XOR in one patch at a tiny preset: the network finds the clusters, lazy and linear do not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting.xor import angle_laws, xor_one_patch
from flbook.lectures.benign_overfitting.xor.xor_one_patch import Setting, measure
from flbook.runs import results, settings

TINY = Setting(n=(100,), d=(60,), mu=(1.0, 4.0), seed=(0, 1), steps=60, points=200)


def test_a_labelled_dataset():
    setting = replace(TINY, n=(8, 12), steps=2)
    dataset = measure(setting)
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name


def test_only_features_find_it():
    error = measure(TINY).test_error.squeeze().mean("seed")
    assert error.sel(model="network", mu=4.0) < 0.05
    assert error.sel(model="lazy", mu=4.0) > error.sel(model="network", mu=4.0) + 0.1
    assert abs(error.sel(model="linear") - 0.5).max() < 0.06
    assert (error.sel(mu=1.0) > 0.35).all()


def test_the_patch_is_the_sum_of_the_two():
    problem = xor_one_patch.task(TINY, "network", 12, 60, 2.0)
    assert problem.x.shape == (2, 12, 1, 60)
    lazy = xor_one_patch.task(TINY, "lazy", 12, 60, 2.0)
    torch.testing.assert_close(lazy.predict(lazy.start()), problem.predict(problem.start()))


def test_the_closed_form():
    assert angle_laws.one_patch_lazy_error(400, 5.0, 400) == pytest.approx(0.309, abs=0.001)
    assert angle_laws.one_patch_lazy_error(100, np.array([0.0, 100.0]), 200).tolist() == pytest.approx([0.5, 0.0])


def test_bad_settings_are_one_sentence():
    for change, sentence in [
        (dict(model=("deep",)), "model must be among network, lazy, linear; got 'deep'"),
        (dict(n=(2,)), "n must be at least 4"),
        (dict(mu=(0.0,)), "mu_norm must be positive"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            xor_one_patch.run(replace(TINY, **change))


def test_the_stored_result_again():
    kept = results.open("xor_one_patch")
    one = replace(Setting.paper(), model=("network",), n=(100,), d=(100,), mu=(4.0,))
    expected = kept.test_error.sel(model="network", n=100, d=100, mu=4.0)
    np.testing.assert_allclose(measure(one).test_error.squeeze(), expected, atol=0.02)
