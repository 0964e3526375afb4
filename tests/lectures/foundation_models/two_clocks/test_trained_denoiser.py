"""The trained network: an ensemble of its members, which learn; its first steps are those of the stored run."""

import numpy as np
import torch

from flbook.lectures.foundation_models.two_clocks import trained_denoiser


def test_members_are_networks_of_their_own():
    setting = trained_denoiser.experiment.setting("tiny")
    params, x = trained_denoiser.start(setting), torch.randn(2, 5, setting.d)
    both = trained_denoiser.denoise(params, x)
    for k in range(2):
        own = [part[k : k + 1] for part in params]
        torch.testing.assert_close(trained_denoiser.denoise(own, x[k : k + 1])[0], both[k])


def test_the_first_steps_are_those_of_the_stored_run():
    stored = trained_denoiser.experiment.stored()
    again = trained_denoiser.run(trained_denoiser.experiment.setting("longer", n=(12,), steps=4))
    for name in ("train", "test"):
        np.testing.assert_allclose(again[name].sel(step=[1, 2, 4]), stored[name].sel(n=[12], step=[1, 2, 4]), rtol=1e-3)


def test_it_learns_and_reads_on_a_grid():
    found = trained_denoiser.run(trained_denoiser.experiment.setting("tiny", lr=0.01))
    assert float(found.test.isel(step=-1).max()) < float(found.test.isel(step=0).max()) and found.step[-1] == 20
