"""Tasks that drift: moments, the fixed task at memory 1, an ensemble, the sentences."""

import pytest
import torch

from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts


def test_the_task_forgets_at_the_rate_of_its_memory():
    drawn = DriftingPrompts(n=3, d=2, memory=0.8).draw(40000, seed=0)
    statistic = drawn.context.y[..., None] * drawn.context.x  # its mean, given the tasks, is the task of its example
    correlation = torch.einsum("bnd,bd->n", statistic, drawn.task) / (2 * 40000)
    torch.testing.assert_close(correlation.tolist(), [0.8**3, 0.8**2, 0.8], atol=0.05, rtol=0)
    assert drawn.task.var().item() == pytest.approx(1, abs=0.03)
    torch.testing.assert_close(drawn.target, torch.einsum("bqd,bd->bq", drawn.query, drawn.task))


def test_with_memory_one_it_is_a_fixed_task():
    drawn = DriftingPrompts(n=6, d=2, memory=1.0).draw(5, seed=0)
    torch.testing.assert_close(drawn.context.y, torch.einsum("bnd,bd->bn", drawn.context.x, drawn.task))
