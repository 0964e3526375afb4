"""XOR at a tiny preset: linear is chance, the network aligns with four directions, cells do not see each other."""

import numpy as np
import pytest
import xarray as xr

from flbook.lectures.benign_overfitting import xor
from flbook.lectures.benign_overfitting.xor import angle_laws, experiment

TINY = experiment.setting("tiny", model=("network",), d=(5000,), angle=(90.0,), steps=40)


def test_the_angle_is_symmetric():
    setting = TINY.thinned(angle=(60.0, 120.0), r=(10.0, 100.0), seed=tuple(range(12)), points=256)
    error = experiment.run(setting).test_error.squeeze().mean("seed")
    np.testing.assert_allclose(error.sel(angle=60.0), error.sel(angle=120.0), atol=0.03)
    assert angle_laws.network_angle(60.0) == pytest.approx(angle_laws.network_angle(120.0)) == pytest.approx(0.75)
    assert angle_laws.lazy_angle(30.0) == pytest.approx(angle_laws.lazy_angle(150.0))
    assert angle_laws.lazy_angle(90.0) == pytest.approx(1)
    assert angle_laws.theorem_angle(60.0) == pytest.approx(0.5)


def test_crossing():
    curves = xr.DataArray([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], dims=("seed", "r"), coords={"r": [1.0, 4.0, 16.0]})
    found = xor.crossing(curves, 0.5)
    np.testing.assert_allclose([found.value, *found.per_seed], [4.0, 2.0, 8.0])


def test_presets_are_as_the_theorem_wants_them():
    for preset in ("book", "angles", "rivals", "longer"):
        setting = experiment.setting(preset)
        assert all(n % 4 == 0 and round(0.1 * n) % 4 == 0 for n in setting.n), "flips in every cluster alike"
        assert setting.sigma_0 < min(setting.n) ** 0.5 / max(setting.d) / 10, "a start that the theorem calls small"


def test_four_directions_are_learned_by_the_network_only():
    setting = TINY.thinned(model=("network", "lazy"), angle=(90.0, 60.0), r=(100.0,), seed=tuple(range(6)))
    dataset = experiment.run(setting).squeeze()
    aligned = dataset.alignment.mean("seed")
    assert (aligned.sel(model="network") > 0.98).all()
    assert abs(aligned.sel(model="lazy", angle=90.0) - 0.5**0.5) < 0.04
    share = dataset.carriers.mean("seed")
    assert (abs(share.sel(model="lazy") - 0.5) < 0.05).all() and (share.sel(model="network") > 0.65).all()
    plane = xor.filters(setting).plane
    assert plane.shape == (2, 2, 16, 2) and abs(plane).max() <= 1
    right = plane.sel(model="network", angle=90.0).values  # u and v are the diagonals
    long = right[np.linalg.norm(right, axis=-1) > 0.1]
    assert len(long) > 10 and np.allclose(abs(long[:, 0]), abs(long[:, 1]), rtol=0.05)
