"""Three and four layers: times and distances of an aligned start, which theory follows to the end."""

import numpy as np
import pytest

from flbook.lectures.training_strategies.saddles_and_edge import deeper_starts


def test_smaller_starts_wait_longer_and_come_nearer():
    setting = deeper_starts.experiment.setting(depth=(3, 4), shrink=(0.5, 0.25), seed=(0, 1), largest=0.02)
    found = deeper_starts.run(setting)
    slower = found.half.isel(shrink=1) / found.half.isel(shrink=0)
    assert (abs(slower.sel(depth=3, mode=1) / 2 - 1) < 0.05).all()  # t ~ sigma^-(L-2), and sigma^(L-2) is halved
    assert (abs(slower.sel(depth=4, mode=1) / 2 - 1) < 0.1).all()
    nearer = found.distance.sel(depth=3)
    assert np.log2(float((nearer.isel(shrink=0) / nearer.isel(shrink=1)).mean())) == pytest.approx(3, abs=0.3)
