"""The two-layer network: its task, its start, the kernel machine that is told, at a tiny preset."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flbook.lectures.representation import features_in_real_networks as two_layers
from flbook.lectures.representation.features_in_real_networks import experiment

TINY = experiment.setting("tiny")


def test_the_label_is_the_product_of_two_inputs():
    x, y = two_layers.draw(TINY, 7, "train")
    assert x.shape == (2, 7, 4) and torch.equal(y, x[..., 0] * x[..., 1])
    assert two_layers.relative_error(torch.zeros_like(y), y).tolist() == [1.0, 1.0]


def test_the_start_scales_the_filters_alone():
    small, usual = (two_layers.problem_of(TINY, start).start() for start in (0.3, 1.0))
    for name, p in usual.items():
        torch.testing.assert_close(small[name], (0.3 if name == "layers.0.weight" else 1.0) * p)


def test_the_correlation_before_training_does_not_see_the_start():
    first = experiment.run(replace(TINY, start=(0.3, 3.0))).correlation.sel(step=0)
    np.testing.assert_allclose(first.sel(start=0.3), first.sel(start=3.0), rtol=1e-10)


def test_who_is_told_errs_less():
    setting = replace(TINY, n=60, d=6)
    error, machine = two_layers.rivals(setting).test_error, two_layers.recursion(setting)
    assert (error.sel(model="told") < error.sel(model="kernel")).all()
    assert machine.product.shape == (4, 2, 6, 6)
    trace = machine.product.values.trace(axis1=-2, axis2=-1)
    np.testing.assert_allclose(trace, 6.0)


def test_a_large_start_takes_smaller_steps():
    assert TINY.step_size(0.3) == TINY.lr and TINY.step_size(3.0) == pytest.approx(TINY.lr / 9)
