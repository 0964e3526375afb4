"""The pair beside the edge: its start, the exact recursion, and the two orders of its law."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.saddles_and_edge import unbalanced_pair as pair


def test_the_start_has_the_height_that_it_is_asked_for():
    training = pair.start(torch.tensor([0.2, 0.7], dtype=torch.float64), 0.3, (0, 1, 2), 6)
    h, residual = pair.trace(training, 0)
    torch.testing.assert_close(h[0], torch.full((2, 3), 0.3).double())
    assert (residual.abs() > 9e-7).all() and (residual.abs() < 1.1e-5).all()


def test_the_recursion_is_exact():
    training = pair.start(torch.tensor([0.4], dtype=torch.float64), 0.5, (3,), 6)
    h, z = (part[:, 0, 0] for part in pair.trace(training, 60))
    assert float(z.abs().max()) > 0.3, "a burst"
    torch.testing.assert_close(z[1:], -z[:-1] * (1 + h[:-1] + z[:-1] * (0.4 - z[:-1])), rtol=0, atol=1e-12)
    rise = 1.6 * z[:-1] - 2 * z[:-1] ** 2 + h[:-1] * z[:-1] ** 2
    torch.testing.assert_close(h[1:], h[:-1] + rise, rtol=0, atol=1e-12)


@pytest.mark.parametrize("c", [0.2, 0.5, 0.8])
def test_the_end_is_right_to_second_order(c):
    found = pair.run(pair.experiment.setting(c=(c,), height=(0.01, 0.03), seed=(0, 1), m=3))
    off = (found.end - pair.end(found.height, c)) / found.height**3
    first = (found.end + found.height) / found.height**2
    assert (abs(off) < 30).all()
    np.testing.assert_allclose(first.sel(height=0.01), (pair.end(0.01, c) + 0.01) / 1e-4, atol=0.3)
    np.testing.assert_allclose(found.peak.sel(height=0.01), pair.largest(0.01, c), rtol=0.02)


def test_what_is_spent_is_the_product_over_the_steps():
    training = pair.start(torch.tensor([0.3], dtype=torch.float64), 0.1, (0,), 5)
    _, z = pair.trace(training, 323)
    found = pair.run(pair.experiment.setting(c=(0.3,), height=(0.1,), seed=(0,), m=5))
    assert float(found.spent.squeeze()) == pytest.approx(float((1 - z[:-1] ** 2).prod()), rel=1e-8)
