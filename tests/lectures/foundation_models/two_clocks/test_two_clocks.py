"""Gaussian features: against explicit ones, and the experiment's two clocks."""

import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models import two_clocks
from flbook.lectures.foundation_models.two_clocks import clocks
from flbook.lectures.foundation_models.two_clocks.relaxation import Relaxation


def test_gaussian_features_are_those_of_explicit_matrices():
    d, n, m, kept = 3, 7, 9, 0.7
    (a, v2, r2), x = clocks.strengths(kept), two_clocks.samples(n, d, (4,))
    flow = two_clocks.equivalent(x, m, kept, (4,))
    drawn = rng.normal((m, d + n), (4,), "few features", dtype=torch.float64)[0]  # of no more features than vectors
    w, omega = drawn[:, :d], drawn[:, d:]
    g = a * kept**0.5 * w @ x[0].T / d**0.5 + v2**0.5 * omega
    own = torch.eye(m) * r2
    u = (g @ g.T / n + a**2 * (1 - kept) * w @ w.T / d + own) / m
    u_new = (a**2 * w @ w.T / d + own + v2 * torch.eye(m)) / m
    v = a * ((1 - kept) / d) ** 0.5 * w / m**0.5
    s = torch.tensor([3.0, 100.0, 1e4, 1e6]).double()
    for one, other in zip(flow.losses(s), Relaxation.of(u, v, u_new, v).losses(s), strict=True):
        torch.testing.assert_close(one[0], other, rtol=1e-6, atol=1e-7)


def test_the_gram_matrix_has_the_mean_one():
    for m in (5, 4000):
        gram = two_clocks.gram(20, m, tuple(range(40))).mean(0)
        width = 5 * (2 / (40 * m)) ** 0.5  # of the mean of 40 draws
        torch.testing.assert_close(gram, torch.eye(20, dtype=torch.float64), rtol=0, atol=width)


def test_more_samples_put_off_the_memory_and_not_the_learning():
    found = two_clocks.run("tiny").squeeze(["kept", "m"]).mean("seed")
    assert float(found.learned[1] / found.learned[0]) == pytest.approx(1, abs=0.1)
    assert 1.5 < float(found.half_gap[1] / found.half_gap[0]) < 4
    assert (found.slow < found.bulk).all() and (found.best < found.ridge + 1e-3).all()


def test_curves_have_all_axes():
    found = two_clocks.curves(two_clocks.experiment.setting("tiny"))
    assert found.test.dims == ("n", "seed", "s") and found.rates.sizes["mode"] == 24 + 6
    assert float(found.test.isel(s=0).max()) < 1.01


def test_settings_out_of_range_are_refused():
    for wrong, words in (({"kept": (1.0,)}, "kept"), ({"n": (8,)}, "some directions have no sample")):
        with pytest.raises(ValueError, match=words):
            two_clocks.experiment.setting(**wrong)
