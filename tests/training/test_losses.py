"""Losses: values by hand, slopes against autograd, labels."""

import math

import pytest
import torch

from flbook.training.losses import Weighted, check_labels, cross_entropy, hinge, logistic, squared, squared_classes

LOSSES = pytest.mark.parametrize("loss", [logistic, hinge, squared], ids=repr)
F = torch.tensor([-50.0, -1.0, -0.3, 0.0, 0.7, 1.0, 2.0, 50.0], dtype=torch.float64)


@pytest.mark.parametrize(
    "loss, f, y, value, slope",
    [
        (logistic, 0.0, 1.0, math.log(2), -0.5),
        (logistic, math.log(3), -1.0, math.log(4), 0.75),
        (hinge, 0.25, 1.0, 0.75, -1.0),
        (hinge, 0.25, -1.0, 1.25, 1.0),
        (hinge, 3.0, 1.0, 0.0, 0.0),
        (squared, 3.0, -1.0, 8.0, 4.0),
    ],
    ids=repr,
)
def test_values_by_hand(loss, f, y, value, slope):
    f, y = torch.tensor(f, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    assert loss(f, y).item() == pytest.approx(value)
    assert loss.slope(f, y).item() == pytest.approx(slope)


def test_logistic_loss_is_the_cross_entropy_of_two_logits():
    logits = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(20) % 2  # class 0 is y = +1
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(logistic(logits[:, 0] - logits[:, 1], 1.0 - 2.0 * labels), expected)


@LOSSES
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_slope_is_the_derivative_kink_included(loss, y):
    f, y = F.clone().requires_grad_(), torch.full_like(F, y)
    (expected,) = torch.autograd.grad(loss(f, y).sum(), f)
    torch.testing.assert_close(loss.slope(F, y), expected)


@pytest.mark.parametrize("loss", [logistic, squared], ids=repr)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_curvature_is_the_derivative_of_the_slope(loss, y):
    f, y = F.clone().requires_grad_(), torch.full((3, 1), y, dtype=F.dtype)
    (expected,) = torch.autograd.grad(loss.slope(f, y)[0].sum(), f)
    torch.testing.assert_close(loss.curvature(F, y), expected.expand(3, -1))


@pytest.mark.parametrize("loss", [logistic, hinge, squared, cross_entropy, squared_classes], ids=repr)
def test_a_loss_is_a_value(loss):
    """It equals another of its kind, with one hash and a name: settings and problems that hold it are compared."""
    assert loss == type(loss)() and hash(loss) == hash(type(loss)()) and repr(loss) == f"{type(loss).__name__}()"
    assert loss != (squared if loss is not squared else hinge)


@LOSSES
def test_no_overflow(loss):
    f, y = torch.tensor([1e4, -1e4]), torch.tensor([1.0, 1.0])
    assert torch.isfinite(loss(f, y)).all() and torch.isfinite(loss.slope(f, y)).all()
    assert logistic(f, y).tolist() == [0, 1e4]


@pytest.mark.parametrize("wrong, text", [(0.0, "0"), (2.0, "2"), (-0.5, "-0.5"), (math.nan, "nan")])
def test_other_labels_are_one_sentence(wrong, text):
    with pytest.raises(ValueError, match=f"labels must be -1 or \\+1; found {text} ") as error:
        check_labels(torch.tensor([[1.0, -1.0], [wrong, 1.0]]))
    assert "\n" not in str(error.value)
    check_labels(torch.tensor([[1.0, -1.0]]))


def test_cross_entropy_is_torchs_own_and_its_slope_the_derivative():
    f = torch.randn(2, 20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    y = torch.arange(20) % 4  # one set of labels for both members
    loss = cross_entropy(f, y)
    expected = torch.nn.functional.cross_entropy(f.flatten(0, 1), y.repeat(2), reduction="none")
    torch.testing.assert_close(loss, expected.reshape(2, 20))
    torch.testing.assert_close(cross_entropy.slope(f, y), torch.autograd.grad(loss.sum(), f)[0])
    torch.testing.assert_close(cross_entropy(f, y.double()), loss)


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_targets_that_are_no_numbers_are_one_sentence(wrong):
    with pytest.raises(ValueError, match=f"targets must be finite; found {wrong}"):
        squared.check(torch.tensor([[0.5, wrong], [3.0, -2.0]]))
    squared.check(torch.tensor([0.5, -7.0]))


@pytest.mark.parametrize("check", [check_labels, cross_entropy.check, squared.check])
def test_on_the_meta_device_there_are_no_labels_to_look_at(check):
    check(torch.zeros(4, device="meta"))


@pytest.mark.parametrize("wrong", [-1.0, 0.5, math.nan])
def test_labels_that_are_no_classes_are_one_sentence(wrong):
    with pytest.raises(ValueError, match="labels must be class numbers 0, 1, ...; found"):
        cross_entropy.check(torch.tensor([0.0, wrong]))
    cross_entropy.check(torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="labels must be below 3, the number of logits; found 3"):
        cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]))


def test_squared_classes_by_hand():
    f, y = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64), torch.tensor([0, 1])
    assert squared_classes(f, y).tolist() == [(0.5**2 + 0.5**2) / 2, (1 + 0) / 2]
    assert squared_classes.slope(f, y).tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_weights_are_of_each_sample_also_where_it_has_logits():
    weight = torch.tensor([2.0, 0.5], dtype=torch.float64)
    f, y = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64), torch.tensor([0, 1])
    logits, numbers = Weighted(squared_classes, weight), Weighted(squared, weight)
    assert (logits.takes_classes, numbers.takes_classes) == (True, False)
    assert logits(f, y).tolist() == [0.5, 0.25] and logits.slope(f, y).tolist() == [[1.0, 1.0], [0.5, 0.0]]
    assert numbers(f[0], y).tolist() == [1.0, 0.25] and numbers.slope(f[0], y).tolist() == [2.0, -0.5]
