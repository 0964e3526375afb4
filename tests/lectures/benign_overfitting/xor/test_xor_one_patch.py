"""XOR in one patch at a tiny preset: the network finds the clusters, lazy and linear do not."""

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting.xor import angle_laws, xor_one_patch
from flbook.lectures.benign_overfitting.xor.xor_one_patch import experiment

TINY = experiment.setting("tiny", n=(100,), steps=60, points=200)


def test_the_patch_is_the_sum_of_the_two():
    problem = xor_one_patch.task(TINY, "network", 12, 60, 2.0)
    assert problem.x.shape == (2, 12, 1, 60)
    lazy = xor_one_patch.task(TINY, "lazy", 12, 60, 2.0)
    torch.testing.assert_close(lazy.predict(lazy.start()), problem.predict(problem.start()))


def test_the_closed_form():
    assert angle_laws.one_patch_lazy_error(400, 5.0, 400) == pytest.approx(0.309, abs=0.001)
    assert angle_laws.one_patch_lazy_error(100, np.array([0.0, 100.0]), 200).tolist() == pytest.approx([0.5, 0.0])


def test_the_mirrored_network_sees_every_sample_twice():
    plain, twice = (xor_one_patch.task(TINY, model, 12, 60, 2.0) for model in ("network", "mirrored"))
    torch.testing.assert_close(twice.x, torch.cat([plain.x, -plain.x], 1))
    torch.testing.assert_close(twice.observed, plain.observed.repeat(1, 2))
    # Filters of zero length have no gate; at small ones the sum that all filters share is gone.
    small = xor_one_patch.Setting(seed=(0, 1), start=1e-6, m=400)
    along = [xor_one_patch.task(small, model, 40, 60, 2.0) for model in ("network", "mirrored")]
    shared = [task.gradient(task.start())["w"].mean(-2).norm() for task in along]
    assert shared[1] < 0.1 * shared[0]


def test_mirror_images_help():
    setting = TINY.thinned(model=("network", "mirrored"), mu=(1.75,), seed=tuple(range(6)))
    error = experiment.measure(setting).test_error.mean("seed").squeeze()
    assert float(error.sel(model="mirrored")) < float(error.sel(model="network")) - 0.1
