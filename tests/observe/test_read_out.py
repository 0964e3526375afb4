"""Probes against scikit-learn and chance, erasing against closed forms."""

import pytest
import torch
from torch import nn

from flbook import observe
from flbook.data.ten_digits import ten_digits
from flbook.observe import read_out


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def concept():
    """Correlated features, of which some lean on a concept; one direction is dead."""
    z = (torch.arange(400) % 2 * 2.0 - 1.0).double()
    h = normal(400, 6) @ normal(6, 6, seed=3) + 0.8 * z[:, None] * normal(6, seed=4)
    return torch.cat([h, torch.ones(400, 1, dtype=torch.float64)], 1)[None], z[None]


def least_squares(h, z):
    """Weights of a probe without any ridge, the shortest."""
    centred, target = h - h.mean(-2, keepdim=True), z - z.mean(-1, keepdim=True)
    return torch.linalg.pinv(centred, rtol=1e-8) @ target[..., None]


@pytest.mark.parametrize("smallest", [True, False])
def test_after_erasing_the_weights_of_a_least_squares_probe_vanish(smallest):
    h, z = concept()
    erase = observe.erase(h, z, smallest)
    left = erase(h)
    assert least_squares(left, z).abs().max() < 1e-10 and least_squares(h, z).abs().max() > 0.1
    torch.testing.assert_close(left.mean(1), h.mean(1))
    torch.testing.assert_close(erase(left), left)  # twice is once
    means = read_out.mean_difference(left, z)
    assert means.abs().max() < 1e-10 and read_out.mean_difference(h, z).abs().max() > 0.1


def test_no_logistic_probe_beats_the_one_that_answers_a_constant():
    """Not even one that is trained to the end on the very samples: the gradient at weights 0 vanishes."""
    from sklearn.linear_model import LogisticRegression

    h, z = concept()
    left = observe.erase(h, z)(h)[0].numpy()
    fitted = LogisticRegression(C=1e3).fit(left, z[0].numpy())
    assert abs(fitted.coef_).max() < 1e-3 < abs(LogisticRegression(C=1e3).fit(h[0].numpy(), z[0].numpy()).coef_).max()


def test_a_concept_of_ten_classes_is_erased_and_a_probe_at_chance_after():
    split = ten_digits(n=1000, seed=0)
    f = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU()).double()
    with torch.no_grad():
        h, fresh = f(split.x), f(split.x_test)
    erase = observe.erase(h, nn.functional.one_hot(split.y).to(h))
    assert max(least_squares(erase(h), (split.y == c).to(h)).abs().max().item() for c in range(10)) < 1e-10
    before, after = (observe.probe(x, split.y_test, permutations=10) for x in (fresh, erase(fresh)))
    assert before.accuracy.interval[0] > 0.8 > 0.2 > before.chance.interval[1]
    assert after.accuracy.value < 0.45 < before.accuracy.value - 0.4
    assert before.weights.shape == (40, 10) and before.threshold.shape == (10,)


def test_on_the_samples_it_was_found_on_a_held_out_probe_falls_below_chance():
    h, z = concept()
    left = observe.erase(h, z)(h)[0]
    assert observe.probe(left, z[0]).accuracy.value <= 0.5


def test_the_smallest_edit_is_the_closed_form_and_the_smaller():
    h, z = concept()
    centred = h[0] - h[0].mean(0)
    s, cov = (centred.T @ z[0] / 400)[:6], (centred.T @ centred / 400)[:6, :6]
    small, orthogonal = ((observe.erase(h, z, way)(h) - h).square().sum(-1).mean() for way in (True, False))
    torch.testing.assert_close(small, s @ s / (s @ torch.linalg.solve(cov, s)))
    torch.testing.assert_close(orthogonal, s @ cov @ s / (s @ s))
    assert small < 0.9 * orthogonal


def test_a_probe_is_ridge_regression():
    h, z = concept()
    from sklearn.linear_model import Ridge

    size = h[0].var(0, correction=0).mean()
    plain = Ridge(alpha=float(1e-3 * size * 400)).fit(h[0].numpy(), z[0].numpy())
    w, threshold = read_out.ridge_probe(h, z)
    torch.testing.assert_close(w[0], torch.tensor(plain.coef_))
    right = torch.tensor(plain.predict(h[0].numpy()) > 0) == (z[0] > 0)
    torch.testing.assert_close(read_out.probed((w, threshold), h, z)[0], right.double().mean())


def test_an_erased_concept_leaves_a_probe_that_says_the_mean():
    h, z = concept()
    left = observe.erase(h, z)(h)
    outputs = [torch.einsum("...nk,...k->...n", x, w) - threshold[:, None]
               for x in (h, left) for w, threshold in [read_out.ridge_probe(x, z)]]
    # the mean of z is 0 here, and the sign of what is left is rounding
    assert outputs[1].abs().max() < 1e-9 and outputs[0].abs().max() > 0.1
    found, lost = (read_out.probed(read_out.ridge_probe(x, z), x, z) for x in (h, left))
    assert lost == 0.5 < found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_probe_of_noise_is_at_chance_and_one_of_a_concept_above(dtype):
    h, z = normal(600, 8).to(dtype), torch.arange(600) % 3
    nothing = observe.probe(h, z)
    low, high = nothing.chance.interval
    assert low <= nothing.accuracy.value <= high and 0.28 < nothing.chance.value < 0.39
    assert nothing.accuracy.interval[0] < 1 / 3 < nothing.accuracy.interval[1]
    found = observe.probe(h + 3 * torch.eye(8).to(dtype)[z], z)
    assert found.accuracy.interval[0] > 0.85 and found.weights.dtype == dtype
    same = observe.probe(h + 3 * torch.eye(8).to(dtype)[z], z.to(dtype))
    assert same.accuracy == found.accuracy, "whole numbers of any dtype"


def test_erasing_makes_nothing_on_the_cpu():
    h, z = torch.empty(2, 9, 3, device="meta"), torch.empty(2, 9, device="meta")
    assert observe.erase(h, z)(h).device.type == "meta" and observe.erase(h, z)(h).shape == (2, 9, 3)


H = torch.randn(20, 3)


@pytest.mark.parametrize("act, sentence", [
    (lambda: observe.erase(H, torch.ones(20)), "z must differ between samples"),
    (lambda: observe.erase(H, torch.ones(19)), r"z \(\*E, n\) or \(\*E, n, q\); got \(20, 3\) and \(19,\)"),
    (lambda: observe.probe(H, torch.randn(20)), "z must name classes, 2 to 100 whole numbers.*got 20 different"),
    (lambda: observe.probe(H, torch.ones(20)), "z must name classes.*got 1 different values from 1 to 1"),
    (lambda: observe.probe(H, torch.ones(3)), r"got \(20, 3\) and \(3,\)"),
    (lambda: observe.probe(H, torch.arange(20) == 0), "the rarest of 2 classes has 1 of 20 samples"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act()
