"""The geometry of noise: measured spreads against exact moments."""

import numpy as np
import pytest
import torch

from flbook.data.signal_noise import SignalNoise
from flbook.lectures.signal_noise.signal_noise_model.noise_geometry import experiment

TINY = experiment.setting("tiny")


def test_measured_spreads_are_the_exact_moments():
    found = experiment.run(TINY)
    for name, square in (("noise_length", 2), ("noise_overlap", 1), ("signal_overlap", 1)):
        np.testing.assert_allclose((found[name] ** 2).mean("seed") * found.d, square, rtol=0.4)


def test_overlaps_by_the_double_loop():
    xi = SignalNoise(n=40, d=50).draw(1).xi
    cosine = torch.nn.functional.cosine_similarity
    squares = [float(cosine(xi[i], xi[k], dim=0)) ** 2 for i in range(40) for k in range(40) if i != k]
    found = experiment.run(TINY.thinned(d=(50,), seed=(1,))).squeeze()
    assert float(found.noise_overlap) == pytest.approx(np.sqrt(np.mean(squares)))
    assert float(found.signal_overlap) == pytest.approx(float((xi[:, 0] / xi.norm(dim=1)).square().mean().sqrt()))
    assert float(found.noise_length) == pytest.approx(float(xi.square().sum(1).std() / 50))
