"""What bad input gets: one sentence that names the argument, before any work."""

import re

import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.lectures.training_strategies.federated_learning.clients import FederatedAveraging
from flbook.models import TwoLayerCNN
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import (
    Adam,
    BoundedDescent,
    GradientDescent,
    LabelNoise,
    LabelSmoothing,
    Momentum,
    SharpnessAware,
    SignDescent,
    Then,
    WeightDecay,
)

DATA = SignalNoise(n=4, d=12)
SAMPLE = DATA.draw(0)
CNN = TwoLayerCNN(12, 2, 0.1, dtype=torch.float64)
GRAM = GramTraining.of(DATA, SAMPLE, CNN)
STILL = SAMPLE.x.clone()
STILL[..., -3:] = 0  # coordinates that no sample has: 3 for each of 4 filters
WEIGHTS = Training(CNN, STILL, SAMPLE.observed)
TWO = Training(TwoLayerCNN(12, 2, 0.1, seed=(0, 1)), SAMPLE.x, SAMPLE.observed)
NAN = float("nan")

REFUSED = [
    (lambda: WeightDecay("fast", 0.1), "rule must be an optimizer; got 'fast'"),
    (lambda: Then("fast", 2, GradientDescent(0.1)), "first must be an optimizer; got 'fast'"),
    (lambda: Then(GradientDescent(0.1), 2, None), "second must be an optimizer; got None"),
    (lambda: Then(GradientDescent(0.1), -1, Adam(0.1)), "steps must be a whole number of at least 0; got -1"),
    (lambda: Then(GradientDescent(0.1), 1, WeightDecay(Adam(0.1), 0.1)), "first and second must both let weights .*"),
    (lambda: fit(GRAM, Then(GradientDescent(0.1), 1, SignDescent(0.1)), 1), "Then leaves the span of gradients, .*"),
    (lambda: fit(WEIGHTS, Adam(0.1, epsilon=0.0), 1), "epsilon must be positive where gradients are 0, .*; 12 of .*"),
    (lambda: fit(WEIGHTS, Then(Adam(0.1), 1, WeightDecay(Adam(0.1, epsilon=0.0), 0.0, coupled=True)), 1), "epsilon .*"),
    (lambda: FederatedAveraging(3), "rule must be an optimizer; got 3"),
    (lambda: FederatedAveraging(Adam(0.1), shares=(0.5, 0.2)), "shares of the clients must sum to 1; got 0.7"),
    (lambda: fit(GRAM, FederatedAveraging(Momentum(0.1)), 1), "the last ensemble axis must number the clients; .*"),
    (lambda: fit(TWO, FederatedAveraging(Momentum(0.1), shares=(0.5, 0.3, 0.2)), 1),
     "shares must name one number for each of the 2 clients; got 3"),
    (lambda: GradientDescent(-0.1), "lr must be .* above 0.*; got -0.1"),
    (lambda: SharpnessAware(0.1, NAN), "radius must be .* at least 0.*; got nan"),
    (lambda: SharpnessAware(0.1, -1.0), "radius must be .* at least 0.*; got -1.0"),
    (lambda: LabelNoise(0.1, 0.5), r"flip_prob must be .* in \[0, 0.5\).*; got 0.5"),
    (lambda: LabelSmoothing(0.1, 0.7), r"flip_prob must be .* in \[0, 0.5\).*; got 0.7"),
    (lambda: Momentum(0.1, 1.0, averaged=True), r"beta must be .* in \[0, 1\).*; got 1.0"),
    (lambda: Batches(GRAM, 5), "size must lie between 1 and n = 4, samples of a batch; got 5"),
    (lambda: fit(GRAM, Adam(0.1), 1), "Adam leaves the span of gradients, .*"),
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
