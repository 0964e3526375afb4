"""Curvature of losses whose Hessian is known."""

import pytest
import torch
from torch import nn

from flbook import observe


def quadratic(eigenvalues: list[float]):
    """A loss with these eigenvalues in a turned basis, and its parameters in two tensors."""
    d = len(eigenvalues)
    basis = torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0]
    matrix = basis @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ basis.T

    def loss(params):
        w = torch.cat([params["a"], params["b"].reshape(-1)])
        return w @ matrix @ w / 2

    return loss, {"a": torch.ones(2).double(), "b": torch.ones((d - 2) // 2, 2).double()}, basis


def test_the_largest_eigenvalue_not_the_largest_in_size():
    loss, params, basis = quadratic([-9.0, 5.0, 4.0, 1.0, 0.5, 0.1, 0.0, 0.0])
    found = observe.sharpness(loss, params)
    assert found.value == pytest.approx(5) and found.residual < 1e-5
    vector = torch.cat([found.vector["a"], found.vector["b"].reshape(-1)])
    assert (vector @ basis[:, 1]).abs() == pytest.approx(1)
    assert observe.curvature_along(loss, params, found.vector) == pytest.approx(5)


def test_the_residual_bounds_the_error_of_a_short_run():
    loss, params, _ = quadratic([5.0, 4.9, 4.8, 4.0, 3.0, 2.0, 1.0, 0.0])
    found = observe.sharpness(loss, params, steps=3)
    assert 1e-6 < 5 - found.value < found.residual


def test_the_trace_lies_in_its_interval():
    loss, params, _ = quadratic([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    value, (low, high) = observe.hessian_trace(loss, params, draws=400)
    assert low < 15 < high and high - low < 1.5 and low < value < high


def test_the_sharpness_of_a_network_is_that_of_its_full_hessian():
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    f, params = observe.functional(module)
    x, y = torch.randn(20, 3).double(), torch.randn(20).double()

    def loss(params):
        return (f(params, x)[:, 0] - y).square().mean()

    names = list(params)
    sizes = [params[name].numel() for name in names]

    def of_vector(w):
        return loss({name: part.reshape(params[name].shape) for name, part in
                     zip(names, w.split(sizes), strict=True)})

    hessian = torch.autograd.functional.hessian(of_vector, torch.cat([params[name].reshape(-1) for name in names]))
    assert observe.sharpness(loss, params).value == pytest.approx(torch.linalg.eigvalsh(hessian)[-1].item(), rel=1e-5)


@pytest.mark.parametrize("theirs, ours", [
    (nn.functional.mse_loss, lambda out, y: (out - y).square().mean()),
    (nn.functional.huber_loss, lambda out, y: nn.functional.smooth_l1_loss(out, y)),
])
def test_the_usual_losses_of_pytorch(theirs, ours):
    torch.manual_seed(0)
    f, params = observe.functional(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double())
    x, y = torch.randn(7, 4).double(), torch.randn(7, 2).double()
    one, other = (observe.sharpness(lambda p, loss=loss: loss(f(p, x), y), params).value for loss in (theirs, ours))
    assert one == pytest.approx(other, rel=1e-8)


@pytest.mark.parametrize("act, sentence", [
    (lambda p: observe.sharpness(lambda q: q["w"], p), r"one number; got shape \(3,\)"),
    (lambda p: observe.hessian_trace(lambda q: q["w"].sum(), p, draws=1), "at least 2"),
    (lambda p: observe.curvature_along(lambda q: q["w"].sum(), p, {"w": torch.zeros(3)}), "must not be 0"),
    (lambda p: observe.curvature_along(lambda q: q["w"].sum(), p, {"v": torch.ones(3)}), "must name the parameters w"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act({"w": torch.ones(3)})
