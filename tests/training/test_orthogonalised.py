"""Orthogonalised matrices: their singular values, and what few steps leave of small ones."""

import pytest
import torch

from flbook import rng
from flbook.training.orthogonalised import newton_schulz, polar_factor

TURNS = [torch.linalg.qr(rng.normal((n, n), 0, "turn", dtype=torch.float64)).Q for n in (4, 7)]


def matrix(*singular, tall=False):
    """A matrix 4 x 7, or 7 x 4, with these singular values."""
    made = TURNS[0] @ torch.diag(torch.tensor(singular, dtype=torch.float64)) @ TURNS[1][:4]
    return made.mT if tall else made


@pytest.mark.parametrize("tall", [False, True])
def test_the_polar_factor_has_singular_values_one_and_zero(tall):
    found = polar_factor(matrix(3.0, 1e-3, 1e-8, 0.0, tall=tall))
    torch.testing.assert_close(found, matrix(1.0, 1.0, 1.0, 0.0, tall=tall), rtol=0, atol=1e-7)
    many = polar_factor(torch.stack([matrix(1.0, 2.0, 3.0, 4.0), torch.zeros(4, 7, dtype=torch.float64)]))
    torch.testing.assert_close(many[0], matrix(1.0, 1.0, 1.0, 1.0))
    assert (many[1] == 0).all()


@pytest.mark.parametrize("tall", [False, True])
def test_newton_and_schulz_act_on_singular_values(tall):
    singular = torch.tensor([3.0, 0.2, 1e-4, 0.0], dtype=torch.float64)
    y = singular / torch.linalg.vector_norm(singular)
    for steps in (1, 2, 5):
        expected = y
        for _ in range(steps):
            expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
        found = newton_schulz(matrix(*singular.tolist(), tall=tall), steps)
        torch.testing.assert_close(found, matrix(*expected.tolist(), tall=tall), rtol=1e-9, atol=1e-12)
    grown = float(3.4445**5 * y[2])
    assert float(expected[2]) == pytest.approx(grown, rel=1e-2), "a small one grows by the first coefficient alone"


def test_newton_and_schulz_leave_zeros_and_refuse_no_steps():
    assert (newton_schulz(torch.zeros(2, 3, 3)) == 0).all()
    with pytest.raises(ValueError, match="steps"):
        newton_schulz(torch.eye(2), 0)
