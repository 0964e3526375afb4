"""Least squares of a design with more columns than rows or fewer, and the blocks in which its prompts are drawn."""

import torch
from torch import Tensor

BLOCK = 64  # prompts of one step: more prompts are more steps, so that fewer are the first of many


def solved(columns: Tensor, label: Tensor) -> Tensor:
    """Least squares; with more columns than prompts the shortest of the exact fits."""
    rows, size = columns.shape
    if rows >= 4 * size:  # far from square, where the normal equations are safe and cheap
        return torch.cholesky_solve((columns.mT @ label)[:, None], torch.linalg.cholesky(columns.mT @ columns))[:, 0]
    if rows >= size:
        q, r = torch.linalg.qr(columns)
        return torch.linalg.solve_triangular(r, (q.mT @ label)[:, None], upper=True)[:, 0]
    q, r = torch.linalg.qr(columns.mT)
    return q @ torch.linalg.solve_triangular(r.mT, label[:, None], upper=False)[:, 0]
