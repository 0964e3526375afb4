"""Best rates of linear networks, at tiny sizes."""

import numpy as np
import pytest

from flbook.lectures.representation import rate_transfer
from flbook.lectures.representation.rate_transfer import kernel_growth


def test_orthogonal_starts_forget_the_width():
    setting = rate_transfer.experiment.setting("orthogonal", width=(16, 4096), parametrisation=("maximal",))
    loss = rate_transfer.experiment.measure(setting).loss
    np.testing.assert_allclose(loss.sel(width=16), loss.sel(width=4096))


def test_the_first_step_is_best_where_the_closed_form_says():
    from flbook.lectures.representation.rate_transfer import width_moments

    setting = rate_transfer.experiment.setting("single", width=(64, 1024), seed=(0, 1))
    found = rate_transfer.experiment.measure(setting)
    best = rate_transfer.best_rate(found.loss, found.rate)
    for name in setting.parametrisation:
        for width in setting.width:
            begin = width_moments.start(width, setting.d, setting.seed)
            ratio = width_moments.scale(name, width).ratio
            expected = width_moments.best_single_step(begin, setting.target, ratio)
            np.testing.assert_allclose(best.sel(parametrisation=name, width=width), expected, rtol=0.02)


def test_the_kernel_grows_less_in_wide_lazy_networks():
    found = kernel_growth.experiment.measure(kernel_growth.Setting(width=(64, 1024), seed=(0, 1, 2)))
    change = ((found.after - found.before) / found.before).mean("seed")
    assert change.sel(k=0.0, width=64) / change.sel(k=0.0, width=1024) == pytest.approx(16, rel=0.5)
    assert change.sel(k=0.5, width=1024) == pytest.approx(5**0.5 - 1, rel=0.1)
    assert float(found.left.max()) < 1e-3


def test_unknown_parametrisations_are_refused():
    with pytest.raises(ValueError, match="parametrisation must be among standard, tangent, maximal; got 'ntp'"):
        rate_transfer.Setting(parametrisation=("ntp",))
