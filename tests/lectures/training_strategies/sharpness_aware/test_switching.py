"""What SAM's perturbation does to noise neurons, in coefficients as in weights, and the law of who survives it."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from flbook.data import SignalNoise
from flbook.dynamics.gram import GramTraining
from flbook.lectures.training_strategies.sharpness_aware import Setting, problem, switching
from flbook.models import TwoLayerCNN
from flbook.training.network import Training


def both(d: int = 300):
    """One problem in coefficients and in weights."""
    data = SignalNoise(n=8, d=d, mu_norm=2.0)
    sample, cnn = data.draw(seed=1), TwoLayerCNN(d, 5, sigma_0=0.01, seed=2, dtype=torch.float64)
    return sample, GramTraining.of(data, sample, cnn), Training(cnn, sample.x, sample.observed)


def test_the_perturbed_weights_are_those_of_the_direct_way():
    sample, gram, plain = both()
    start = plain.start()
    grad = plain.gradient(start)["w"]
    w = (start["w"] + 0.3 * grad / grad.norm()).flatten(-3, -2)
    seen = gram.patches(switching.perturbed(gram, gram.start(), 0.3))
    torch.testing.assert_close(seen["plus"], w @ sample.mu, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(seen["noise"], w @ sample.xi.mT, rtol=1e-10, atol=1e-12)


def test_own_label_pairs_are_told_from_the_others():
    sample, gram, _ = both()
    own = switching.own_label(gram)
    assert own.shape == (10, 8) and own[:5, sample.y > 0].all() and own[5:, sample.y < 0].all()
    assert own.sum() == 40


def test_what_is_memorised_is_the_mean_over_samples_of_the_largest_own_coefficient():
    sample, gram, _ = both()
    params = gram.start()
    params["xi"] = torch.zeros_like(params["xi"])
    own = [k for k in range(8) if sample.y[k] > 0]
    params["xi"][2, own[0]], params["xi"][3, own[0]], params["xi"][7, own[0]] = 1.0, 3.0, 50.0
    length = float(sample.xi[own[0]].square().sum())
    assert float(switching.memorised(gram, params)) == pytest.approx(3.0 * length / 8)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 2.0])
def test_survivors_follow_the_law(ratio):
    n, m, sigma_0 = 20, 10, 1e-6
    starts = problem(Setting(d=(10**6,), mu=(2.0,), seed=tuple(range(200)), sigma_0=sigma_0)).to(torch.float64)
    share = switching.survival(starts, ratio * sigma_0 * np.sqrt(n * m)).squeeze()
    law = switching.survival_law(ratio, n)
    assert law == pytest.approx(2 * (1 - norm.cdf(ratio)))
    assert abs(float(share.mean()) - law) < 4 * float(share.std()) / 200**0.5 + 0.003
    assert abs(float(share.mean()) - norm.sf(ratio)) > 0.02


def test_the_signal_takes_its_part_of_the_perturbation():
    n, d, sigma_0 = 20, 4000, 1e-7
    strong = problem(Setting(d=(d,), mu=(40.0,), seed=tuple(range(200)), sigma_0=sigma_0)).to(torch.float64)
    share = float(switching.survival(strong, sigma_0 * np.sqrt(200)).mean())
    assert share == pytest.approx(switching.survival_law(1.0, n, 40 / d**0.5), abs=0.02)
    assert abs(share - switching.survival_law(1.0, n)) > 0.1


def test_no_neuron_of_the_other_label_and_no_signal_neuron_is_switched_off():
    starts = problem(Setting(d=(10**6,), mu=(2.0,), seed=tuple(range(20)))).to(torch.float64)
    moved = switching.perturbed(starts, starts.start(), 1e-5 * np.sqrt(200))
    before, after = (starts.patches(at)["noise"] for at in (starts.start(), moved))
    other = (before > 0) & ~switching.own_label(starts)
    assert (after[other] > before[other]).all()
    gradient = starts.gradient(moved)["mu"].unflatten(-1, (2, -1))
    assert (gradient[..., 0, :] < 0).all() and (gradient[..., 1, :] > 0).all()
    assert gradient.abs().max() / gradient.abs().min() < 1.01  # one class of n/2, whichever
