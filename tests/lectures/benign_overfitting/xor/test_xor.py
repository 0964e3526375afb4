"""XOR at a tiny preset: linear is chance, the network aligns with four directions, cells do not see each other."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from flbook import theory
from flbook.lectures.benign_overfitting import xor
from flbook.lectures.benign_overfitting.xor import Setting, angle_laws, measure
from flbook.runs import results, settings

TINY = Setting(n=(20,), d=(5000,), r=(0.3, 1000.0), seed=(0, 1, 2), m=8, steps=40, points=128)


def test_a_labelled_dataset():
    models = ("network", "linear", "lazy", "frozen")
    setting = replace(TINY, model=models, n=(20, 24), d=(3000, 5000), angle=(90.0, 45.0), steps=4)
    dataset = measure(setting)
    assert set(settings.axes(setting)) == set(dataset.dims)
    for name, values in settings.axes(setting).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name


def test_the_signal_decides_and_linear_is_chance():
    dataset = measure(replace(TINY, model=("network", "linear", "lazy"))).squeeze()
    assert (dataset.train_error.sel(model=["network", "lazy"]) == 0).all()
    error = dataset.test_error.mean("seed")
    np.testing.assert_allclose(error.sel(model="linear"), 0.5, atol=0.01)
    assert (error.sel(model=["network", "lazy"], r=1000.0) < 0.03).all()
    assert (error.sel(model=["network", "lazy"], r=0.3) > 0.3).all()


def test_four_directions_are_learned_by_the_network_only():
    setting = replace(TINY, model=("network", "lazy"), angle=(90.0, 60.0), r=(100.0,), seed=tuple(range(6)))
    aligned = measure(setting).alignment.squeeze().mean("seed")
    assert (aligned.sel(model="network") > 0.98).all()
    assert abs(aligned.sel(model="lazy", angle=90.0) - 0.5**0.5) < 0.04
    share = measure(setting).carriers.squeeze().mean("seed")
    assert (abs(share.sel(model="lazy") - 0.5) < 0.05).all() and (share.sel(model="network") > 0.65).all()
    plane = xor.filters(setting).plane
    assert plane.shape == (2, 2, 16, 2) and abs(plane).max() <= 1
    right = plane.sel(model="network", angle=90.0).values  # u and v are the diagonals
    long = right[np.linalg.norm(right, axis=-1) > 0.1]
    assert len(long) > 10 and np.allclose(abs(long[:, 0]), abs(long[:, 1]), rtol=0.05)


def test_frozen_filters_do_not_move_and_are_too_few():
    cells = measure(replace(TINY, model=("frozen",), seed=tuple(range(10)))).squeeze().mean("seed")
    np.testing.assert_allclose(cells.alignment, 0, atol=1e-7)
    np.testing.assert_allclose(cells.carriers, 0.5, atol=0.05)
    snr2 = np.sqrt(1000 / (20 * 5000))
    assert cells.test_error.sel(r=1000.0) > theory.random_filters_error(8, snr2, clusters=4) - 0.01


def test_the_angle_is_symmetric():
    setting = replace(TINY, angle=(60.0, 120.0), r=(10.0, 100.0), seed=tuple(range(12)), points=256)
    error = measure(setting).test_error.squeeze().mean("seed")
    np.testing.assert_allclose(error.sel(angle=60.0), error.sel(angle=120.0), atol=0.03)
    assert angle_laws.network_angle(60.0) == pytest.approx(angle_laws.network_angle(120.0)) == pytest.approx(0.75)
    assert angle_laws.lazy_angle(30.0) == pytest.approx(angle_laws.lazy_angle(150.0))
    assert angle_laws.lazy_angle(90.0) == pytest.approx(1)
    assert angle_laws.theorem_angle(60.0) == pytest.approx(0.5)


def test_a_cell_does_not_see_the_grid_around_it():
    setting = replace(TINY, model=("network", "lazy"), n=(20, 24), angle=(90.0, 45.0), r=(1.0, 30.0))
    whole = measure(setting)
    one = measure(replace(setting, model=("lazy",), n=(24,), angle=(45.0,), r=(30.0,), seed=(1,)))
    for name in one:
        expected = whole[name].sel(model="lazy", n=24, angle=45.0, r=30.0, seed=1)
        np.testing.assert_allclose(one[name].squeeze(), expected.squeeze(), rtol=2e-3, atol=0.01, err_msg=name)


def test_crossing():
    curves = xr.DataArray([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], dims=("seed", "r"), coords={"r": [1.0, 4.0, 16.0]})
    found = xor.crossing(curves, 0.5)
    np.testing.assert_allclose([found.value, *found.per_seed], [4.0, 2.0, 8.0])


def test_presets_can_be_run():
    for preset in (Setting.book, Setting.angles, Setting.rivals, Setting.paper):
        setting = preset()
        xor.check(setting)
        assert all(n % 4 == 0 and round(0.1 * n) % 4 == 0 for n in setting.n), "flips in every cluster alike"
        assert setting.sigma_0 < min(setting.n) ** 0.5 / max(setting.d) / 10, "a start that the theorem calls small"
        assert settings.to_json(setting)


def test_bad_settings_are_one_sentence():
    for change, sentence in [
        (dict(n=(22,)), "n must be a multiple of 4.*got 22"),
        (dict(angle=(0.0,)), "angle must lie strictly between 0 and 180"),
        (dict(r=(0.0,)), "r must be positive"),
        (dict(d=(30,)), "d must be at least"),
        (dict(model=("deep",)), "model must be among network, linear, lazy, frozen; got 'deep'"),
        (dict(flip_prob=0.6), r"flip_prob must lie in \[0, 1/2\)"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            xor.run(replace(TINY, **change))


def test_run_is_measure_in_chunks(tmp_path):
    setting = replace(TINY, steps=10)
    dataset = xor.run(setting, cache=tmp_path, memory=5e5)
    assert len(list(tmp_path.iterdir())) > 1
    for name, values in measure(setting).items():
        np.testing.assert_allclose(dataset[name].transpose(*values.dims), values, rtol=1e-4, atol=0.01)


def test_three_cells_of_the_stored_result_again():
    kept = results.open("xor")
    cells = (("network", 40, 30_000, 90.0, 10.0, 0), ("lazy", 120, 10_000_000, 15.0, 398.0, 5),
             ("network", 120, 30_000, 150.0, 1000.0, 11))
    for model, n, d, angle, r, seed in cells:
        one = replace(Setting.paper(), model=(model,), n=(n,), d=(d,), angle=(angle,), r=(r,), seed=(seed,))
        expected = float(kept.test_error.sel(model=model, n=n, d=d, angle=angle, r=r, seed=seed))
        assert float(measure(one).test_error.squeeze()) == pytest.approx(expected, abs=0.01)
