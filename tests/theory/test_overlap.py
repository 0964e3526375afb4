"""Overlaps of statistics with a hidden direction: limits known by hand, and simulation."""

import numpy as np
import pytest

from flbook import hermite
from flbook.theory import overlap as single_index


def test_average_overlap_by_hand():
    assert single_index.average_overlap(4.0, 0.25) == 0.5
    assert single_index.average_overlap(np.array([0.0, 1e9]), 0.1) == pytest.approx([0, 1])


def test_step_alignment_by_hand():
    # signal 1, noise 2 * (1 - 2/4) / 1 = 1: cosine sqrt(3/4) / sqrt(2)
    assert single_index.step_alignment(1.0, 4, -1.0, 2.0) == pytest.approx(np.sqrt(3 / 8))
    assert single_index.step_alignment(1e12, 4, 1.0, 2.0) == pytest.approx(np.sqrt(3 / 4))
    # no signal, and a scatter as large as everything: as often on the wrong side
    assert single_index.step_alignment(1.0, 4, 0.0, 2.0, 4.0) == pytest.approx(0, abs=1e-12)
    assert single_index.step_alignment(1.0, 4, 1.0, 2.0, 0.5) < single_index.step_alignment(1.0, 4, 1.0, 2.0)


def test_threshold_of_real_phase_retrieval_is_one_half():
    assert single_index.matrix_threshold(hermite.best_strengths(hermite.he(2), 2)[2]) == pytest.approx(0.5)


def test_no_gate_starts_below_the_threshold_and_the_best_starts_there():
    link = hermite.he(2)  # E[z² | y] = 1 + √2 y, so the best gate is 1 - 1/z²

    def best(y):
        return 1 - 1 / np.maximum(1 + 2**0.5 * y, 1 / 50)

    assert single_index.matrix_overlap(0.49, best, link) < 0.01
    assert single_index.matrix_overlap(0.6, best, link) > 0.02
    assert single_index.matrix_overlap(0.5, np.tanh, link) == 0.0


@pytest.mark.parametrize("alpha", [2.0, 6.0])
def test_matrix_overlap_against_simulation(alpha):
    d, link = 300, hermite.he(2)
    x = np.random.default_rng(0).standard_normal((6, int(alpha * d), d))
    weight = np.tanh(link(x[..., 0]))
    vectors = np.linalg.eigh(np.einsum("sn,snd,snc->sdc", weight, x, x, optimize=True))[1]
    found = vectors[:, 0, -1] ** 2
    spread = found.std(ddof=1) / np.sqrt(6)
    assert abs(found.mean() - single_index.matrix_overlap(alpha, np.tanh, link)) < 4 * spread + 0.02
