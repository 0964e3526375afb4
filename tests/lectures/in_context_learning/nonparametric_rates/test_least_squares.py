"""Least squares against the pseudo-inverse."""

import torch

from flbook.lectures.in_context_learning.nonparametric_rates.least_squares import solved


def test_least_squares_on_either_side():
    for rows in (4, 7, 30):
        columns, label = torch.randn(rows, 7, dtype=torch.float64), torch.randn(rows, dtype=torch.float64)
        torch.testing.assert_close(solved(columns, label), torch.linalg.pinv(columns) @ label)
