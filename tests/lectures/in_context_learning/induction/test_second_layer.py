"""The second layer: losses by hand, and its best temperature."""

import math

import numpy as np
import pytest
import torch
import xarray as xr

from flbook.lectures.in_context_learning.induction import second_layer


def test_the_loss_above_the_entropy_by_hand():
    rows = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    assert float(second_layer.excess(torch.tensor([[1.0, 1.0]]).double(), rows)) == pytest.approx(0, abs=3e-4)
    expected = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert float(second_layer.excess(torch.tensor([[3.0, 1.0]]).double(), rows)) == pytest.approx(expected, abs=3e-4)
    assert float(second_layer.excess(torch.zeros(1, 2).double(), rows)) == pytest.approx(0, abs=3e-4)


def test_the_lowest_point_of_a_parabola():
    beta = second_layer.BETAS
    head = np.stack([(beta - 2.018) ** 2, (beta - 3.331) ** 2])
    found = xr.Dataset({"head": (("seed", "beta"), head), "bayes": ("seed", [0.0, 0.0])})
    assert second_layer.best(found).values.tolist() == pytest.approx([2.018, 3.331])


def test_bayes_is_best_and_the_head_between_it_and_its_limits():
    found = second_layer.run(second_layer.experiment.setting(tokens=(3,), length=(80,), seed=(0, 1))).squeeze()
    head = found["head"]
    assert (found.bayes < head.min("beta")).all() and (head.min("beta") < found.counts).all()
    np.testing.assert_allclose(head.sel(beta=0.0), found.unigram, rtol=1e-9)
    assert second_layer.best(found).values == pytest.approx(math.log1p(80 / 3), abs=0.25)
