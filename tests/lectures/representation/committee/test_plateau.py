"""The plateau of small steps: the equations stand still there, and leave it at the rate of the closed form."""

import numpy as np
import pytest
from scipy.special import erf

from flbook.lectures.representation.committee import plateau
from flbook.lectures.representation.committee.order_parameters import Committee


@pytest.mark.parametrize("M", [2, 3, 5])
def test_the_equations_stand_still_at_its_place(M):
    at, rule = plateau.students(M, 0.0, plateau.place(M)), Committee(M, M, lr=1e-9)
    assert rule.risk(at) == pytest.approx(plateau.height(M), rel=1e-11)
    assert max(np.abs(change).max() for change in rule.rate(at).values()) < 1e-17


@pytest.mark.parametrize("M", [2, 3, 5])
def test_a_difference_grows_at_the_rate(M):
    small, rule = 1e-5, Committee(M, M, lr=1e-7)
    mode = np.eye(M) - 1 / M
    ends = [rule.rate(plateau.students(M, a, plateau.place(M) - a / M))["R"] for a in (small, -small)]
    grown = ((ends[0] - ends[1]) * mode).sum() / (2 * small * (mode**2).sum())
    assert grown / 1e-7 == pytest.approx(plateau.rate(M), rel=1e-6)


@pytest.mark.parametrize("M", [2, 4])
def test_it_lies_below_the_lowest_of_its_kind_and_below_the_best_linear_model(M):
    near = [Committee(M, M).risk(plateau.students(M, 0.0, plateau.place(M) * f)) for f in (0.97, 1.03)]
    assert plateau.height(M) < min(near) and plateau.height(M) < plateau.linear(M)


def test_the_best_linear_model_by_quadrature():
    nodes, weight = np.polynomial.hermite_e.hermegauss(80)
    g, weight = erf(nodes / 2**0.5), weight / weight.sum()
    assert plateau.linear(2) == pytest.approx(weight @ g**2 - (weight @ (g * nodes)) ** 2, rel=1e-6)
