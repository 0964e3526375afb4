"""The two-layer network in the span of its tokens is the book's CNN on all tokens, trained directly."""

import pytest
import torch

from flbook import ReLUPower, Training, TwoLayerCNN, fit, with_start
from flbook.lectures.benign_overfitting.vision_transformer.token_filters import FilterTraining
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals
from flbook.training.optimizers import GradientDescent


def both(power):
    data = TwoSignals(n=6, d=60, snr=1.0, tokens=4, flip_prob=0.34)
    sample = data.draw(0)
    w = 0.05 * torch.randn(2, 3, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    network = with_start(TwoLayerCNN(60, 3, activation=ReLUPower(power)), w=w)
    rows = torch.cat([sample.mu.to(w), sample.xi.flatten(0, 1), w.flatten(0, 1)])
    reduced = FilterTraining(rows @ rows.T, sample.observed, sample.y, 4, data.sigma_xi, power=power)
    return data, Training(network, sample.x, sample.observed), reduced


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_span_is_direct_training(power):
    _, direct, reduced = both(power)
    params, coefficients = (fit(problem, GradientDescent(3.0), 60).params for problem in (direct, reduced))
    torch.testing.assert_close(reduced.outputs(coefficients), direct.predict(params), rtol=1e-9, atol=1e-12)
    assert float(direct.train_loss(params)) < 0.6, "nothing was trained"


def test_fresh_outputs_have_the_law_of_fresh_data():
    data, direct, reduced = both(2.0)
    params, coefficients = (fit(problem, GradientDescent(3.0), 60).params for problem in (direct, reduced))
    test = data.draw_test(20000)
    drawn = direct.predict(params, test.x)
    standard = torch.randn(10000, 3, reduced.width, generator=torch.Generator().manual_seed(1))
    law = reduced.test(coefficients, standard)
    for label, row in zip((1, -1), law, strict=True):
        some = drawn[test.y == label]
        for statistic in (lambda z: z, lambda z: z**2):
            a, b = statistic(some), statistic(row)
            assert abs(float(a.mean() - b.mean())) <= 5 * float(a.std() / len(a) ** 0.5) * 2**0.5


def test_filters_come_in_pairs():
    _, _, reduced = both(1.0)
    with pytest.raises(ValueError, match="as many filters"):
        FilterTraining(reduced.gram[:-1, :-1], reduced.observed, reduced.y, 4, 0.1)
