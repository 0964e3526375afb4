"""Linear attention at a tiny preset, against its rivals and its closed forms."""

import numpy as np
import torch

from flbook.lectures.in_context_learning import linear_attention
from flbook.lectures.in_context_learning.linear_attention import covariance_of, experiment
from flbook.lectures.in_context_learning.shared import attention_risk as theory


def test_rivals_are_ordered_and_one_layer_is_the_closed_form():
    dataset = experiment.measure(experiment.setting(
        "tiny", test=20_000, steps=1, seed=(0,), parts=("steps",), layers=(1, 2, 3)))
    assert (dataset.descent >= dataset.preconditioned * (1 - 1e-9)).all()
    assert (dataset.preconditioned >= dataset.bent * (1 - 1e-4)).all()
    np.testing.assert_allclose(dataset.preconditioned.sel(layers=1), theory.isotropic_risk(8, 2), rtol=0.03)
    np.testing.assert_allclose(dataset.descent.sel(covariance="isotropic"),
                               dataset.preconditioned.sel(covariance="isotropic"), rtol=1e-9)


def test_measured_risk_at_any_length_is_the_closed_form():
    found = linear_attention.lengths((3, 10), (2, 10, 400), covariance_of("rotated", 3), prompts=4000)
    ratio = found.risk / found.exact
    error = ratio.std("seed") / found.seed.size**0.5
    assert (abs(ratio.mean("seed") - 1) < 5 * error).all() and error.max() < 0.02


def test_attention_never_beats_bayes():
    found = linear_attention.against_ridge((10, 40), (0.1, 10.0), covariance_of("rotated", 4), draws=1000)
    assert (found.attention > found.ridge * 0.99).all()
    assert float((found.attention / found.ridge).sel(snr=10.0, n=40)) > 3


def test_an_even_link_leaves_inputs_nothing_and_products_something():
    found = linear_attention.even_link(n=60, d=3, train=1500, test=1500, seed=(0, 1, 2))
    assert abs(float(found.inputs.mean()) - 1) < 0.15 and float(found.products.max()) < 0.6
    x = torch.randn(20_000, 3, dtype=torch.float64)
    assert linear_attention.products(x).mean(0).abs().max() < 0.05
