"""Growth of a power: by hand, against small steps, and what is refused."""

import math

import numpy as np
import pytest

from flbook.lectures.benign_overfitting.relu_power_phase.blow_up import blow_up_time


@pytest.mark.parametrize("q, start, rate, time", [(3.0, 0.5, 2.0, 1.0), (4.0, 0.5, 2.0, 1.0), (4.0, 0.1, 1.0, 50.0)])
def test_blow_up_by_hand(q, start, rate, time):
    assert blow_up_time(start, rate, q) == pytest.approx(time)


def test_the_wrong_side_never_blows_up():
    times = blow_up_time(np.array([-1.0, 0.0, 1.0]), 1.0, 3.0)
    assert times.tolist() == [math.inf, math.inf, 1.0]


@pytest.mark.parametrize("q", [3.0, 4.5])
def test_small_steps_take_the_time_that_the_formula_says(q):
    z, step, taken = 0.3, 1e-5, 0
    while z < 2.0:
        z += step * 0.7 * z ** (q - 1)
        taken += 1
    assert taken * step == pytest.approx(blow_up_time(0.3, 0.7, q) - blow_up_time(2.0, 0.7, q), rel=2e-4)


def test_slower_growth_has_no_end():
    with pytest.raises(ValueError, match="q must be above 2, since slower growth never blows up; got 2.0"):
        blow_up_time(1.0, 1.0, 2.0)
