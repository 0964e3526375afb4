"""The signal of an orthogonalised step: against Jacobians, against random matrices, and in its limits."""

import numpy as np
import pytest
import torch

from flbook.lectures.training_strategies.spectral_steps import response
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, first_gradient
from flbook.training.orthogonalised import polar_factor


def test_the_gain_is_the_mean_of_the_jacobian():
    facts = Facts(25, 5, 1.5)
    g = first_gradient(*facts.draw(3), facts.frequencies)
    jacobian = torch.autograd.functional.jacobian(polar_factor, g)
    by_hand = torch.einsum("abab->", jacobian) / 25
    assert float(response.gain_of_spectrum(torch.linalg.svdvals(g))) == pytest.approx(float(by_hand), rel=1e-8)


def test_the_gain_by_hand():
    assert float(response.gain_of_spectrum(torch.tensor([1.0, 3.0]))) == pytest.approx(2 / 4 / 4)


def test_the_signal_is_that_of_a_random_matrix():
    facts = Facts(500, 40, 1.5)
    found = []
    for seed in range(10):
        inputs, outputs = facts.draw(seed)
        found.append(((inputs @ polar_factor(first_gradient(inputs, outputs, facts.frequencies)).mT) * outputs).sum(-1))
    mean, h = torch.stack(found).mean(0).numpy(), response.response(facts.frequencies.numpy(), 40)
    np.testing.assert_allclose(mean[:3], h[:3], atol=0.03)
    for ranks in (slice(3, 10), slice(10, 30), slice(30, 90), slice(90, 500)):
        width = 1.2 / (40 * 10 * (ranks.stop - ranks.start)) ** 0.5  # a signal scatters by 1/sqrt(d) at most
        assert abs(mean[ranks].mean() - h[ranks].mean()) < 4 * width


def test_the_closed_form_is_the_limit_of_many_facts():
    for power in (1.25, 1.5, 2.0, 3.0):
        p = np.arange(1, 200_001.0) ** -power
        closed = response.gain_of_power_law(power, 300, len(p))
        assert response.gain(p / p.sum(), 300) == pytest.approx(closed, rel=0.03)
    one, two = (response.gain_of_power_law(2.0, d, 10**5) for d in (1000, 2000))
    assert two / one == pytest.approx(4)


def test_the_border_is_where_signal_and_largest_noise_are_equal():
    rank, d, count = response.border(1.5, 200, 5000), 200, 5000
    total = (np.arange(1, count + 1.0) ** -1.5).sum()
    signal = response.gain_of_power_law(1.5, d, count) * rank**-1.5 / total
    assert signal == pytest.approx(np.sqrt(2 * np.log(count) / d))


def test_a_coordinate_of_a_unit_vector():
    x = torch.randn(200_000, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    share = (x[:, 0] / x.norm(dim=1) < 0.4).double().mean()
    assert np.exp(response.log_below(np.array([0.4]), 6))[0] == pytest.approx(float(share), abs=0.004)
    assert response.log_below(np.array([2.0]), 6)[0] == 0


def test_a_loud_fact_is_stored_and_a_silent_one_has_the_chance_of_any():
    sure, silent = response.chance(np.array([1.0, 0.0]), 50, 20)
    assert sure > 0.999 and silent == pytest.approx(1 / 20, rel=0.05)


def test_fewer_facts_than_dimensions_are_refused():
    with pytest.raises(ValueError, match="more facts than the d = 5 dimensions"):
        response.shrinkage(np.full(5, 0.2), 5)
