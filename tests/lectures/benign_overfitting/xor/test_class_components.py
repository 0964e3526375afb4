"""Principal components of the classes on XOR in one patch: their closed form, and clusters without noise."""

import pytest
import torch

from flbook.lectures.benign_overfitting.xor import angle_laws, class_components
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise


@pytest.mark.parametrize("n, mu_norm, d", [(200, 2.0, 150), (400, 1.5, 100), (100, 3.0, 400)])
def test_they_err_as_the_closed_form_says(n, mu_norm, d):
    found = class_components.errors(n, mu_norm, d, tuple(range(10)))
    assert float(found.mean()) == pytest.approx(float(angle_laws.one_patch_components_error(n, mu_norm, d)), abs=0.06)


def test_below_the_transition_they_guess():
    assert angle_laws.one_patch_components_error(100, [0.5, 1.0, 1.4], 400).tolist() == [0.5, 0.5, 0.5]
    assert abs(float(class_components.errors(100, 1.4, 400, tuple(range(6))).mean()) - 0.5) < 0.05


def test_clusters_without_noise():
    data = XorSignalNoise(n=20, d=10, mu_norm=2.0, flip_prob=0.0).draw(0)
    found = class_components.outputs(data.x[:, 0], data.observed, data.x[:, 0])
    torch.testing.assert_close(found, 4 * data.y)
