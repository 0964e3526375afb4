"""The loss path kernel: the identities of the flow, closed form = autograd, orders of the step, bounds by hand."""

import numpy as np
import pytest
import torch

from flbook.data import SignalNoise
from flbook.dynamics.tangent_kernel import tangent_kernel
from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher
from flbook.lectures.representation.loss_path_kernel.path_kernel import (
    Probe,
    ball_bound,
    confidence,
    count_bound,
    held_out,
    loss_path,
    rates,
    resampled_bound,
    trace,
)
from flbook.models import TwoLayer, TwoLayerCNN, softplus
from flbook.training.losses import logistic, squared
from flbook.training.network import Training

SEEDS = (0, 1)
DATA = Teacher(n=6, d=3)
TIMES = np.linspace(0, 4, 41).tolist()


def problem(start="paired", loss=logistic, scale=0.2, seeds=SEEDS):
    sample = DATA.draw(seeds)
    y = sample.y if loss is squared else sample.y.sign()
    scale = torch.tensor([[scale], [1 / 8]]) if isinstance(seeds, tuple) else scale
    return Training(TwoLayer(3, 8, scale, start, seed=seeds), sample.x, y, loss)


def fresh(seeds=SEEDS):
    sample = DATA.draw_test(5, seeds)
    return Probe(sample.x, sample.y.sign())


def losses(network, params, probe=None):
    if probe is None:
        return network.loss(network.predict(params), network.observed)
    return network.loss(network.predict(params, probe.x), probe.y)


@pytest.mark.parametrize("start", ["paired", "centred"])
def test_every_loss_falls_by_the_mean_of_its_kernel(start):
    training = problem(start)
    for probe in (None, fresh()):
        *_, end = loss_path(training, TIMES, probe)
        fallen = losses(training, training.start(), probe) - losses(training, end.params, probe)
        torch.testing.assert_close(end.kernel.mean(-1), fallen, rtol=1e-5, atol=1e-7)
        assert fallen.abs().max() > 0.05
    *_, end = loss_path(training, TIMES)
    assert (end.kernel == end.kernel.mT).all() or torch.allclose(end.kernel, end.kernel.mT)
    assert torch.linalg.eigvalsh(end.kernel).min() > -1e-9


def test_points_come_at_the_times():
    points = list(loss_path(problem(), TIMES[:4]))
    assert [point.time for point in points] == TIMES[:4] and (points[0].kernel == 0).all()
    torch.testing.assert_close(points[0].params["w"], problem().start()["w"])


@pytest.mark.parametrize("order, power", [(1, 1), (4, 4)])
def test_order_of_the_step(order, power):
    training, miss = problem(), []
    for steps in (20, 40):
        *_, end = loss_path(training, np.linspace(0, 4, steps + 1).tolist(), order=order)
        fall = training.train_loss(training.start()) - training.train_loss(end.params)
        miss.append((end.kernel.mean((-2, -1)) - fall).abs().max().item())
    assert np.log2(miss[0] / miss[1]) == pytest.approx(power, abs=0.5)


def test_gradient_descent_is_order_one():
    training = problem()
    *_, end = loss_path(training, (0, 0.1, 0.2), order=1)
    w = training.start()
    for _ in range(2):
        w = {"w": w["w"] - 0.1 * training.model.step(1.0)[..., None, None] * training.gradient(w)["w"]}
    torch.testing.assert_close(end.params["w"], w["w"])


@pytest.mark.parametrize("probe", [None, fresh(), fresh()._replace(within=True)], ids=["train", "fresh", "within"])
@pytest.mark.parametrize("start", ["paired", "centred"])
def test_the_closed_form_is_that_of_autograd(start, probe):
    training = problem(start)
    params = {"w": training.start()["w"] + 0.1 * torch.arange(3)}
    velocity, gram = rates(training, params, probe)
    step = training.model.step(1.0)[..., None, None]
    torch.testing.assert_close(velocity["w"], -step * training.gradient(params)["w"])
    of = probe or Probe(training.x, training.observed)
    slopes = [training.loss.slope(training.predict(params, x), y) for x, y in (of[:2], (training.x, training.observed))]
    x = (of.x, of.x if of.within else training.x)
    other = slopes[0] if of.within else slopes[1]
    expected = step * tangent_kernel(training, params, *x) * slopes[0][..., :, None] * other[..., None, :]
    torch.testing.assert_close(gram, expected)


def test_any_network_has_a_path():
    sample = SignalNoise(n=5, d=6, mu_norm=1.0).draw(SEEDS)
    cnn = TwoLayerCNN(6, 2, 0.5, softplus, bias=True, seed=SEEDS, dtype=torch.float64)
    training = Training(cnn, sample.x, sample.observed)
    velocity, _ = rates(training, training.start())
    for name, gradient in training.gradient(training.start()).items():
        torch.testing.assert_close(velocity[name], -gradient)
    *_, end = loss_path(training, TIMES[:11])
    fall = training.train_loss(training.start()) - training.train_loss(end.params)
    torch.testing.assert_close(end.kernel.mean((-2, -1)), fall, rtol=1e-6, atol=1e-9)


def test_the_diagonal_alone_is_the_diagonal():
    training = problem()
    *_, whole = loss_path(training, TIMES)
    *_, own = loss_path(training, TIMES, diagonal=True)
    torch.testing.assert_close(own.kernel, whole.kernel.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(own.params["w"], whole.params["w"])


def test_bounds_by_hand():
    kernel = torch.tensor([[4.0, 1.0], [1.0, 5.0]])
    assert trace(kernel).item() == 9
    assert ball_bound(torch.tensor(0.25), kernel.diagonal()).item() == pytest.approx(2 / 2 * (0.25 * 9) ** 0.5)
    assert confidence(50, 2 / np.e) == pytest.approx(0.3) and held_out(50, 1 / np.e) == pytest.approx(0.1)
    assert count_bound(8, 3, bits=4, share=1.0) == pytest.approx((12 * np.log(2) / 16) ** 0.5)
    kernels = torch.stack([kernel, torch.tensor([[2.0, 3.0], [3.0, 2.0]])])
    norms = torch.tensor([0.25, 0.16])
    close = torch.tensor([[0.5, 0.2], [0.4, 0.2]])
    assert resampled_bound(kernels, norms, close).item() == pytest.approx(2 * 0.1 / 2)
    far = torch.tensor([[50.0, 0.2], [0.4, 0.2]])
    assert resampled_bound(kernels, norms, far).item() == pytest.approx(2 * 0.5 * (9 + 2 * 1.0) ** 0.5 / 2)


def test_bad_input_is_one_sentence():
    for times in ((0,), (1, 2), (0, 2, 2)):
        with pytest.raises(ValueError, match="times must increase from 0; got"):
            next(loss_path(problem(), times))
    with pytest.raises(ValueError, match="the diagonal is that of the training samples"):
        next(loss_path(problem(), (0, 1), fresh(), diagonal=True))
    with pytest.raises(ValueError, match="order must be 1, gradient descent, or 4, Runge-Kutta; got 2"):
        next(loss_path(problem(), (0, 1), order=2))
