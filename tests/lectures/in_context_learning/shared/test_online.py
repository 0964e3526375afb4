"""Online gradient descent: two steps by hand, its law, its sentence."""

import pytest
import torch

from flbook.data.prompts import LinearPrompts
from flbook.lectures.in_context_learning.shared import forgetting as theory
from flbook.lectures.in_context_learning.shared.online import LeastMeanSquares
from flbook.shapes import Context


def test_two_steps_by_hand():
    context = Context(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([2.0, 3.0]))
    query = torch.eye(2)
    assert LeastMeanSquares(0.5)(context, query).tolist() == [2.0, 1.0]  # (1, 0), then the error is 2
    assert LeastMeanSquares(0.5, falling=True)(context, query).tolist() == pytest.approx([5 / 3, 2 / 3])


@pytest.mark.parametrize("falling", [False, True])
def test_it_follows_its_law(falling):
    prompts = LinearPrompts(n=12, d=3, noise=0.7, queries=8).draw(20000, 0)
    answer = LeastMeanSquares(1 / 5, falling)(prompts.context, prompts.query)
    law = theory.falling_risk(3, 12, 0.7) if falling else theory.lms_risk(3, 12, 0.7)
    assert (answer - prompts.target).square().mean().item() == pytest.approx(float(law), rel=0.05)
