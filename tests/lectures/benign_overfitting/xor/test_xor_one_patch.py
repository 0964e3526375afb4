"""XOR in one patch at a tiny preset: the network finds the clusters, lazy and linear do not."""

import numpy as np
import pytest
import torch

from flbook.lectures.benign_overfitting.xor import angle_laws, xor_one_patch
from flbook.lectures.benign_overfitting.xor.xor_one_patch import Setting

TINY = Setting.tiny().thinned(n=(100,), steps=60, points=200)


def test_the_patch_is_the_sum_of_the_two():
    problem = xor_one_patch.task(TINY, "network", 12, 60, 2.0)
    assert problem.x.shape == (2, 12, 1, 60)
    lazy = xor_one_patch.task(TINY, "lazy", 12, 60, 2.0)
    torch.testing.assert_close(lazy.predict(lazy.start()), problem.predict(problem.start()))


def test_the_closed_form():
    assert angle_laws.one_patch_lazy_error(400, 5.0, 400) == pytest.approx(0.309, abs=0.001)
    assert angle_laws.one_patch_lazy_error(100, np.array([0.0, 100.0]), 200).tolist() == pytest.approx([0.5, 0.0])
