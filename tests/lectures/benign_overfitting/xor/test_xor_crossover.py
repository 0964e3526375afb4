"""The crossing of network and kernel: the signal of a cell, the sizes, the exponent."""

import numpy as np
import pytest

from flbook.lectures.benign_overfitting.xor import angle_laws, xor_crossover
from flbook.lectures.benign_overfitting.xor.xor_crossover import Setting, experiment, samples


def test_the_signal_is_the_one_at_which_the_kernel_errs_on_a_quarter():
    n, d = np.array([50, 200, 5000]), np.array([400, 150, 30])
    mu = angle_laws.one_patch_kernel_border(n, d)
    np.testing.assert_allclose(angle_laws.one_patch_kernel_error(n, mu, d), 0.25)
    assert angle_laws.one_patch_kernel_border(10**8, 100, 0.25) ** 4 == pytest.approx(1.908 * 100 / 10**4, rel=1e-3)


def test_sizes_are_multiples_of_four():
    assert [samples(x, d) for x, d in ((4.0, 64), (8.0, 125), (0.01, 27))] == [64, 200, 4]
    book = experiment.setting("book")
    assert all(samples(x, d) == pytest.approx(x * d ** (2 / 3)) for x in book.x for d in book.d), "cubes"


def test_the_network_is_behind_with_few_samples_and_ahead_with_many():
    found = experiment.run(Setting(d=(64,), x=(4.0, 16.0), seed=tuple(range(6)))).squeeze("d")
    few, many = found.test_error.mean("seed").values
    assert few > 0.33 and many < 0.12
    assert abs(found.kernel_error.mean("seed") - 0.25).max() < 0.06


def test_the_exponent_is_that_of_the_crossing():
    setting = Setting(d=(27, 125), x=(4.0, 8.0, 16.0), seed=tuple(range(8)), points=200)
    found = experiment.run(setting)
    n = xor_crossover.crossover(found).values
    fit = xor_crossover.exponent(found)
    assert fit.value == pytest.approx(np.log(n[1] / n[0]) / np.log(125 / 27))
    assert fit.interval[0] < fit.value < fit.interval[1]
