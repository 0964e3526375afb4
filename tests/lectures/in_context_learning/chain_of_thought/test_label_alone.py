"""The label alone: a sum of two bits is learned, and batches come from a member's own samples."""

import torch

from flbook.lectures.in_context_learning.chain_of_thought import label_alone


def test_a_product_of_two_bits_is_learned():
    setting = label_alone.experiment.setting("tiny", k=(2,), n=(400,), width=64, steps=400, batch=64)
    found = label_alone.run(setting)
    assert found.test.min() > 0.9 and found.train.min() > 0.95


def test_batches_are_a_members_own_and_a_function_of_the_step():
    x = torch.arange(2 * 6.0).reshape(2, 6, 1)
    samples = label_alone.Samples(x, x[..., 0], torch.tensor([2, 6]))
    one, again, later = (samples.draw(50, 0, step, "cpu") for step in (3, 3, 4))
    assert set(one.y[0].tolist()) == {0, 1} and set(one.y[1].tolist()) == set(map(float, range(6, 12)))
    assert torch.equal(one.y, again.y) and not torch.equal(one.y, later.y)
    assert torch.equal(one.x[..., 0], one.y)
