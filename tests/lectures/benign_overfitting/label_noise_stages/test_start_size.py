"""The size of the start: carriers by hand, the exact tie of signal and noise, borders on made curves, both limits."""

import math

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting.label_noise_stages import start_size
from flbook.lectures.benign_overfitting.label_noise_stages.network_parts import carriers, spoken
from flbook.lectures.benign_overfitting.label_noise_stages.start_size import experiment
from flbook.training.optimizers import GradientDescent


def drawn(start: float, n: int = 20, m: int = 6, d: int = 10**8) -> GramTraining:
    """Three data sets of n SNR^2 = 3, a fifth of the labels flipped; the size of the first responses is given."""
    gram = draw_gram(n, 2 * m, d, sigma_0=start / math.sqrt(d), seed=(0, 1, 2))
    strength = torch.tensor([3.0 * d / n]).double().sqrt()
    return GramTraining(gram.with_signals(strength), *flipped_labels(n, 0.2, 0), scale=1 / m)


def test_carriers_by_hand():
    task = drawn(0.01)
    z, m = task.patches(task.start())["noise"], 6
    found = carriers(task, task.start())
    for i in range(20):
        own = z[..., :m, i] if task.observed[..., i] > 0 else z[..., m:, i]
        torch.testing.assert_close(found[..., i], (own > 0).double().mean(-1))


def test_signal_and_noise_are_tied_while_carriers_stay():
    task = drawn(0.1)
    early = start_size.trained(task, GradientDescent(0.01 * 20 * 6 / 10**8), 100, task.start())
    late = start_size.trained(task, GradientDescent(0.02 * 20 * 6 / 10**8), 100, early)
    (s_0, n_0), (s_1, n_1) = spoken(task, early), spoken(task, late)
    phi, sign = carriers(task, late), task.y * task.observed
    torch.testing.assert_close(carriers(task, early), phi)
    seen = phi > 0
    gain = torch.where(seen, (n_1 - n_0) / phi.clamp(min=0.1), torch.nan)
    unseen = (~seen).any(-1)
    tie = 3.0 / 2 * (sign * gain).mean(-1)
    assert not unseen.all()
    torch.testing.assert_close((s_1 - s_0)[~unseen], tie[~unseen], rtol=0.02, atol=0)


def test_a_small_start_has_more_carriers_and_both_borders_follow():
    fewer = dict(seed=(0, 1, 2, 3), n_snr2=(1.0, 1.5, 2.2, 3.2), n=60, late=40)
    setting = experiment.setting("book", start=(0.0001, 3.0), **fewer)
    run = experiment.measure(setting).squeeze()
    small, large = (run.sel(start=start) for start in setting.start)
    assert abs(float(large.phi_early.mean()) - 0.5) < 0.06
    assert abs(float(small.phi_early.mean()) - start_size.kicked_share(0.5)) < 0.08
    assert small.phi_late.mean() > large.phi_late.mean()
    for name in ("lead_early", "lead_late"):
        assert start_size.border(small[name]).value > start_size.border(large[name]).value


def test_border():
    values, places = [[1.0, 0.0, -1.0], [3.0, 1.0, -1.0]], {"n_snr2": [1.0, 4.0, 16.0]}
    lead = xr.DataArray(values, dims=("seed", "n_snr2"), coords=places)
    assert start_size.border(lead).value == pytest.approx(4 * 4 ** (1 / 3))
    above = xr.DataArray([[2.0, 1.0]] * 2, dims=("seed", "n_snr2"), coords={"n_snr2": [1.0, 4.0]})
    assert start_size.border(above).value == pytest.approx(16.0), "a little beyond the grid"


def test_the_share_of_carriers_after_pushes():
    shares = [start_size.kicked_share(v) for v in (0.0, 0.5, 5.0, 1e9)]
    assert np.all(np.diff(shares) < 0) and shares[-1] == pytest.approx(0.75, abs=1e-5)


def test_a_frozen_model_has_no_carriers():
    with pytest.raises(ValueError, match="model must be network, linear or lazy; got frozen"):
        experiment.setting("tiny", model=("frozen",))
