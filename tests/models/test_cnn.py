"""The two-layer CNN and its activations: formulas by hand, ensembles, gradients, starts, bad input."""

import math

import pytest
import torch

from flbook.data import SignalNoise
from flbook.models import LeakyReLU, ReLUPower, TwoLayerCNN, erf, gelu, identity, relu, softplus, tanh
from flbook.models.activations import SmoothLeakyReLU, Softplus

Z = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0], dtype=torch.float64)
ACTIVATIONS = pytest.mark.parametrize(
    "activation",
    [relu, ReLUPower(2.0), ReLUPower(3.0), LeakyReLU(0.2), SmoothLeakyReLU(0.2, 5.0), softplus, gelu, identity,
     tanh, erf, Softplus(4.0)],
    ids=repr,
)


@pytest.mark.parametrize(
    "activation, expected",
    [
        (relu, [0, 0, 0, 0.5, 2]),
        (ReLUPower(2.0), [0, 0, 0, 0.25, 4]),
        (ReLUPower(3.0), [0, 0, 0, 0.125, 8]),
        (LeakyReLU(0.2), [-0.4, -0.1, 0, 0.5, 2]),
        (LeakyReLU(0.0), [0, 0, 0, 0.5, 2]),
        (identity, Z.tolist()),
        (gelu, [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in Z]),
        (SmoothLeakyReLU(0.2, 4.0), [0.2 * z + 0.2 * math.log((1 + math.exp(4 * z)) / 2) for z in Z]),
        (softplus, [math.log(1 + math.exp(z)) for z in Z]),
        (Softplus(4.0), [math.log(1 + math.exp(4 * z)) / 4 for z in Z]),
        (tanh, [math.tanh(z) for z in Z]),
        (erf, [math.erf(z) for z in Z]),
    ],
    ids=repr,
)
def test_activation_by_hand(activation, expected):
    torch.testing.assert_close(activation(Z), torch.tensor(expected, dtype=torch.float64))


@ACTIVATIONS
def test_slope_is_the_derivative_kink_included(activation):
    z = Z.clone().requires_grad_()
    (expected,) = torch.autograd.grad(activation(z).sum(), z)
    torch.testing.assert_close(activation.slope(Z), expected)


@ACTIVATIONS
def test_pulled_back_is_upstream_times_slope(activation):
    upstream = torch.linspace(-2, 3, 4, dtype=Z.dtype)[:, None]  # of a shape of its own
    torch.testing.assert_close(activation.vjp(upstream, Z), upstream * activation.slope(Z))


def small(scale=None, bias=False, activation=relu):
    """A 2 x 2 case: one filter of either sign in two dimensions."""
    cnn = TwoLayerCNN(2, 1, 0.1, activation, scale, bias, dtype=torch.float64)
    with torch.no_grad():
        cnn.w.copy_(torch.tensor([[[1.0, 2.0]], [[-1.0, 1.0]]]))
        if bias:
            cnn.b.copy_(torch.tensor([[0.5], [-1.0]]))
    return cnn


X = torch.tensor([[[1.0, 0.0], [1.0, 1.0]], [[0.0, 2.0], [-1.0, 0.0]]], dtype=torch.float64)


def test_output_by_hand():
    # filter + sees 1, 3 and 4, -1; filter - sees -1, 0 and 2, 1
    assert small()(X).tolist() == [4, 1]
    assert small(scale=0.5)(X).tolist() == [2, 0.5]
    # with biases + sees 1.5, 3.5 and 4.5, -0.5; - sees -2, -1 and 1, 0
    assert small(bias=True)(X).tolist() == [5, 3.5]
    assert small(activation=ReLUPower(2.0))(X).tolist() == [10, 11]


def test_mean_over_filters_is_the_default_and_the_sum_is_scale_one():
    mean, total = (TwoLayerCNN(2, 5, 0.3, scale=scale, dtype=torch.float64) for scale in (None, 1.0))
    torch.testing.assert_close(5 * mean(X), total(X))


@ACTIVATIONS
@pytest.mark.parametrize("bias", [False, True])
def test_an_ensemble_is_a_loop(activation, bias):
    seeds = (4, 0, 9)
    sample = SignalNoise(n=6, d=8).draw(seeds)
    make = [TwoLayerCNN(8, 3, None, activation, None, bias, seed, torch.float64) for seed in (seeds, *seeds)]
    together, alone = make[0], make[1:]
    torch.testing.assert_close(together(sample.x), torch.stack([f(x) for f, x in zip(alone, sample.x, strict=True)]))
    one = sample.x[0]  # the same data for every member
    torch.testing.assert_close(together(one), torch.stack([f(one) for f in alone]))
    torch.testing.assert_close(alone[0](sample.x), torch.stack([alone[0](x) for x in sample.x]))


@ACTIVATIONS
def test_gradient_is_the_finite_difference(activation):
    x = SignalNoise(n=3, d=4).draw(0).x
    cnn = TwoLayerCNN(4, 2, 0.5, activation, bias=True, seed=1, dtype=torch.float64)
    names, values = zip(*cnn.named_parameters(), strict=True)

    def f(*params):
        return torch.func.functional_call(cnn, dict(zip(names, params, strict=True)), (x,))

    assert torch.autograd.gradcheck(f, values)


def test_gaussian_start():
    cnn = TwoLayerCNN(50, 10, 0.03, bias=True, seed=tuple(range(40)), dtype=torch.float64)
    w = cnn.w.detach()
    assert w.shape == (40, 2, 10, 50) and cnn.b.shape == (40, 2, 10)
    assert w.std().item() == pytest.approx(0.03, rel=4 / math.sqrt(2 * w.numel()))
    assert abs(w.mean().item()) < 4 * 0.03 / math.sqrt(w.numel())
    assert (cnn.b == 0).all(), "biases start at zero beside Gaussian filters"
    assert TwoLayerCNN(50, 10, 0.03).b is None and TwoLayerCNN(50, 10).w.dtype == torch.float32


def test_default_start_is_that_of_a_convolution():
    conv = torch.nn.Conv1d(1, 1, 50)  # the authors' first layer: one channel, a kernel as long as a patch
    bound = 1 / math.sqrt(50)
    assert conv.weight.abs().max() <= bound and conv.bias.abs().max() <= bound
    cnn = TwoLayerCNN(50, 10, bias=True, seed=tuple(range(40)), dtype=torch.float64)
    for p in (cnn.w.detach(), cnn.b.detach()):
        assert p.abs().max() <= bound and p.abs().max() > 0.98 * bound
        assert p.var().item() == pytest.approx(bound**2 / 3, rel=4 * math.sqrt(0.8 / p.numel()))
        assert abs(p.mean().item()) < 4 * bound / math.sqrt(3 * p.numel())


def test_data_and_weights_of_one_seed_are_different_numbers():
    xi, w = SignalNoise(n=2, d=30).draw(3).xi, TwoLayerCNN(30, 1, 1.0, seed=3, dtype=torch.float64).w.flatten(0, 1)
    assert not torch.isclose(xi, w).any()


def test_patches_of_another_dimension_are_one_sentence():
    with pytest.raises(ValueError, match=r"patches of shape \(5, 2, 7\) do not fit filters of shape \(2, 3, 8\)"):
        TwoLayerCNN(8, 3)(torch.zeros(5, 2, 7))
