"""Other numbers of patches and laws of the cut: the outputs approach the root."""

import numpy as np
import pytest

from flbook.lectures.training_strategies.cutmix import cut_sizes
from flbook.lectures.training_strategies.cutmix.resting import resting_output


def test_the_law_pastes_with_the_share_that_is_said():
    assert cut_sizes.law(4, 0.4) == pytest.approx((0.2, 0.2, 0.2, 0.2, 0.2))
    assert sum(cut_sizes.law(5, 0.0)) == pytest.approx(1) and cut_sizes.law(5, 0.0)[0] == 0


def test_outputs_are_near_the_root():
    setting = cut_sizes.Setting(patches=(3, 5), whole=(0.0, 0.5), seed=(0, 1), d=400, steps=600)
    z = cut_sizes.experiment.measure(setting).z.mean("seed")
    root = [[resting_output(P, cut_sizes.law(P, w)) for w in (0.0, 0.5)] for P in (3, 5)]
    np.testing.assert_allclose(z, root, rtol=0.03)


def test_a_single_patch_is_refused():
    with pytest.raises(ValueError, match="^patches must be at least 2"):
        cut_sizes.Setting(patches=(1,))
