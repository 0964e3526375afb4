"""Training in the span of the tokens is direct training; the laws of drawn atoms and of fresh tokens are right."""

import math

import numpy as np
import pytest
import torch

from flbook import rng
from flbook.lectures.benign_overfitting.vision_transformer.token_span import SpanTraining, atoms_of, draw_atoms
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals
from flbook.models.patch_attention import VisionTransformer
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum


def both(seed=(0, 1), flip_prob=0.0, snr=1.5):
    data = TwoSignals(n=6, d=60, snr=snr, tokens=4, flip_prob=flip_prob)
    sample = data.draw(seed)
    model = VisionTransformer(60, 3, 0.1, 0.02, seed, torch.float64)
    return Training(model, sample.x, sample.observed), SpanTraining.of(data, sample, model)


@pytest.mark.parametrize("rule", [GradientDescent(2.0), Momentum(0.5, 0.5)], ids=["descent", "momentum"])
@pytest.mark.parametrize("flip_prob", [0.0, 0.34])
def test_the_span_is_direct_training(rule, flip_prob):
    direct, reduced = both(flip_prob=flip_prob)
    params, coefficients = (fit(problem, rule, 100).params for problem in (direct, reduced))
    outputs = direct.predict(params)
    assert float(outputs.abs().min()) > 0.5, "nothing was trained"
    torch.testing.assert_close(reduced.predict(coefficients), outputs, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(reduced.train_loss(coefficients), direct.train_loss(params), rtol=1e-10, atol=0)
    weight = torch.func.functional_call(_Attention(direct.model), {f"m.{k}": v for k, v in params.items()}, (direct.x,))
    torch.testing.assert_close(reduced.attention(coefficients), weight, rtol=1e-9, atol=1e-12)
    moved = {name: p - direct.start()[name] for name, p in params.items()}
    torch.testing.assert_close(reduced.norm(coefficients), direct.norm(moved), rtol=1e-9, atol=0)
    columns = torch.cat([params["q"], params["k"], params["v"][..., None]], -1)
    torch.testing.assert_close(reduced.column_gram(coefficients), columns.mT @ columns, rtol=1e-9, atol=1e-12)


class _Attention(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, x):
        return self.m.attention(x)


def test_frozen_attention_moves_the_value_only():
    _, reduced = both()
    columns = fit(reduced.frozen(), GradientDescent(2.0), 20).params["columns"]
    assert float(columns[..., :-1].abs().max()) == 0 and float(columns[..., -1].abs().max()) > 0


def test_fresh_tokens_have_the_law_of_fresh_data():
    direct, reduced = both(seed=0, snr=0.5)
    params, coefficients = (fit(problem, GradientDescent(5.0), 30).params for problem in (direct, reduced))
    test = TwoSignals(n=6, d=60, snr=0.5, tokens=4).draw_test(20000)
    outputs = test.y * direct.predict(params, test.x)
    standard = rng.normal((20000, 3, reduced.width), 1, "standard")
    weight, fresh = reduced.test(coefficients, standard)
    fresh = fresh * torch.tensor([1.0, -1.0])[:, None]
    for statistic in (torch.nn.functional.softplus, lambda z: (z <= 0).double(), lambda z: z**2):
        drawn, law = statistic(-outputs), statistic(-fresh).flatten()
        assert abs(float(drawn.mean() - law.mean())) <= 5 * float(drawn.std()) * math.sqrt(1.5 / 20000)
    torch.testing.assert_close(weight.sum(-1), torch.ones_like(weight[..., 0]))


def test_drawn_atoms_have_the_moments_of_those_of_drawn_vectors():
    seeds = tuple(range(300))
    drawn = draw_atoms(6, 1, 40, torch.tensor([0.5, 2.0]), 0.3, 0.1, seeds)[:, 1]
    sample = TwoSignals(n=2, d=40, snr=2.0, tokens=4).draw(seeds)
    given = atoms_of(sample, VisionTransformer(40, 1, 0.3, 0.1, seeds, torch.float64))
    assert drawn.shape == given.shape == (300, 11, 11)
    error = ((drawn.var(0) + given.var(0)) / 300).sqrt() + 1e-12
    assert ((drawn.mean(0) - given.mean(0)).abs() < 5 * error).all()
    np.testing.assert_allclose(drawn.var(0)[2:, 2:], given.var(0)[2:, 2:], rtol=0.7)


def test_bad_input_gets_one_sentence():
    _, reduced = both()
    with pytest.raises(ValueError, match="do not fit labels"):
        SpanTraining(reduced.gram[..., :20, :20], reduced.observed, reduced.y, 4, 0.1)
    with pytest.raises(ValueError, match="d must be at least 17"):
        draw_atoms(10, 2, 12, torch.tensor([1.0]), 0.1, 0.1, (0,))
