"""Test error on repeated training noise: equal to counting in d dimensions, for the network and its rivals."""

from dataclasses import replace
from operator import methodcaller

import pytest
import torch

from flbook import measures, rivals
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.lectures.benign_overfitting.label_noise_stages.recycled import RecycledTest
from flbook.lectures.benign_overfitting.label_noise_stages.recycled_noise import RecycledNoise
from flbook.models import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

LINEAR, LAZY, FROZEN = methodcaller("linear"), methodcaller("lazy"), methodcaller("frozen")  # rivals of a problem
SEEDS = (0, 1, 2)
N, D = 10, 60


def trained():
    """The same three networks in d dimensions and in coefficients, half trained, so that both answers occur."""
    data = SignalNoise(n=N, d=D, mu_norm=3.0, flip_prob=0.2)
    sample = data.draw(SEEDS)
    cnn = TwoLayerCNN(D, 4, sigma_0=0.1, seed=SEEDS, dtype=torch.float64)
    direct, gram = Training(cnn, sample.x, sample.observed), GramTraining.of(data, sample, cnn)
    return sample, direct, gram


def frozen_in_d(direct):
    return Training(rivals.FrozenCNN(direct.model, direct.x), direct.x, direct.observed)


@pytest.mark.parametrize("in_weights, in_coefficients",
                         [(lambda p: p, lambda p: p), (LAZY, LAZY), (frozen_in_d, FROZEN)],
                         ids=["network", "lazy", "frozen"])
def test_it_is_the_count_over_all_pairs(in_weights, in_coefficients):
    sample, direct, gram = trained()
    direct, gram = in_weights(direct), in_coefficients(gram)
    rule = GradientDescent(0.3)
    in_d, params = fit(direct, rule, 60).params, fit(gram, rule, 60).params
    torch.testing.assert_close(gram.predict(params), direct.predict(in_d), rtol=1e-10, atol=1e-11)
    pairs = torch.stack([torch.stack([y * sample.mu.expand_as(sample.xi), sample.xi], -2) for y in (1.0, -1.0)])
    wrong = [(y * direct.predict(in_d, x) <= 0).double().mean(-1) for y, x in zip((1, -1), pairs, strict=True)]
    count = torch.stack(wrong).mean(0)
    assert 0 < count.mean() < 1
    torch.testing.assert_close(measures.test_error(RecycledTest(gram), params), count, rtol=0, atol=1e-12)


MODELS = [lambda p: p, LAZY, LINEAR, FROZEN]


@pytest.mark.parametrize("rival", MODELS, ids=["network", "lazy", "linear", "frozen"])
def test_overlap_runs_from_repeated_to_fresh(rival):
    _, _, gram = trained()
    gram = rival(gram)
    params = fit(gram, GradientDescent(0.3), 60).params
    laws = [RecycledNoise.overlap(cosine) for cosine in (0.0, 0.5, 1 - 1e-9, 1)]
    at = [measures.test_error(RecycledTest(gram, law), params, 512) for law in laws]
    torch.testing.assert_close(at[0], measures.test_error(gram, params, 512), rtol=0, atol=1e-12)
    torch.testing.assert_close(at[2], at[3], rtol=0, atol=1e-2)


def test_directly_drawn_test_samples_agree():
    sample, direct, gram = trained()
    rule, law = GradientDescent(0.3), RecycledNoise(0.8, 0.5)
    in_d, params = fit(direct, rule, 60).params, fit(gram, rule, 60).params
    test = law.draw_test(sample, 4000, seed=SEEDS)
    drawn = measures.test_error_on(direct, in_d, test.x, test.y)
    torch.testing.assert_close(measures.test_error(RecycledTest(gram, law), params, 256), drawn, rtol=0, atol=0.03)


def test_a_bias_is_refused():
    _, _, gram = trained()
    with pytest.raises(ValueError, match="must have no bias"):
        RecycledTest(replace(gram, bias=True))
