"""InfoNCE: values that are known, the gradient by hand against autograd, ensembles, and refusals."""

import math
from itertools import product

import pytest
import torch

from flbook import rng
from flbook.lectures.foundation_models.shared.info_nce import InfoNCE, all_others, normalise, other_labels

Y = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0])
KINDS = [
    InfoNCE(0.7, normalised, stop, both, pool)
    for normalised, stop, both, pool in product((False, True), (False, True), (False, True), ("partners", "anchors"))
]


def features(seed=0, members=()):
    """Two sets of features of five samples."""
    return rng.normal((2, *members, 5, 3), seed, "features").unbind(0)


def by_autograd(loss, anchors, partners, negatives):
    """The gradient as torch finds it, zero where nothing depends."""
    leaves = [one.clone().requires_grad_() for one in (anchors, partners)]
    found = torch.autograd.grad(loss(*leaves, negatives).sum(), leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]


def test_value_by_hand():
    anchors, partners = features()
    at = lambda i, j: math.exp(float(anchors[i] @ partners[j]) / 0.7)  # noqa: E731
    by_hand = [-math.log(at(i, i) / (at(i, i) + sum(at(i, j) for j in range(5) if Y[i] != Y[j]))) for i in range(5)]
    assert float(InfoNCE(0.7)(anchors, partners, other_labels(Y))) == pytest.approx(sum(by_hand) / 5, rel=1e-12)


def test_negatives_of_the_anchors_own_kind():
    anchors, partners = features()
    at = lambda i, j: math.exp(float(anchors[i] @ anchors[j]))  # noqa: E731
    right = [math.exp(float(anchors[i] @ partners[i])) for i in range(5)]
    by_hand = [math.log1p(sum(at(i, j) for j in range(5) if j != i) / right[i]) for i in range(5)]
    assert float(InfoNCE(pool="anchors")(anchors, partners, all_others(5))) == pytest.approx(sum(by_hand) / 5)


def test_before_training_the_loss_is_that_of_a_guess():
    anchors, partners = features()
    guess = InfoNCE(both=True)(1e-6 * anchors, 1e-6 * partners, all_others(5))
    assert float(guess) == pytest.approx(2 * math.log(5))


@pytest.mark.parametrize("loss", KINDS, ids=repr)
@pytest.mark.parametrize("negatives", [all_others(5), other_labels(Y)], ids=["all others", "other labels"])
def test_gradient_by_hand_is_autograds(loss, negatives):
    anchors, partners = features()
    by_hand, expected = loss.gradient(anchors, partners, negatives), by_autograd(loss, anchors, partners, negatives)
    torch.testing.assert_close(by_hand, tuple(expected), rtol=1e-12, atol=1e-14)


def test_both_directions_are_the_sum_of_two():
    anchors, partners = features()
    one, both = InfoNCE(0.7), InfoNCE(0.7, both=True)
    separate = one(anchors, partners, all_others(5)) + one(partners, anchors, all_others(5))
    torch.testing.assert_close(both(anchors, partners, all_others(5)), separate)
    torch.testing.assert_close(both(partners, anchors, all_others(5)), separate)


def test_stop_gradient_halves_the_first_gradient_of_both_directions():
    anchors, partners = (1e-6 * one for one in features())  # so small that all softmax weights are equal
    free, stopped = InfoNCE(both=True), InfoNCE(both=True, stop_gradient=True)
    assert free(anchors, partners, all_others(5)) == stopped(anchors, partners, all_others(5))
    twice = tuple(2 * one for one in stopped.gradient(anchors, partners, all_others(5)))
    torch.testing.assert_close(free.gradient(anchors, partners, all_others(5)), twice, rtol=1e-5, atol=0)


def test_stopped_partners_get_no_gradient():
    anchors, partners = features()
    assert float(InfoNCE(stop_gradient=True).gradient(anchors, partners, all_others(5))[1].abs().max()) == 0


def test_normalised_features_have_length_one_and_scale_drops_out():
    anchors, partners = features()
    loss = InfoNCE(normalised=True)
    torch.testing.assert_close(normalise(anchors).norm(dim=-1), torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(loss(anchors, partners, all_others(5)), loss(3 * anchors, partners, all_others(5)))


def test_ensemble_equals_loop_also_over_temperatures():
    anchors, partners = features(members=(3,))
    tau = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    together, gradients = InfoNCE(tau), InfoNCE(tau).gradient(anchors, partners, all_others(5))
    for e in range(3):
        alone = InfoNCE(float(tau[e]))
        torch.testing.assert_close(together(anchors, partners, all_others(5))[e],
                                   alone(anchors[e], partners[e], all_others(5)))
        torch.testing.assert_close(gradients[0][e], alone.gradient(anchors[e], partners[e], all_others(5))[0])


def test_large_similarities_do_not_overflow():
    anchors, partners = features()
    loss = InfoNCE(1e-3)
    assert bool(loss(anchors, partners, all_others(5)).isfinite())
    assert all(bool(one.isfinite().all()) for one in loss.gradient(anchors, partners, all_others(5)))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf])
def test_temperature_is_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be a number"):
        InfoNCE(temperature)


def test_refusals_in_one_sentence():
    anchors, partners = features()
    loss = InfoNCE()
    with pytest.raises(ValueError, match="equally many samples; got 5 and 4"):
        loss(anchors, partners[:4], all_others(5))
    with pytest.raises(ValueError, match="equally many features; got 3 and 2"):
        loss(anchors, partners[:, :2], all_others(5))
    with pytest.raises(ValueError, match="every anchor must have a negative; anchor 0 has none"):
        loss.gradient(anchors, partners, other_labels(torch.ones(5)))
    with pytest.raises(ValueError, match="True or False"):
        loss(anchors, partners, torch.ones(5, 5))
