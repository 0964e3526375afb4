"""The figure of several power laws: dots, predicted slopes through the last dot, fitted slopes written beside them."""

import numpy as np
import xarray as xr

from flbook import fits, plots


def test_laws_with_their_slopes():
    x, seeds = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.9, 1.1])
    about = {"long_name": "neurons N", "units": "1"}
    da = xr.DataArray(seeds[:, None] * x**-0.5, dims=("seed", "N"), coords={"N": ("N", x, about)}, name="moved")
    flat = da.mean("seed") * 0 + 2.0
    laws = {"lazy": (da, fits.exponent(da, "N")), "rich": (flat, fits.exponent(flat, "N"))}
    fig = plots.exponents(laws, "N", theory={"lazy": -1.0}, ylabel="movement", title="Two")
    ax = fig.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("neurons N", "movement")
    dashed, dots, flat_dots = ax.get_lines()
    np.testing.assert_allclose(dashed.get_ydata(), 8**-0.5 * 8 / x)
    np.testing.assert_allclose(dots.get_ydata(), x**-0.5)
    np.testing.assert_allclose(flat_dots.get_ydata(), 2.0)
    texts = [text.get_text() for text in ax.texts]
    assert texts[0].startswith("lazy: \u22120.50\n[\u22120.50") and texts[1] == "rich: 0.00"
