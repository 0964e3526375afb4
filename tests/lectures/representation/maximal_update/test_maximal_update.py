"""The coordinate check: refusals, the shared base, and the exact law of one step from small rates."""

import numpy as np
import pytest

from flbook.lectures.representation import maximal_update
from flbook.lectures.representation.maximal_update import NAMES, output_size, wider_is_better

TINY = maximal_update.experiment.setting("tiny")


def test_at_the_base_width_all_parametrisations_are_one_network():
    base = maximal_update.run(TINY).moved.sel(width=TINY.base)
    np.testing.assert_allclose(base, base.isel(parametrisation=[0] * len(NAMES)).values, rtol=1e-12)


def test_one_small_step_differs_between_parametrisations_by_the_powers_of_the_table():
    """Where both terms of z2 have one exponent, or the second outweighs, the table holds at every width exactly."""
    one = maximal_update.run(maximal_update.experiment.setting("tiny", step=(1,), rule=("gradient descent",), lr=1e-5))
    moved = one.moved.squeeze(("rule", "step"), drop=True)
    for layer, place in (("z1", 0), ("z2", 1)):
        at = moved.sel(layer=layer, width=64)
        ratio = at.sel(parametrisation="maximal update") / at.sel(parametrisation="neural tangent")
        power = NAMES["maximal update"].moved()[place] - NAMES["neural tangent"].moved()[place]
        np.testing.assert_allclose(ratio, 4.0**power, rtol=1e-4)


def test_parity_of_digits():
    x, y = maximal_update.parity(20, seed=1)
    assert x.shape == (20, 64) and set(y.tolist()) == {-1.0, 1.0}
    x, y = maximal_update.parity(1796, seed=1)
    assert float(x.square().sum(1).mean()) == pytest.approx(1, rel=0.01) and abs(float(y.mean())) < 0.02


@pytest.mark.parametrize("lecture", [maximal_update, output_size, wider_is_better])
def test_a_width_below_the_base_is_refused(lecture):
    with pytest.raises(ValueError, match="width must be at least base = 16, the width that the others are compared"):
        lecture.experiment.setting("tiny", base=16, width=(8, 32))
