"""The size of the output weights: its ends are known parametrisations, its exponents rise in steps, bad sizes."""

import numpy as np
import pytest

from flbook.lectures.representation.maximal_update import output_size
from flbook.training.parametrisation import MAXIMAL_UPDATE, NEURAL_TANGENT

TINY = output_size.experiment.setting("tiny")


def test_its_ends_are_the_neural_tangent_parametrisation_and_maximal_update():
    for p, known in ((0.5, NEURAL_TANGENT), (1.0, MAXIMAL_UPDATE)):
        one = output_size.of_size(p)
        assert (one.size, one.descent) == (known.size, known.descent)
        assert one.moved() == (p - 1, p - 1, 0)


def test_one_step_is_larger_by_the_power_of_the_width():
    moved = output_size.run(TINY).moved.sel(step=1, width=64)
    np.testing.assert_allclose(moved.sel(p=1.0, layer="z2") / moved.sel(p=0.5, layer="z2"), 2.0, rtol=0.01)


@pytest.mark.parametrize("p", [float("nan"), float("inf")])
def test_an_exponent_that_is_no_number_is_refused(p):
    with pytest.raises(ValueError, match="p must be"):
        output_size.experiment.setting("tiny", p=(0.5, p))
