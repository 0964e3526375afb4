"""Random features: a sample's output is that of its signal and that of its noise, with and without ensemble axes.

How they train is held against d dimensions in `tests/test_rivals.py`.
"""

import pytest
import torch

from flbook import rng
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.models import TwoLayerCNN, relu

DATA = SignalNoise(n=6, d=25, mu_norm=2.0, flip_prob=0.3, exact_flips=False)


@pytest.mark.parametrize("seeds", [0, (0, 1, 2)], ids=["one network", "three"])
def test_signal_and_noise_add_up_and_the_norm_is_euclidean(seeds):
    sample, cnn = DATA.draw(seeds), TwoLayerCNN(25, 3, 0.2, relu, bias=True, seed=seeds, dtype=torch.float64)
    problem = GramTraining.of(DATA, sample, cnn).frozen()
    params = {"a": rng.normal(tuple(problem.start()["a"].shape), 7, "a")}
    plus, minus = (one[..., None] for one in problem.signal_outputs(params))
    found = torch.where(sample.y > 0, plus, minus) + problem.noise_outputs(params, problem.training_noise(params))
    torch.testing.assert_close(found, problem.outputs(params), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(problem.norm(params), params["a"].norm(dim=-1))
