"""A transformer on single-index prompts: it learns, and its risk is that of fresh prompts at every length."""

import pytest
import torch

from flbook.lectures.in_context_learning.low_dimensional_targets import pretrained_transformer as lecture
from flbook.shapes import Context


def test_training_lowers_the_loss_and_every_preset_is_a_setting():
    setting = lecture.experiment.setting("tiny", steps=60, d=(4,), r=(1,), lr=1e-2, warmup=5, batch=16)
    loss = lecture.experiment.measure(setting).loss.mean("seed").squeeze()
    assert loss[-10:].mean() < loss[:5].mean()
    assert lecture.experiment.setting("gpu").layers == 12
    with pytest.raises(ValueError, match="at most n = 4; got 9"):
        lecture.experiment.setting("tiny", context=(9,))


def test_the_risk_is_that_of_the_answer_to_the_next_example():
    setting = lecture.experiment.setting("tiny", points=3)
    cell = next(iter(lecture.experiment.cells(setting)))
    network = lecture.train(cell).model
    drawn = lecture.prompts(cell).draw(3, cell.seed, lecture.TEST, dtype=torch.float32)
    x, y = drawn.context
    with torch.no_grad():
        answer = network(Context(x[..., :1, :], y[..., :1]), x[..., 1:2, :])[..., 0]
    error = (answer - y[..., 1]).square().mean(-1)
    torch.testing.assert_close(torch.as_tensor(lecture.risk(cell, network)[:, 0]), error)
