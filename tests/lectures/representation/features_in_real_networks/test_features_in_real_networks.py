"""Features that move and features that stay, at a tiny preset; rivals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation import features_in_real_networks as inside
from flbook.lectures.representation.features_in_real_networks import Network, Setting, run
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits

TINY = Setting.tiny()


def test_shares_are_of_the_filters_energy():
    dataset = run(TINY)
    assert dataset.filters.dims == ("alpha", "seed", "step", "filter", "colour", "row", "column")
    np.testing.assert_allclose(dataset.filter_share.sum("colour"), 1, rtol=1e-5)
    w = dataset.filters.isel(alpha=0, seed=1, step=-1)
    share = (w**2).sum(("filter", "row", "column")) / (w**2).sum()
    np.testing.assert_allclose(dataset.filter_share.isel(alpha=0, seed=1, step=-1), share, rtol=1e-5)


def test_the_start_is_the_same_and_only_a_small_scale_moves_it():
    dataset = run(TINY)
    first, last = dataset.isel(step=0), dataset.isel(step=-1)
    assert (first.filters.isel(alpha=0) == first.filters.isel(alpha=1)).all()
    assert (first.movement == 0).all() and first.correlation.isnull().all()
    assert (last.movement.sel(alpha=1000.0) < 1e-3).all() and (last.movement.sel(alpha=0.01) > 1e-2).all()
    np.testing.assert_allclose(first.train_loss, 0.45, rtol=1e-5)  # |e_y - 1/10|^2 / 2
    assert (last.train_loss < first.train_loss).all()
    np.testing.assert_allclose(last.alignment.sel(alpha=1000.0), first.alignment.sel(alpha=1000.0), atol=1e-3)
    pixels = last.alignment.sel(layer="pixels")
    np.testing.assert_allclose(pixels.sel(alpha=0.01), pixels.sel(alpha=1000.0))


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


@pytest.mark.parametrize("setting", [Setting.book(), Setting.paper(), Setting.lazy()])
def test_the_outputs_step_is_smaller_where_weights_will_have_grown(setting):
    steps = [setting.step_size(a) * a**2 for a in setting.alpha]
    assert steps == sorted(steps) and steps[-1] == setting.lr


def test_filters_are_not_stored():
    kept = inside.stored(run(TINY))
    assert "filters" not in kept and kept.movement.dtype == np.float32
