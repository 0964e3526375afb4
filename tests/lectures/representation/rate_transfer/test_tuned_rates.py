"""Best rates: the parabola is exact on parabolas, and windows are refused where the best rate lies at their end."""

import numpy as np
import pytest
import xarray as xr

from flbook.lectures.representation import rate_transfer
from flbook.lectures.representation.rate_transfer import sharper, tuned_rates


def parabola(best):
    rate = xr.DataArray(2.0 ** np.arange(-3.0, 4.0), dims="rate")
    loss = np.exp((np.log2(rate) - xr.DataArray(best, dims="seed")) ** 2)
    return loss, rate


def test_the_best_rate_of_a_parabola():
    loss, rate = parabola([0.3, -1.2])
    np.testing.assert_allclose(rate_transfer.best_rate(loss, rate), 2.0 ** np.array([0.3, -1.2]))


@pytest.mark.parametrize("best", [-3.2, 3.4])
def test_an_end_is_refused(best):
    loss, rate = parabola([0.0, best])
    with pytest.raises(ValueError, match="the loss is least at an end of the rates; take a wider range of rates"):
        rate_transfer.best_rate(loss, rate)


def test_a_window_moves_by_its_slope():
    setting = tuned_rates.Setting()
    base, wide = (tuned_rates.window(setting, "standard", width) for width in (64, 512))
    np.testing.assert_allclose(wide * 8, base)
    np.testing.assert_allclose(tuned_rates.window(setting, "tangent", 512), base)


def test_unknown_training_and_too_many_samples():
    with pytest.raises(ValueError, match="series must be among standard"):
        tuned_rates.Setting(series=("mup",))
    with pytest.raises(ValueError, match="samples must be at most 1796, the digits that there are; got 1797"):
        tuned_rates.Setting(samples=1797)


def test_sharpness_is_in_units_of_the_rates():
    """At the base width all parametrisations are one network, so their sharpness is one; beside it, nearly."""
    found = sharper.experiment.measure(sharper.experiment.setting("tiny"))
    np.testing.assert_allclose(found.before.sel(series="tangent"), found.before.sel(series="maximal"), rtol=0.05)
    assert float(sharper.rise(found).sel(width=8).std("series").max()) < 1e-3
