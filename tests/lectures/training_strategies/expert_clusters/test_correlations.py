"""The closed forms of the page against exact sums over the data's law."""

import math

import numpy as np
import pytest
import torch

from flbook import hermite
from flbook.lectures.training_strategies.expert_clusters import correlations as cor
from flbook.lectures.training_strategies.expert_clusters.experts import Experts
from flbook.lectures.training_strategies.expert_clusters.index_clusters import CENTRE, SHARED, IndexClusters

RHO, LOCAL = 1.3, 0.6
POINTS, WEIGHT = IndexClusters(4, RHO, LOCAL).exactly()
H4 = hermite.Series((0.0, 0.0, 0.0, 1.0, 1.0))


def unit(*overlaps: float) -> torch.Tensor:
    w = torch.tensor(overlaps, dtype=torch.float64)
    return w / w.norm()


def mean(values: torch.Tensor) -> float:
    return float((WEIGHT * values).sum())


@pytest.mark.parametrize("activation", [hermite.he(3), H4, hermite.Series((1.0, 0.5, -0.3, 0.2, 0.4, 0.1))])
def test_correlation_with_the_shared_part(activation):
    w = unit(0.4, 0.2, -0.1, 0.6)
    expected = cor.shared_correlation(activation, RHO, w[0].item(), w[3].item())
    assert mean(POINTS.shared * activation(POINTS.x @ w)) == pytest.approx(expected, abs=1e-12)


def test_the_pull_cancels_across_v_and_in_cubic_neurons_everywhere():
    """The mean of S sigma'(u) x towards w_g and across w, for one cluster and for both."""
    for activation, w, blind in ((H4, unit(0, 0.2, -0.1, 0.6), True), (hermite.he(3), unit(0.4, 0.2, -0.1, 0.6), True),
                                 (H4, unit(0.4, 0.2, -0.1, 0.6), False)):  # fmt: skip
        u = POINTS.x @ w
        push = POINTS.shared * activation.derivative()(u) * (POINTS.x[:, SHARED] - w[3] * u)
        assert (abs(mean(push)) < 1e-12) == blind
        assert abs(mean(push * (POINTS.cluster > 0))) > 0.01


def test_the_leak_of_a_quartic_neuron():
    w = unit(0.4, 0.2, -0.1, 0.6)
    u = POINTS.x @ w
    across = POINTS.x[:, SHARED] - w[3] * u
    speed = mean(POINTS.shared * H4.derivative()(u) * across)
    assert speed == pytest.approx(cor.quartic_leak(RHO, w[0].item(), w[3].item()), rel=1e-9)


def test_no_cubic_polynomial_sees_the_shared_part():
    for k in range(4):
        for j in range(4 - k):
            product = hermite.polynomial(k, POINTS.x[:, SHARED]) * POINTS.x[:, CENTRE] ** j
            assert abs(mean(POINTS.shared * product)) < 1e-12
    four = POINTS.x[:, CENTRE] * hermite.polynomial(3, POINTS.x[:, SHARED])
    assert mean(POINTS.shared * four) == pytest.approx(RHO)


def test_the_routers_first_step():
    w = torch.stack([unit(0, 0.8, 0.1, 0.5), unit(0, 0.3, 0.6, -0.4), unit(0, 0.2, 0.9, 0.3), unit(0, 0, 0.5, 0.8)])
    a = torch.tensor([[0.3, 0.7], [0.5, -0.2]], dtype=torch.float64)
    net = Experts(w.reshape(2, 2, 4), a, torch.zeros(4, dtype=torch.float64))
    out, residual = net.outputs(POINTS.x)[1], POINTS.y - net.predict(POINTS.x)
    step = [mean(residual * (out[0] - out[1]) / 4 * POINTS.x[:, i]) for i in range(4)]
    gain = cor.router_gain(RHO, LOCAL, *net.carried()[:, 1:].numpy())
    np.testing.assert_allclose(step, [gain, 0, 0, 0], atol=1e-12)
    assert abs(gain) > 0.01


def test_half_of_the_inputs():
    sample = IndexClusters(4, RHO).draw(200_000, seed=0)
    right = (sample.cluster > 0)[sample.x[:, CENTRE] > 0].double().mean()
    assert float(cor.purity(RHO)) == pytest.approx(2 * right.item() - 1, abs=0.01)
    assert float(cor.purity(RHO)) == pytest.approx(math.erf(RHO / 2**0.5))


def test_the_share_that_the_posterior_mean_has():
    sample = IndexClusters(4, RHO).draw(200_000, seed=0)
    known = torch.tanh(RHO * sample.x[:, CENTRE])
    assert cor.posterior_share(RHO) == pytest.approx((known**2).mean().item(), abs=0.01)


def test_the_equation_keeps_length_and_follows_the_larger_pull():
    path = cor.flow((0.5, 0.0, 0.5), (0.2, 0.2, 0.4), np.linspace(0, 12, 40))
    assert ((path**2).sum(0) <= 1 + 1e-9).all()
    assert path[2, -1] > 0.999 and abs(path[0, -1]) < 0.01
    small = cor.flow((0.5, 0.0, 0.5), (0.2, 0.2, 0.4), np.array([0.0, 1e-4]))
    pulls = np.array([1.5 * 0.04, 0, 1.5 * 0.16])
    expected = pulls - np.array([0.2, 0.2, 0.4]) * (pulls @ np.array([0.2, 0.2, 0.4]))
    np.testing.assert_allclose((small[:, 1] - small[:, 0]) / 1e-4, expected, rtol=1e-3)
