"""Training to zero hinge loss at a tiny preset: both stops, within the theorem's bounds, beside linear rivals."""

from dataclasses import replace

import numpy as np
import torch

from flbook import estimators
from flbook.lectures.benign_overfitting import leaky_relu
from flbook.lectures.benign_overfitting.leaky_relu import experiment, margin

TINY = experiment.setting("tiny")


def test_lengths_and_steps_are_within_a_perceptrons_bounds():
    done = experiment.run(TINY).sel(stop="zero hinge loss", model="network")
    n = done.n
    eta = 1 / (2 * TINY.m * n)
    assert (done.norm * 0.1 * TINY.m**0.5 / done.svm_norm < 3 / 2**0.5).all()
    assert (done.steps * eta * 0.01 * TINY.m / done.svm_norm**2 < 1.5).all()


def test_the_race_ends_where_the_stop_is():
    setting = TINY.thinned(model=("network",), n=(10,), flip_prob=(0.1,), ratio=(4,))
    end = experiment.measure(setting).squeeze().sel(stop="zero hinge loss")
    history = leaky_relu.race(setting, steps=int(end.steps.max()))
    assert (history.hinge_loss.isel(step=-1) < 1e-6).all()
    np.testing.assert_allclose(history.test_error.isel(step=-1), end.test_error, atol=0.005)


def test_linear_rivals_err_as_their_weights_in_d_dimensions_say():
    setting = TINY.thinned(n=(10,), flip_prob=(0.2,), ratio=(2,), model=("linear",))
    found = experiment.measure(setting).squeeze()
    data = leaky_relu.Mixture(10, 20, 0.3, 0.2)
    sample = data.draw(setting.seed)
    weights = {
        "min_norm_error": torch.linalg.lstsq(sample.x, sample.observed[..., None]).solution[..., 0],
        "averaging_error": estimators.averaging(sample.x, sample.observed),
        "svm_error": torch.einsum("sn,snd->sd", estimators.hard_margin(sample.x @ sample.x.mT, sample.observed),
                                  sample.x),
    }
    for name, w in weights.items():
        across = data.sigma_xi * w[:, 1:].square().sum(-1).sqrt()
        expected = torch.special.ndtr(-(w @ sample.mu) / across)
        np.testing.assert_allclose(found[name], expected, rtol=1e-6)
    assert (leaky_relu.hard_margin_error(setting)[0] == found.svm_error).all()


def test_at_a_leak_of_one_the_network_is_the_linear_model():
    setting = replace(TINY.thinned(n=(10,), flip_prob=(0.2,), ratio=(2,)), points=2**14)
    share = leaky_relu.against_linear(setting, (1.0, 0.1)).squeeze()
    assert share.dims == ("leak", "seed") and share.leak.values.tolist() == [1.0, 0.1]
    np.testing.assert_allclose(share.sel(leak=1.0), 1, atol=0.05)
    assert (abs(share.sel(leak=0.1) - 1) > 0.05).any()


def test_private_features_lower_the_price_as_the_closed_form_says():
    setting = leaky_relu.Setting(ratio=(2,), seed=tuple(range(40)))
    errors = [float(leaky_relu.hard_margin_error(setting, coupling).mean()) for coupling in (1.0, 0.5, 0.2)]
    expected = [margin.margin_error(2, 5 / (1 - 5 / 60), 0.1, coupling) for coupling in (1.0, 0.5, 0.2)]
    np.testing.assert_allclose(errors[:2], expected[:2], rtol=0.3)
    assert errors[0] > 10 * errors[1] > 50 * errors[2]
