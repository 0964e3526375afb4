"""Parts of a target by their degree, what functions chosen in advance miss, and the best kernel."""

import math

import numpy as np
import pytest
import torch
from scipy.special import erf

from flbook.lectures.representation.kernels_and_one_step import harmonics
from flbook.models import kernels
from flbook.theory import one_step


def test_dimensions_fill_the_polynomials():
    for d in (3, 8, 31):
        assert harmonics.dimension(d, 1) == d and harmonics.dimension(d, 3) == d * (d - 1) * (d + 4) // 6
        cubic = harmonics.dimension(d, 3) + harmonics.dimension(d, 1)  # homogeneous cubics: |x|^2 x_i is of degree one
        assert cubic == math.comb(d + 2, 3)


def test_a_cube_has_the_parts_that_one_computes_by_hand():
    d = 12  # z^3 = (z^3 - 3 |x|^2 z/(d + 2)) + 3 |x|^2 z/(d + 2)
    inside, rest = harmonics.norms(lambda z: z**3, d)
    one = 9 * (d + 4) / (d + 2)  # E |x|^4 z^2 = (d + 2)(d + 4)
    np.testing.assert_allclose(inside[[1, 3]], [one, 15 - one], rtol=1e-8)
    assert abs(rest) < 1e-8 and abs(inside[[0, 2, 4]]).max() < 1e-12


def test_all_parts_together_are_the_target_and_the_bend_is_the_limit():
    parts = one_step.parts(erf)
    for d in (8, 128, 2048):
        inside, rest = harmonics.norms(erf, d)
        assert inside.sum() + rest == pytest.approx(parts.square, rel=1e-6)
    assert harmonics.floor(2048, erf, 2048) == pytest.approx(one_step.nonlinear_floor(parts), rel=0.002)


def test_the_floor_falls_from_the_whole_to_nothing():
    inside, _ = harmonics.norms(erf, 10)
    assert harmonics.floor(0, erf, 10) == pytest.approx(one_step.parts(erf).square, rel=1e-6)
    assert harmonics.floor(5, erf, 10) - harmonics.floor(10, erf, 10) == pytest.approx(inside[1] / 2)
    assert harmonics.floor(10**8, erf, 10) < 0.001


def test_it_bounds_spaces_of_functions():
    """Random features, the kernel's functions, and inputs: least squares over many points, averaged over directions."""
    torch.manual_seed(0)
    d, points = 8, 10000
    x = torch.randn(points, d, dtype=torch.float64)
    beta = torch.randn(d, 400, dtype=torch.float64)
    targets = torch.erf(x @ (beta / beta.norm(dim=0)))
    centres = torch.randn(60, d, dtype=torch.float64) / d**0.5
    spaces = {"inputs": x, "features": torch.erf(2 * x @ centres.T), "kernel": kernels.arcsine(x / d**0.5, centres)}
    for name, functions in spaces.items():
        q, _ = torch.linalg.qr(functions)
        missed = ((targets - q @ (q.T @ targets)) ** 2).mean().item()
        assert missed > 0.97 * harmonics.floor(functions.shape[1], erf, d), name
    assert missed < 1.1 * harmonics.floor(60, erf, d), "the floor is not far off"


def test_best_kernel_falls_from_the_line_to_below_its_risk():
    line = one_step.nonlinear_floor(one_step.parts(erf))
    risks = [harmonics.kernel_risk(n, erf, 16, 0.1) for n in (64, 800, 8000)]
    assert risks == sorted(risks, reverse=True) and risks[0] > line > 1.5 * risks[1]
    n = harmonics.kernel_samples(line / 2, erf, 16, 0.1)
    assert harmonics.kernel_risk(n, erf, 16, 0.1) == pytest.approx(line / 2, rel=1e-4)
