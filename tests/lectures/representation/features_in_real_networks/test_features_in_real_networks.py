"""Features that move and features that stay, at a tiny preset; rivals; what is stored."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation import features_in_real_networks as inside
from flbook.lectures.representation.features_in_real_networks import Network, Setting, measure
from flbook.lectures.representation.features_in_real_networks.coloured_digits import ColouredDigits
from flbook.runs import results, settings

TINY = Setting(alpha=(0.01, 1000.0), seed=(0, 1), n=40, filters=4, hidden=8, steps=10, points=30)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    assert set(settings.axes(TINY)) < set(dataset.dims)
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"], name
    assert dataset.filters.dims == ("alpha", "seed", "step", "filter", "colour", "row", "column")
    np.testing.assert_allclose(dataset.filter_share.sum("colour"), 1, rtol=1e-5)
    w = dataset.filters.isel(alpha=0, seed=1, step=-1)
    share = (w**2).sum(("filter", "row", "column")) / (w**2).sum()
    np.testing.assert_allclose(dataset.filter_share.isel(alpha=0, seed=1, step=-1), share, rtol=1e-5)


def test_the_start_is_the_same_and_only_a_small_scale_moves_it():
    dataset = measure(TINY)
    first, last = dataset.isel(step=0), dataset.isel(step=-1)
    assert (first.filters.isel(alpha=0) == first.filters.isel(alpha=1)).all()
    assert (first.movement == 0).all() and first.correlation.isnull().all()
    assert (last.movement.sel(alpha=1000.0) < 1e-3).all() and (last.movement.sel(alpha=0.01) > 1e-2).all()
    np.testing.assert_allclose(first.train_loss, 0.45, rtol=1e-5)  # |e_y - 1/10|^2 / 2
    assert (last.train_loss < first.train_loss).all()
    np.testing.assert_allclose(last.alignment.sel(alpha=1000.0), first.alignment.sel(alpha=1000.0), atol=1e-3)
    pixels = last.alignment.sel(layer="pixels")
    np.testing.assert_allclose(pixels.sel(alpha=0.01), pixels.sel(alpha=1000.0))


def test_a_cell_does_not_see_the_grid_around_it():
    whole = measure(TINY).sel(alpha=0.01, seed=1)
    alone = measure(replace(TINY, alpha=(0.01,), seed=(1,))).squeeze(("alpha", "seed"))
    for name in whole:
        np.testing.assert_allclose(alone[name], whole[name], rtol=1e-3, atol=1e-4, err_msg=name)


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


@pytest.mark.parametrize("preset", [Setting.book, Setting.paper, Setting.lazy])
def test_presets_can_be_run(preset):
    setting = preset()
    assert settings.to_json(setting) and min(setting.alpha) > 0 and len(setting.seed) >= 10
    steps = [setting.step_size(a) * a**2 for a in setting.alpha]
    assert steps == sorted(steps) and steps[-1] == setting.lr


def test_stored_cells_come_again():
    """The shortest cells of the stored result: their beginning, at other lengths of training the same."""
    stored, paper = results.open("features_in_real_networks"), Setting.paper()
    cell = replace(paper, alpha=(0.1,), seed=paper.seed[:1], steps=10, points=1000)
    again = measure(cell).squeeze(("alpha", "seed")).isel(step=[0, 1])
    kept = stored.sel(alpha=0.1, seed=0).isel(step=[0, 1])
    for name in ("train_loss", "test_accuracy", "filter_share", "alignment", "movement"):
        np.testing.assert_allclose(again[name], kept[name], rtol=1e-3, atol=3e-3, err_msg=name)


def test_run_is_measure(tmp_path):
    dataset = inside.run(replace(TINY, steps=2), cache=tmp_path)
    for name, values in measure(replace(TINY, steps=2)).items():
        np.testing.assert_allclose(dataset[name], values, rtol=1e-4, atol=1e-5)
    assert "filters" not in inside.stored(dataset) and inside.stored(dataset).movement.dtype == np.float32
