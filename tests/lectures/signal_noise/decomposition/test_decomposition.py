"""The decomposition at a tiny size: the law of its first step, the span, and what no dimension may change."""

import numpy as np
import pytest
import torch

from flbook import devices
from flbook.data.signal_noise import SignalNoise
from flbook.lectures.signal_noise import decomposition
from flbook.lectures.signal_noise.decomposition import experiment
from flbook.lectures.signal_noise.decomposition.race_recursion import share_after_one_step
from flbook.models.cnn import TwoLayerCNN
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

TINY = experiment.setting("tiny", model=("network",))


@pytest.mark.parametrize("device", devices.present())
def test_signal_and_noise_are_learned_alike_on_every_device(device):
    found = experiment.run(TINY, device)
    assert all(np.isfinite(values).all() for values in found.values())
    assert (found.gamma.isel(step=-1) > 0).all() and (found.rho.isel(step=-1) > 0).all()
    np.testing.assert_allclose(found.gamma, experiment.run(TINY).gamma, rtol=1e-6)


def test_the_first_step_follows_the_recursion():
    """From zero weights every margin is 0, so gamma/rho is known: half the samples see a filter's signal."""
    zero = TINY.thinned(start=(1e-9,))
    measured = decomposition.ratio(experiment.run(zero)).squeeze(("model", "start")).mean("seed")
    law = (1 - 2 * measured.flip_prob) * measured.n_snr2 / 2
    np.testing.assert_allclose(measured.sel(d=10**7), law.transpose("flip_prob", "n_snr2"), rtol=2e-3)
    linear = decomposition.ratio(experiment.run(zero.thinned(model=("linear",))))
    linear = linear.squeeze(("model", "start")).mean("seed")
    np.testing.assert_allclose(linear.sel(d=10**7), 2 * law.transpose("flip_prob", "n_snr2"), rtol=2e-3)


def test_active_filters_stay_active_and_a_vanishing_start_opens_half_of_the_others():
    """The first step only adds to the noise of a filter's own samples; it decides on those that it does not see."""
    zero = TINY.thinned(start=(1e-9, 1e3), seed=tuple(range(40)), d=(10**7,), flip_prob=(0.0,), n_snr2=(0.5,))
    share = experiment.run(zero).share.squeeze(drop=True)
    before, after = (share.sel(step=step) for step in (0, 1))
    assert (after >= before).all()
    small, large = (after.sel(start=start).mean() for start in zero.start)
    assert abs(small - share_after_one_step(1e-6, 0.5, 0.0)) < 0.03 and abs(large - 0.5) < 0.03


def test_gates_of_the_lazy_network_stay():
    lazy = experiment.run(TINY.thinned(model=("lazy",))).share
    assert (lazy == lazy.sel(step=0)).all()


def test_what_is_kept_of_a_run_are_its_ends():
    found = experiment.run(TINY)
    short = decomposition.kept(found)
    np.testing.assert_allclose(short.ratio_last, decomposition.ratio(found, -1).squeeze("model"), rtol=1e-6)
    np.testing.assert_allclose(short.share_first, found.share.sel(step=1).squeeze("model"), rtol=1e-6)
    assert "seed" not in short.gamma.dims


def test_coefficients_of_a_known_move():
    sample = SignalNoise(n=5, d=40, mu_norm=2.0).draw(0)
    along_mu = torch.tensor([[1.5], [-0.5]], dtype=torch.float64)  # (sign, filter)
    along_xi = torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(2, 1, 5)
    move = along_mu[..., None] * sample.mu + along_xi @ sample.xi
    found = decomposition.decompose(move, sample)
    torch.testing.assert_close(found, (along_mu, along_xi))
    assert float(decomposition.outside(move, sample).abs().max()) < 1e-14
    beside = torch.linalg.qr(torch.cat([sample.mu[None], sample.xi]).T, mode="complete").Q[:, -1]
    length = move.norm(dim=-1)[..., None]
    torch.testing.assert_close(decomposition.outside(move + length * beside, sample), torch.full_like(along_mu, 0.5))


def test_the_share_outside_is_taken_member_by_member():
    data, seeds = SignalNoise(n=4, d=30, mu_norm=1.0), (0, 1)
    sample = data.draw(seeds)
    cnn = TwoLayerCNN(30, 3, sigma_0=0.1, seed=seeds, dtype=torch.float64)
    moved = fit(Training(cnn, sample.x, sample.observed), GradientDescent(0.1), 3).params["w"] - cnn.w.detach()
    noise = torch.ones_like(moved)
    for k, seed in enumerate(seeds):
        alone = decomposition.outside((moved + noise)[k], data.draw(seed))
        torch.testing.assert_close(decomposition.outside(moved + noise, sample)[k], alone)
    assert float(decomposition.outside(moved, sample).max()) < 1e-12
