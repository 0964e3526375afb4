"""Reduced draws against direct ones in d dimensions, and the laws."""

import typing
from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook import devices, hermite
from flbook.estimators import averaging, weighted_second_moment
from flbook.lectures.representation import information_exponent
from flbook.lectures.representation.information_exponent import Setting, experiment
from flbook.theory import overlap as single_index

TINY = experiment.setting("tiny")


@pytest.mark.parametrize("statistic", information_exponent.STATISTICS)
def test_every_statistic_is_a_cosine_whose_cells_stand_alone(statistic):
    whole = experiment.run(replace(TINY, statistic=statistic))
    assert (np.abs(whole.alignment) <= 1).all()
    np.testing.assert_allclose(whole.overlap, whole.alignment**2)
    part = experiment.measure(replace(TINY, statistic=statistic, alpha=(1.0,), seed=(3,), gate=("sign y",)))
    np.testing.assert_allclose(whole.alignment.sel(seed=[3], alpha=[1.0], gate=["sign y"]), part.alignment)


def test_every_gate_may_stand_in_a_setting():
    assert tuple(information_exponent.gates(hermite.he(1))) == typing.get_args(information_exponent.Gate)


def direct(statistic: str, d: int, n: int, seeds: int) -> np.ndarray:
    """Squared cosines drawn in d dimensions, for y = h_3 and the gate sign y."""
    x = torch.randn(seeds, n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    t, m = torch.sign(hermite.he(3)(x[..., 0])), d**-0.5
    if statistic == "gradient":
        w = torch.zeros(d, dtype=torch.float64)
        w[0], w[1] = m, (1 - m**2) ** 0.5
        step = averaging(x, t * (x @ w > 1))
        step = step - (step @ w)[:, None] * w
    else:
        step = averaging(x, t)
    return (step[:, 0] / step.norm(dim=-1).clip(min=1e-300)).square().numpy()


@pytest.mark.parametrize("statistic", ["average", "gradient"])
def test_drawn_in_two_coordinates_it_is_equal_in_law(statistic):
    d, n, seeds = 12, 36, 700
    setting = Setting(gate=("sign y",), d=(d,), alpha=(n / d,), seed=tuple(range(seeds)), statistic=statistic)
    reduced = experiment.measure(setting).overlap.values.ravel()
    full = direct(statistic, d, n, seeds)
    error = np.hypot(reduced.std(), full.std()) / np.sqrt(seeds)
    assert abs(reduced.mean() - full.mean()) < 4 * error
    levels = np.quantile(full, [0.25, 0.5, 0.75])
    np.testing.assert_allclose((reduced[:, None] < levels).mean(0), [0.25, 0.5, 0.75], atol=0.09)


def test_the_law_of_one_step_is_the_step():
    k, d, n = 2, 9, 400_000
    m, (signal, power, along) = d**-0.5, information_exponent.step_law(2, 9)
    a, p = torch.randn(2, n, generator=torch.Generator().manual_seed(2), dtype=torch.float64).numpy()
    t = hermite.he(k)(m * a + np.sqrt(1 - m**2) * p) * information_exponent.activation_slope(a)
    assert power == pytest.approx((t**2).mean(), abs=4 * (t**2).std() / np.sqrt(n))
    assert signal == pytest.approx((t * p).mean(), abs=4 * (t * p).std() / np.sqrt(n))
    off = (t * p - signal) ** 2
    assert along == pytest.approx(off.mean(), abs=4 * off.std() / np.sqrt(n))


def test_averages_follow_their_law():
    setting = Setting(gate=("sign y", "E[z|y]"), d=(400,), alpha=(3.0,), seed=tuple(range(40)))
    found = experiment.measure(setting).overlap.squeeze(("link", "d", "alpha"))
    for name in setting.gate:
        gate, jumps = information_exponent.gates(hermite.he(3))[name]
        law = single_index.average_overlap(3.0, hermite.strength(gate, hermite.he(3), 1, jumps))
        assert float(found.sel(gate=name).mean()) == pytest.approx(law, abs=0.03)


@pytest.mark.parametrize("device", devices.present())
def test_matrix_by_hand(device):
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], device=device)
    weight = torch.tensor([3.0, 0.0, -3.0], device=device)
    torch.testing.assert_close(weighted_second_moment(x, weight).cpu(), torch.tensor([[0.0, -1.0], [-1.0, -1.0]]))


def test_matrix_sees_the_fourth_polynomial():
    setting = experiment.setting("spectral", d=(60,), alpha=(0.3, 10.0), seed=(0, 1, 2))
    mean = experiment.measure(setting).overlap.squeeze(("link", "d")).mean("seed")
    assert (mean.sel(alpha=0.3) < 0.4).all()
    assert float(mean.sel(alpha=10.0, gate="1 - 1/E[z²|y]")) > 0.9
    assert float(mean.sel(alpha=10.0, gate="y")) < 0.3
