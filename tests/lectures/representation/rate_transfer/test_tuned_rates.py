"""Best rates: the parabola is exact on parabolas, and windows are refused where the best rate lies at their end."""

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.data.ten_digits import ten_digits
from flbook.lectures.representation import rate_transfer
from flbook.lectures.representation.rate_transfer import sharper, transfer_pictures, tuned_rates
from flbook.lectures.representation.rate_transfer.three_layers import ThreeLayers
from flbook.training.parametrisation import MAXIMAL_UPDATE


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


@pytest.fixture(scope="module")
def path():
    return sharper.experiment.measure(sharper.experiment.setting("tiny"))


def test_sharpness_is_in_units_of_the_rates(path):
    """At the base width all parametrisations are one network, so their sharpness is one; beside it, nearly."""
    before = path.sharpness.sel(step=0)
    np.testing.assert_allclose(before.sel(series="tangent"), before.sel(series="maximal"), rtol=0.05)
    assert float(path.sharpness.sel(width=8).std("series").max()) < 1e-3


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian_after_so_many_steps(path):
    """By the whole Hessian of the network of 8 neurons, trained by automatic differentiation."""
    net, digits = ThreeLayers(8, MAXIMAL_UPDATE, base=8, label=1.0), ten_digits(10, 0)
    x, sizes = digits.x.flatten(1).double(), (8 * 64, 8 * 8, 10 * 8)
    start = torch.cat([w.flatten() for w in net.start(64, 10, 0)]).double()

    def outputs(flat):
        U, W, V = flat.split(sizes)
        return net.outputs([U.view(8, 64), W.view(8, 8), V.view(10, 8)], x)

    def loss(flat):
        return net.descended(outputs(flat) - outputs(start), digits.y)

    flat = start
    for step in (0, 1, 2, 3):
        if step in path.step:
            top = torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, flat))[-1]
            found = path.sel(series="maximal", width=8, step=step)
            assert found.sharpness.item() == pytest.approx(top.item(), rel=5e-3)
            assert found.loss.item() == pytest.approx((loss(flat) / loss(start)).item(), rel=1e-4)
        flat = flat - torch.autograd.functional.jacobian(loss, flat) / 128


def test_sharpness_rises_from_the_first_step_to_the_last(path):
    late, early = path.sharpness.sel(step=3, drop=True), path.sharpness.sel(step=0, drop=True)
    np.testing.assert_allclose(sharper.rise(path), late / early - 1, rtol=1e-6)
    with pytest.raises(ValueError, match="step must increase, as `rise` compares the last with the first"):
        sharper.Setting(step=(3, 0))


def test_the_picture_of_sharpness(path):
    both = xr.concat([path, path.assign_coords(seed=path.seed + 1) + 0.1], "seed")
    panels = transfer_pictures.sharpness(both).axes
    assert [ax.get_title("left") or ax.get_title() for ax in panels] == ["Maximal update", "Neural tangent"]
    for ax, series in zip(panels, ("maximal", "tangent"), strict=True):
        drawn = [line.get_ydata() for line in ax.lines]
        np.testing.assert_allclose(drawn, both.sharpness.sel(series=series).mean("seed"), rtol=1e-6)
