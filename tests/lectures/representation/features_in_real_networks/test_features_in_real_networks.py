"""Features that move and features that stay, at a tiny preset; rivals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation import features_in_real_networks as inside
from flbook.lectures.representation.features_in_real_networks import Network, experiment
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits

TINY = experiment.setting("tiny")


def test_outputs_start_at_the_same_speed_whatever_the_scale():
    ends = []
    for alpha in (10.0, 1000.0):
        one = Network(TINY, alpha, "cpu", torch.float64)
        start, gradient = one.problem.start(), one.problem.gradient(one.problem.start())
        assert TINY.step_size(alpha) == pytest.approx(TINY.lr / alpha**2)
        after = {name: p - TINY.step_size(alpha) * gradient[name] for name, p in start.items()}
        ends.append(one.problem.predict(after))
    torch.testing.assert_close(ends[0], ends[1], rtol=0.02, atol=1e-3)
    assert ends[0].abs().max() > 1e-2


def test_shuffled_labels_are_the_same_labels():
    true, other = (Network(replace(TINY, shuffled=which), 1.0, "cpu").problem for which in (False, True))
    assert torch.equal(true.x, other.x) and not torch.equal(true.observed, other.observed)
    assert torch.equal(true.observed.sort(-1).values, other.observed.sort(-1).values)


def test_laziness_falls_as_one_over_alpha():
    lazy = inside.laziness(replace(TINY, alpha=(100.0, 1000.0), steps=5))
    for name in ("movement", "tangent"):  # in float32 rounding errors would be the tangent's distance
        ratio = lazy[name].sel(alpha=1000.0) / lazy[name].sel(alpha=100.0)
        np.testing.assert_allclose(ratio, 0.1, rtol=0.1, err_msg=name)
    assert (lazy.kernel.sel(alpha=1000.0) < 0.5 * lazy.kernel.sel(alpha=100.0)).all()


def test_fixed_features_see_the_same_pictures():
    accuracy = inside.fixed_features(replace(TINY, n=150, points=100)).test_accuracy
    assert set(accuracy.dims) == {"model", "seed"} and ((accuracy > 0) & (accuracy <= 1)).all()
    assert (accuracy.sel(model="kernel told red") > accuracy.sel(model="kernel")).all()
    from sklearn.linear_model import RidgeClassifier

    train, test = ColouredDigits(150).draw(0), ColouredDigits(150).draw_test(100, 0)
    fits = [RidgeClassifier(alpha=a).fit(train.x.flatten(1).numpy(), train.y.numpy()) for a in (3.0, 30.0, 300.0)]
    best = max(one.score(test.x.flatten(1).numpy(), test.y.numpy()) for one in fits)
    assert accuracy.sel(model="linear", seed=0) == best


@pytest.mark.parametrize("preset", ["book", "longer", "lazy"])
def test_the_outputs_step_is_smaller_where_weights_will_have_grown(preset):
    setting = experiment.setting(preset)
    steps = [setting.step_size(a) * a**2 for a in setting.alpha]
    assert steps == sorted(steps) and steps[-1] == setting.lr
