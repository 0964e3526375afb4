"""Sticky tokens: slopes against theory, and the crossing."""

import pytest
import xarray as xr

from flbook.lectures.in_context_learning.induction import parent_gradient, sticky_tokens


def test_slopes_are_those_of_theory():
    setting = sticky_tokens.experiment.setting(length=(200,), rho=(0.3,), seed=(0, 1, 2))
    found = sticky_tokens.run(setting).mean("seed").squeeze()
    information = float(parent_gradient.limits(3, 1.0, 2, 20_000, 0)["information"][1])
    assert float(found.itself) == pytest.approx(0.3 * 2, abs=0.03)
    assert float(found.parent) == pytest.approx(0.3**2 * 2 + 0.7**2 * information, abs=0.03)


def test_the_border_is_where_both_are_equal():
    rho = sticky_tokens.threshold(3, count=5000)
    information = rho * 2 / (1 - rho)
    assert rho * 2 == pytest.approx(rho**2 * 2 + (1 - rho) ** 2 * information)


def test_the_crossing_of_two_lines():
    rho = xr.DataArray([0.0, 0.1, 0.2, 0.3], dims="rho")
    lines = {"itself": (("seed", "rho"), [2 * rho.values, 3 * rho.values]),
             "parent": (("seed", "rho"), [[0.3] * 4, [0.36] * 4])}  # fmt: skip
    found = sticky_tokens.crossing(xr.Dataset(lines, coords={"rho": rho.values, "seed": [0, 1]}))
    assert found.values.tolist() == pytest.approx([0.15, 0.12])
