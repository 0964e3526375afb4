"""Selection without a network: strong signals are chosen, and read."""

import torch

from flbook.lectures.benign_overfitting.vision_transformer.chosen_tokens import ChosenTokens, extreme
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals


def test_strong_signals_are_chosen():
    data = TwoSignals(n=8, d=500, snr=1.0, tokens=5)
    sample = data.draw(0)
    rows = torch.cat([sample.mu, sample.xi.flatten(0, 1)])
    problem = ChosenTokens.on(rows @ rows.T, sample.observed, sample.y, 5, data.sigma_xi)
    template = problem.chosen(3)["columns"][:, 0]
    assert template[:2].tolist() == [4, -4] and template[2:].abs().max() == 0
    assert bool((problem.observed * problem.outputs(problem.chosen(3)) > 0).all())
    fresh = problem.test(problem.chosen(3), torch.randn(50, 4, 1, generator=torch.Generator().manual_seed(0)))
    assert bool((fresh[0] > 0).all()) and bool((fresh[1] < 0).all())


def test_no_round_is_the_average_of_all_tokens():
    data = TwoSignals(n=4, d=60, snr=1.0, tokens=3)
    sample = data.draw(0)
    rows = torch.cat([sample.mu, sample.xi.flatten(0, 1)])
    problem = ChosenTokens.on(rows @ rows.T, sample.observed, sample.y, 3, data.sigma_xi)
    v = problem.chosen(0)["columns"][:, 0] @ rows
    torch.testing.assert_close(v, (sample.observed[:, None, None] * sample.x).sum((0, 1)))


def test_the_extreme_value_keeps_its_sign():
    assert extreme(torch.tensor([[1.0, -3.0, 2.0], [0.5, 0.1, -0.2]])).tolist() == [-3.0, 0.5]
