"""What bad input gets: one sentence that names the argument, before any work."""


import re

import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import (
    Adam,
    BoundedDescent,
    GradientDescent,
    LabelNoise,
    Momentum,
    RMSProp,
    SharpnessAware,
    WeightDecay,
)

DATA = SignalNoise(n=4, d=12)
SAMPLE = DATA.draw(0)
CNN = TwoLayerCNN(12, 2, 0.1, dtype=torch.float64)
GRAM = GramTraining.of(DATA, SAMPLE, CNN)
NAN = float("nan")

RULES = [
    (lambda: GradientDescent(NAN), "lr must be a number above 0 or one number a member; got nan"),
    (lambda: GradientDescent(-1), "lr must be a number above 0 or one number a member; got -1"),
    (lambda: GradientDescent("fast"), "lr must be a number above 0 or one number a member; got 'fast'"),
    (lambda: GradientDescent(torch.tensor([0.1, -0.2])), "lr must be a number above 0 or one number a member; got .*"),
    (lambda: Momentum(0.1, 1.5), r"beta must be a number in \[0, 1\) or one number a member; got 1.5"),
    (lambda: BoundedDescent(0.1, 0.0), "share must be a number above 0 or one number a member; got 0.0"),
    (lambda: SharpnessAware(0.1, -1.0), "radius must be a number of at least 0 or one number a member; got -1.0"),
    (lambda: LabelNoise(0.1, 2), r"flip_prob must be a number in \[0, 1\] or one number a member; got 2"),
    (lambda: LabelNoise(0.1, 0.2, seed=-1), "seed must be a whole number of at least 0 or a tuple of .*; got -1"),
    (lambda: Adam(0.1, (0.9,)), r"betas must be a tuple of 2 values, each a number in \[0, 1\) or .*; got \(0.9,\)"),
    (lambda: Adam(0.1, epsilon=-1.0), "epsilon must be a number of at least 0 or one number a member; got -1.0"),
    (lambda: Adam(0.1, horizon=0), "horizon must be a whole number of at least 1 or None; got 0"),
    (lambda: RMSProp(0.1, 1.0), r"alpha must be a number in \[0, 1\) or one number a member; got 1.0"),
    (lambda: WeightDecay(GradientDescent(0.1), -0.1), "decay must be a number of at least 0 or .*; got -0.1"),
    (lambda: WeightDecay("fast", 0.1), "rule must be an optimizer; got 'fast'"),
]
PROBLEMS = [
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


@pytest.mark.parametrize("call, sentence", RULES + PROBLEMS)
def test_bad_input_is_one_sentence(call, sentence, without_type_checks):
    with pytest.raises(ValueError) as error:
        call()
    assert re.fullmatch(sentence, str(error.value)), str(error.value)
