"""Linear attention at a tiny preset: labelled, independent of the grid, at its closed forms, and stored as measured."""

import numpy as np
import pytest
import torch

from flbook.lectures.in_context_learning import linear_attention
from flbook.lectures.in_context_learning.linear_attention import Setting, covariance_of, measure
from flbook.runs import results, settings
from flbook.theory import attention_risk as theory

TINY = Setting(covariance=("isotropic", "rotated"), parts=("steps", "descent"), seed=(0, 1, 2), n=8, d=2, steps=8,
               batch=8, test=1000)


def test_a_labelled_dataset():
    dataset = measure(TINY)
    assert dataset.risk.dims == ("covariance", "parts", "layers", "seed")
    for name, values in settings.axes(TINY).items():
        assert tuple(dataset[name].values.tolist()) == values, name
    for name, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    assert (dataset.risk > 0).all()


def test_rivals_are_ordered_and_one_layer_is_the_closed_form():
    dataset = measure(TINY.thinned(test=20_000, steps=1, seed=(0,), parts=("steps",), layers=(1, 2, 3)))
    assert (dataset.descent >= dataset.preconditioned * (1 - 1e-9)).all()
    assert (dataset.preconditioned >= dataset.bent * (1 - 1e-4)).all()
    np.testing.assert_allclose(dataset.preconditioned.sel(layers=1), theory.isotropic_risk(8, 2), rtol=0.03)
    np.testing.assert_allclose(dataset.descent.sel(covariance="isotropic"),
                               dataset.preconditioned.sel(covariance="isotropic"), rtol=1e-9)


def test_a_cell_does_not_see_the_grid_around_it(tmp_path):
    whole = linear_attention.run(TINY, cache=tmp_path)
    one = measure(TINY.thinned(covariance=("rotated",), parts=("descent",), layers=(2,), seed=(1,))).squeeze()
    seen = whole.sel(covariance="rotated", parts="descent", layers=2, seed=1)
    np.testing.assert_allclose(one.risk, seen.risk, rtol=1e-4)
    np.testing.assert_allclose(one.bent, seen.bent, rtol=1e-6)


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


@pytest.mark.parametrize("change, sentence", [
    (dict(covariance=("skew",)), "covariance must be among isotropic, rotated; got 'skew'"),
    (dict(parts=("some",)), "parts must be among steps, descent, all; got 'some'"),
    (dict(layers=(0, 1)), "layers must be at least 1; got 0"),
])
def test_what_does_not_exist_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        linear_attention.run(TINY.thinned(**change))


def test_three_cells_of_the_stored_result():
    stored = results.open("linear_attention")
    setting = Setting.paper().thinned(covariance=("isotropic",), parts=("steps",), layers=(1,), seed=(0, 4, 9))
    again = measure(setting).squeeze()
    seen = stored.sel(covariance="isotropic", parts="steps", layers=1, seed=[0, 4, 9])
    np.testing.assert_allclose(again.risk, seen.risk, rtol=1e-3)
    np.testing.assert_allclose(again.descent, seen.descent, rtol=1e-5)
