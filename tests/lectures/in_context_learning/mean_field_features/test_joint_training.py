"""Joint training at two rates: what it conserves, when a slow attention takes off, and the clock of both."""

import numpy as np
import torch

from flbook.lectures.in_context_learning.mean_field_features import joint_training
from flbook.lectures.in_context_learning.shared import mean_field

TINY = joint_training.experiment.setting("tiny")


def test_second_layers_pay_for_attention():
    fine = TINY.thinned(tau=(1e6,), lr=0.004, slow=1.0, steps=1500)
    found = joint_training.run(fine)
    assert (found.second_layer > 0.1).all()
    np.testing.assert_allclose(found.second_layer, found.attention, rtol=0.005)


def test_slow_attention_takes_off_when_its_limit_ends():
    slow = TINY.thinned(tau=(1.0,), lr=0.02, steps=3000, every=100)
    ratio = joint_training.run(slow).onset.values[0] / joint_training.onset(slow).numpy()
    assert (np.abs(ratio - 1) < 0.1).all()


def test_the_end_of_the_slow_limit_depends_on_neither_its_steps_nor_where_it_is_read():
    rough, fine = joint_training.onset(TINY), joint_training.onset(TINY, growth=1000.0, relative=0.003)
    torch.testing.assert_close(rough, fine, rtol=0.03, atol=0.0)


def test_reached_by_hand():
    losses = torch.tensor([[3.0, 1.0, 2.0], [3.0, 3.0, 3.0], [1.0, 3.0, 1.0]])
    found = joint_training.reached(torch.tensor([0.0, 5.0, 7.0]), losses, 2.0)
    assert found[0] == 2.5 and found[1].isnan() and found[2] == 0


def test_the_static_flow_starts_at_the_loss_of_the_features():
    times, losses = joint_training.static(TINY, 3)
    np.testing.assert_allclose(losses[:, 0], mean_field.loss(*joint_training.problem(TINY)))
    assert times.tolist() == [0.0, TINY.lr, 2 * TINY.lr] and (losses.diff(dim=1) < 0).all()
