"""The tangent kernel: by hand, closed form = autograd, frozen training = the closed form of the lazy rival."""

import pytest
import torch

from flbook import observe
from flbook.data import SignalNoise
from flbook.dynamics.tangent_kernel import kernel_descent, kernel_ridge, neuron_kernel, relative_change, tangent_kernel
from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher
from flbook.models import TwoLayer, TwoLayerCNN, identity, softplus
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent

SEEDS = (0, 1)
DATA = Teacher(n=6, d=3)


def problem(scale=0.2, start="paired", **model):
    sample = DATA.draw(SEEDS)
    return Training(TwoLayer(3, 8, scale, start, seed=SEEDS, **model), sample.x, sample.y, squared)


def test_by_hand():
    model = TwoLayer(2, 2, activation=identity)
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    torch.testing.assert_close(neuron_kernel(model, model.w, x), x @ x.T)


@pytest.mark.parametrize("scale", [0.05, torch.tensor([[0.3], [2.0]])], ids=["one", "two"])
@pytest.mark.parametrize("start", ["paired", "centred"])
def test_the_closed_form_is_that_of_autograd(scale, start):
    training, fresh = problem(scale, start, activation=softplus), DATA.draw_test(4, SEEDS).x
    params = fit(training, GradientDescent(training.model.step(0.3)), 3).params
    direct = tangent_kernel(training, params, training.x, fresh) * training.model.step(1.0)[..., None, None]
    torch.testing.assert_close(neuron_kernel(training.model, params["w"], training.x, fresh), direct)


def test_of_any_network_it_is_the_gram_matrix_of_gradients():
    sample, cnn = SignalNoise(n=4, d=5, mu_norm=1.0).draw(0), TwoLayerCNN(5, 2, 0.5, bias=True, dtype=torch.float64)
    training = Training(cnn, sample.x, sample.observed)
    kernel = tangent_kernel(training, training.start(), training.x)
    (w, b) = torch.autograd.grad(cnn(sample.x[1:2]).sum(), [cnn.w, cnn.b])
    (w_3, b_3) = torch.autograd.grad(cnn(sample.x[3:4]).sum(), [cnn.w, cnn.b])
    torch.testing.assert_close(kernel[1, 3], (w * w_3).sum() + (b * b_3).sum())
    torch.testing.assert_close(kernel, kernel.T)
    torch.testing.assert_close(kernel, observe.ntk(*observe.functional(cnn), sample.x, chunk=3))


@pytest.mark.parametrize("steps", [0, 1, 50])
def test_kernel_descent_is_the_lazy_network(steps):
    training = problem()
    lazy, rule, w = training.lazy(), GradientDescent(training.model.step(0.7)), training.start()["w"]
    fresh = DATA.draw_test(5, SEEDS).x
    params = fit(lazy, rule, steps).params
    for x in (training.x, fresh):
        kernel, cross = neuron_kernel(training.model, w, training.x), neuron_kernel(training.model, w, x, training.x)
        closed = kernel_descent(kernel, cross, training.observed, steps, lr=0.7)
        torch.testing.assert_close(closed, lazy.predict(params, x), rtol=1e-10, atol=1e-12)


def test_kernel_descent_ends_at_regression_without_a_ridge_also_on_a_singular_kernel():
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    y = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    closed = kernel_descent(x @ x.T, x @ x.T, y, 10**6, lr=0.1)
    torch.testing.assert_close(closed, y, rtol=1e-8, atol=1e-8)


def test_kernel_ridge_solves_its_equation():
    sample, ridge = DATA.draw(SEEDS), torch.tensor([0.1, 3.0], dtype=torch.float64)
    kernel = torch.einsum("...nd,...pd->...np", sample.x, sample.x)
    found = kernel_ridge(kernel, kernel, sample.y, ridge)
    for k, one in enumerate(ridge):
        expected = kernel @ torch.linalg.solve(kernel + one * torch.eye(6, dtype=kernel.dtype), sample.y[..., None])
        torch.testing.assert_close(found[:, k], expected[..., 0])


def test_relative_change_by_hand():
    now, before = torch.tensor([[1.0, 2.0], [0.0, 4.0]]), torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    assert relative_change(now, before).item() == pytest.approx(3 / 6**0.5)


def test_bad_input_is_one_sentence():
    eye, y = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    with pytest.raises(ValueError, match="lr must be below 4, 2 n over the largest eigenvalue of the kernel"):
        kernel_descent(eye, eye, y, 3, lr=4.0)
    for ridge in (0.0, -0.5):
        with pytest.raises(ValueError, match=f"ridge must be positive; got {ridge:g}"):
            kernel_ridge(eye, eye, y, torch.tensor([1.0, ridge], dtype=torch.float64))
