"""Samples with rare features: their patches, and the errors on fresh ones."""

import pytest
import torch

from flbook import GradientDescent, TwoLayerCNN, fit, rng
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.cutmix.by_feature import errors, feature_parts
from flbook.lectures.training_strategies.cutmix.leaky_bend import LeakyBend
from flbook.lectures.training_strategies.cutmix.pasting import Cutout
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures

DATA = RareFeatures(n=40, d=60, patches=4, trace=0.3)


def test_patches_are_those_of_the_model():
    sample = DATA.draw(seed=(0, 1))
    x, y, kind = sample.x, sample.y, sample.kind
    assert x.shape == (2, 40, 4, 60) and y.sum() == 0
    for label, first in ((1, 0), (-1, 3)):
        assert kind[y == label].bincount().tolist() == [16, 3, 1]
        assert (x[:, y == label, 0].argmax(-1) == first + kind[y == label]).all()
    assert (x[..., 0, :].norm(dim=-1) == 1).all()
    traces = x[0, :, 1, :6]
    assert set(map(tuple, traces.tolist())) == {(0.3, 0, 0, 0, 0, 0), (0, 0, 0, 0.3, 0, 0)}
    assert (traces[y > 0].mean(0) == traces[y < 0].mean(0)).all()
    assert (x[..., 2:, :6] == 0).all()
    assert x[..., 1, 6:].std().item() == pytest.approx(0.25, rel=0.03)
    assert x[..., 2:, 6:].std().item() == pytest.approx(0.15, rel=0.03)
    assert (DATA.draw(seed=1).x == x[1]).all()


def test_bad_input_is_refused():
    for wrong, word in (
        (dict(frequency=(0.5, 0.4)), "frequency"),
        (dict(n=7), "n"),
        (dict(n=10), "n"),
        (dict(d=6), "d"),
        (dict(patches=1), "patches"),
        (dict(trace=-0.1), "trace"),
    ):
        with pytest.raises(ValueError, match=f"^{word} must"):
            RareFeatures(**{"n": 40, "d": 60, **wrong})


@pytest.mark.parametrize("lazy", [False, True])
def test_errors_are_those_on_drawn_samples(lazy):
    setting = cutmix.Setting(seed=(0,), n=40, d=60, patches=4, trace=0.3, sigma_0=0.05)
    network = cutmix.problem(setting, Cutout(1), dtype=torch.float64)
    network = network.lazy() if lazy else network
    params, _ = fit(network, GradientDescent(1.0), 100)
    weights = torch.einsum("kn,nd->kd", params["c"][0], DATA.draw(0).vectors)
    start = TwoLayerCNN(60, 1, 0.05, LeakyBend(), seed=(0,), dtype=torch.float64).w.detach().flatten(0, 2)
    bend = LeakyBend()

    def respond(x):
        z, before = x @ (start + weights).T, x @ start.T
        said = bend(before) + bend.slope(before) * (z - before) if lazy else bend(z)
        return said[..., 0] - said[..., 1]

    noise = rng.normal((40_000, 3, 60), 3, "fresh") * torch.tensor([0.25, 0.15, 0.15])[:, None].double()
    noise[..., :6] = 0
    noise[::2, 0, 0], noise[1::2, 0, 3] = 0.3, 0.3
    said = respond(torch.eye(6, 60).double())
    outputs = respond(noise).sum(-1)[:, None]
    expected = ((said[:3] + outputs <= 0).double() + (said[3:] + outputs >= 0).double()).mean(0) / 2
    found = errors(network, params, DATA, points=16384)[0]
    torch.testing.assert_close(found, expected, atol=0.006, rtol=0)
    assert found[0] < found[2] - 0.05
    torch.testing.assert_close(feature_parts(network, params)[0], (said[:3] - said[3:]) / 2)
