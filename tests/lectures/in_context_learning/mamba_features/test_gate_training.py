"""Trained gates: members do not see each other, and training is by the gradient of the loss that is written down."""

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.lectures.in_context_learning.mamba_features import gate_training
from flbook.lectures.in_context_learning.mamba_features.gates import silu
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts

SEEDS = (0, 1, 2)
DATA = SingleIndexPrompts(n=12, d=4, r=4, link=hermite.he(3).coefficients, queries=3)


def test_the_loss_is_that_of_a_loop_over_examples():
    prompts, gate = DATA.draw(2, SEEDS), gate_training.random_gate(5, SEEDS)
    gate["c"] += torch.tensor([0.3, -0.2, 1.0])
    for member, found in enumerate(gate_training.loss(gate, *prompts[:3]).tolist()):
        errors = []
        for prompt in range(2):
            x, y = (part[member, prompt] for part in prompts.context)
            state = torch.zeros(4, dtype=torch.float64)
            for row, label in zip(x, y, strict=True):
                state = 0.5 ** (1 / 12) * state + gate_training.written(gate, member, label[None].numpy())[0] * row
            z = prompts.query[member, prompt] @ state / state.norm()
            errors.append(gate["c"][member] * (z**3 - 3 * z) / 6**0.5 - prompts.target[member, prompt])
        assert found == pytest.approx(float(torch.stack(errors).square().mean() / 2))


def test_members_train_alone_and_improve():
    prompts, start = DATA.draw(4, SEEDS), gate_training.random_gate(5, SEEDS)
    together = gate_training.train(start, *prompts[:3], 20, 0.05)
    one = {name: value[1:2] for name, value in start.items()}
    alone = gate_training.train(one, *DATA.draw(4, SEEDS[1:2])[:3], 20, 0.05)
    for name, value in alone.items():
        torch.testing.assert_close(together[name][1:2], value)
    assert (gate_training.loss(together, *prompts[:3]) < gate_training.loss(start, *prompts[:3])).all()


def test_the_strength_is_that_of_the_written_gate():
    gate = {name: torch.tensor([[value]]).double() for name, value in (("w", -2.0), ("b", 0.5), ("v", 3.0))}
    found = gate_training.strengths(gate | {"c": torch.zeros(1)})
    expected = hermite.strength(lambda y: silu(-2 * y + 0.5), gate_training.LINK, 1)
    np.testing.assert_allclose(found, [expected])
