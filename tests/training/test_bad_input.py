"""What bad input gets: one sentence that names the argument, before any work."""

import re

import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import BoundedDescent, WeightDecay

DATA = SignalNoise(n=4, d=12)
SAMPLE = DATA.draw(0)
CNN = TwoLayerCNN(12, 2, 0.1, dtype=torch.float64)
GRAM = GramTraining.of(DATA, SAMPLE, CNN)
NAN = float("nan")

REFUSED = [
    (lambda: WeightDecay("fast", 0.1), "rule must be an optimizer; got 'fast'"),
    (lambda: Training(CNN, SAMPLE.x * NAN, SAMPLE.observed), "x must be finite; found nan"),
    (lambda: Training(CNN, SAMPLE.x / 0, SAMPLE.observed), "x must be finite; found (inf|-inf|nan)"),
    (lambda: GRAM.predict(GRAM.start(), SAMPLE.x), "GramTraining takes no x: it is trained on what it was made of"),
    (lambda: GRAM.gradient(GRAM.start(), x=SAMPLE.x), "GramTraining takes no x: .*"),
    (lambda: GRAM.train_loss(GRAM.start(), x=SAMPLE.x), "GramTraining takes no x: .*"),
    (lambda: Training(CNN, SAMPLE.x, SAMPLE.observed).frozen(), "Training has no frozen rival"),
    (lambda: Training(CNN, SAMPLE.x, SAMPLE.observed).linear(), "Training has no linear rival"),
    (lambda: GRAM.lazy().frozen().lazy(), "FrozenGramTraining has no lazy rival"),
    (lambda: fit(GRAM, WeightDecay(BoundedDescent(0.1), 0.1), 1), "BoundedDescent finds its step size in the step, .*"),
]


@pytest.mark.parametrize("call, sentence", REFUSED)
def test_bad_input_is_one_sentence(call, sentence, without_type_checks):
    with pytest.raises(ValueError) as error:
        call()
    assert re.fullmatch(sentence, str(error.value)), str(error.value)
