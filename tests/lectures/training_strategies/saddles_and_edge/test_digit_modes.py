"""Digits to be copied: variances, and the two rises against their closed forms."""

import numpy as np
import pytest
import torch

from flbook.data.ten_digits import ten_digits
from flbook.lectures.training_strategies.saddles_and_edge import digit_modes


def test_variances_are_the_eigenvalues_of_the_covariance():
    x = ten_digits(200, 3).x.flatten(1)
    values = torch.linalg.eigvalsh(torch.cov(x.T)).flip(0)[:5]
    torch.testing.assert_close(digit_modes.variances(200, 5, (3,))[0], values / values[0])


def test_small_and_lazy_rises_are_those_of_theory():
    found = digit_modes.run(digit_modes.experiment.setting(seed=(0, 1), d=4, watched=3))
    width = found.width / found.half
    small = found.sel(start="small")
    np.testing.assert_allclose(width.sel(start="small"), digit_modes.expected(small), rtol=0.04)
    np.testing.assert_allclose(width.sel(start="lazy"), np.log(9) / np.log(2), rtol=0.05)
    np.testing.assert_allclose(small.half * small.variance, float((small.half * small.variance).mean()), rtol=0.1)
    np.testing.assert_allclose(found.share.sel(clock=1), 0.5, atol=0.03)


def test_the_lazy_start_puts_out_nothing():
    share, _ = digit_modes.learned(digit_modes.Setting(seed=(0,), d=3, watched=2), "lazy")
    assert abs(share[0]).max() < 1e-12 and share[-1, 0, 0] == pytest.approx(1, abs=1e-3)
