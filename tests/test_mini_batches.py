"""Mini-batches: every sample once a pass, each gradient that of its batch, ensembles alike."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.models import TwoLayerCNN
from flbook.optimizers import GradientDescent
from flbook.train import MiniBatches, Training, fit

SAMPLE = SignalNoise(n=7, d=4, mu_norm=1.0).draw((0, 1))


def problems(size, seed=0):
    """The whole problem and its batches, on two networks."""
    cnn = TwoLayerCNN(4, 2, 0.5, seed=(0, 1), dtype=torch.float64)
    return Training(cnn, SAMPLE.x, SAMPLE.observed), MiniBatches(cnn, SAMPLE.x, SAMPLE.observed, size=size, seed=seed)


def test_a_batch_of_all_is_the_whole():
    whole, batches = problems(7)
    for name, grad in whole.gradient(whole.start()).items():
        torch.testing.assert_close(batches.gradient(whole.start())[name], grad)


def test_a_pass_takes_every_sample_once():
    whole, batches = problems(1)
    grads = torch.stack([batches.gradient(whole.start())["w"] for _ in range(7)]).mean(0)
    torch.testing.assert_close(grads, whole.gradient(whole.start())["w"])
    whole, batches = problems(3)
    batches.gradient(whole.start())
    assert [len(places) for places in batches.waiting] == [3], "what is left of a pass is dropped"


def test_other_labels_and_the_same_batches_again():
    whole, batches = problems(3)
    _, again = problems(3)
    one, other = batches.gradient(whole.start()), again.gradient(whole.start(), observed=-SAMPLE.observed)
    assert not torch.equal(one["w"], other["w"])
    first, second = (fit(problems(3)[1], GradientDescent(0.1), 20).params for _ in range(2))
    assert torch.equal(first["w"], second["w"])
    whole = problems(3)[0]
    assert (whole.train_loss(first) < whole.train_loss(whole.start())).all()


def test_bad_size():
    with pytest.raises(ValueError, match="size must lie between 1 and n = 7, samples of a batch; got 8"):
        problems(8)
