"""Observations of Jacobians against closed forms, on networks that the library does not know."""

import pytest
import torch
from torch import nn

from flbook import observe


def linear(params, x):
    return x @ params["w"]


def test_agop_of_a_linear_network_is_the_product_of_its_weights():
    w = torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(observe.agop(linear, {"w": w}, torch.randn(7, 5).double(), chunk=2), w @ w.T)


def test_agop_of_a_relu_network_is_the_mean_over_its_gates():
    module = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 1)).double()
    x = torch.randn(11, 4).double()
    f, params = observe.functional(module)
    gates = (module[0](x) > 0).double()
    gradients = (gates * module[2].weight[0]) @ module[0].weight
    torch.testing.assert_close(observe.agop(f, params, x), (gradients.T @ gradients / 11).detach())


def test_pictures_and_outputs_of_a_convolutional_network():
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.GELU(), nn.Flatten(), nn.Linear(12, 4)).eval()
    f, params = observe.functional(module)
    x = torch.randn(6, 2, 4, 4)
    assert observe.agop(f, params, x).shape == (32, 32)
    kernel = observe.ntk(f, params, x, chunk=4)
    rows = []
    for one in x:
        parts = [torch.autograd.grad(module(one[None])[0, c], list(module.parameters())) for c in range(4)]
        rows.append(torch.stack([torch.cat([g.reshape(-1) for g in part]) for part in parts]))
    torch.testing.assert_close(kernel, torch.einsum("ikp,jkp->ij", torch.stack(rows), torch.stack(rows)),
                               rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(observe.ntk(f, params, x[:2], x[2:]), kernel[:2, 2:], rtol=1e-4, atol=1e-4)


def test_alignment_is_a_cosine():
    x = torch.randn(8, 3).double()
    kernel = x @ x.T
    assert observe.alignment(kernel, 3 * kernel).item() == pytest.approx(1)
    assert observe.alignment(torch.eye(4), torch.ones(4, 4)).item() == pytest.approx(0.5)
    shifted = (x + 7) @ (x + 7).T
    assert observe.alignment(kernel, shifted, centred=True).item() == pytest.approx(1)
    assert observe.alignment(kernel, shifted).item() < 0.9


@pytest.mark.parametrize("act, sentence", [
    (lambda f, p: observe.agop(f, p, torch.zeros(0, 3)), "at least one input"),
    (lambda f, p: observe.ntk(lambda q, x: x[:, :, None], p, torch.zeros(2, 3)), r"\(n,\) or \(n, k\) with n = 1"),
    (lambda f, p: observe.alignment(torch.eye(2), torch.eye(3)), "one shape"),
    (lambda f, p: observe.functional(nn.Sequential(nn.Linear(2, 2), nn.Dropout())), "call module.eval"),
    (lambda f, p: observe.functional(nn.ReLU()), "no parameter that is trained"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_is_one_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act(*observe.functional(nn.Linear(3, 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_is_made_on_the_cpu(dtype):
    f, params = observe.functional(nn.Linear(3, 2, device="meta", dtype=dtype))
    x = torch.empty(5, 3, device="meta", dtype=dtype)
    assert observe.agop(f, params, x).device.type == observe.ntk(f, params, x).device.type == "meta"
    assert observe.agop(f, params, x).dtype == dtype
