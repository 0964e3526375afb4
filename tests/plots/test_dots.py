"""Dots with their closed forms: what is drawn, and what is left out."""

import numpy as np
import xarray as xr

from flbook import plots

RISK = xr.DataArray(
    np.array([[[1.0, 3.0], [0.5, 0.5]], [[0.0, 0.0], [0.0, 0.0]]]), dims=("kind", "n", "seed"),
    coords={"kind": ["a", "b"], "n": ("n", [10, 20], {"long_name": "examples n", "units": "1"}), "seed": [0, 1]},
    name="risk", attrs={"long_name": "risk R", "units": "1"})  # fmt: skip
NAMES = {"a": ("one", plots.SIGNAL), "b": ("two", plots.NOISE)}


def test_means_and_laws_are_drawn():
    fig = plots.dots(RISK, "n", "kind", NAMES, {"a": lambda n: 20 / n}, title="t")
    (ax,) = fig.axes
    assert ax.get_xlabel() == "examples n" and ax.get_ylabel() == "risk R"
    law, measured = ax.get_lines()[0], ax.containers[0][0]
    np.testing.assert_allclose(measured.get_ydata(), [2.0, 0.5])
    np.testing.assert_allclose(law.get_ydata()[[0, -1]], [2.0, 1.0])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one"], "zeros have no place on this axis"


def test_on_linear_axes_zeros_are_drawn():
    (ax,) = plots.dots(RISK, "n", "kind", NAMES, log="", lowest=-1.0, hollow=("b",)).axes
    assert len(ax.containers) == 2
