"""The quadratic kernel on XOR in one patch: its closed form, and that it fits what it is asked to fit."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting.xor import angle_laws, quadratic_kernel

SEEDS = tuple(range(20))


@pytest.mark.parametrize("mu_norm", [1.0, 2.5, 3.0])
def test_the_average_errs_as_the_closed_form_says(mu_norm):
    found = quadratic_kernel.errors(100, mu_norm, 300, SEEDS, fitted=False)
    assert float(found.mean()) == pytest.approx(float(angle_laws.one_patch_kernel_error(100, mu_norm, 300)), abs=0.02)


def test_fitting_the_labels_changes_little_where_samples_are_few():
    fitted, average = (quadratic_kernel.errors(60, 3.5, 200, SEEDS, fitted) for fitted in (True, False))
    assert abs(float(fitted.mean() - average.mean())) < 0.03
    assert (fitted != average).any()


def test_more_samples_than_products_of_coordinates():
    assert float(quadratic_kernel.errors(80, 4.0, 6, (0, 1)).mean()) < 0.1


def test_the_closed_form():
    found = angle_laws.one_patch_kernel_error(200, np.array([0.0, 2.5, 100.0]), 150)
    assert found.tolist() == pytest.approx([0.5, 0.1231, 0.0], abs=1e-4)
