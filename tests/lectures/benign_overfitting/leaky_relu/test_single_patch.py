"""Training in coefficients on samples of one patch: weights of direct training, to 1e-10, and its test errors."""

from dataclasses import replace
from operator import methodcaller

import pytest
import torch

from flbook import measures
from flbook.data.signal_noise import SignalNoise
from flbook.dynamics.inner_products import Gram
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SampleGram, SinglePatchTraining
from flbook.models import LeakyReLU, TwoLayerCNN, identity, relu, softplus
from flbook.models.activations import SmoothLeakyReLU
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import hinge, logistic
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, Momentum

LINEAR, LAZY = methodcaller("linear"), methodcaller("lazy")  # rivals of a problem
N, D, M, SEEDS, STEPS = 8, 14, 3, (0, 1, 2), 60
DATA = Mixture(n=N, d=D, gamma=0.3, flip_prob=0.25)
KINKED = {"leaky": LeakyReLU(0.2), "relu": relu}
SMOOTH = {"smooth leaky": SmoothLeakyReLU(0.2, 5.0), "softplus": softplus, "linear": identity}


def both(activation, loss, seeds=SEEDS):
    """The same problem in d dimensions and in coefficients."""
    sample = DATA.draw(seeds)
    cnn = TwoLayerCNN(D, M, 0.1, activation, 1.0, seed=seeds, dtype=torch.float64)
    coefficients = SinglePatchTraining.of(DATA, sample, cnn, loss)
    return Training(cnn, sample.x[..., None, :], sample.observed, loss), coefficients, sample


def rebuilt(direct, params, sample):
    """The weights that coefficients stand for."""
    moved = torch.einsum("...kn,...nd->...kd", params["x"], sample.x)
    return direct.start()["w"] + moved.unflatten(-2, (2, M))


@pytest.mark.parametrize("rule", [GradientDescent(torch.tensor([0.1, 0.2, 0.15])), Momentum(0.05, 0.8)], ids=repr)
@pytest.mark.parametrize("loss", [hinge, logistic], ids=repr)
@pytest.mark.parametrize("activation", [*KINKED.values(), *SMOOTH.values()], ids=[*KINKED, *SMOOTH])
def test_coefficients_train_like_weights(activation, loss, rule):
    direct, coefficients, sample = both(activation, loss)
    steps = range(STEPS + 1)
    w = Quantity("w", lambda p: p["w"], ("sign", "filter", "dimension"))
    c = Quantity("w", lambda p: rebuilt(direct, p, sample), w.dims)
    z = Quantity("z", lambda p: torch.minimum(coefficients.preactivations(p).abs().amin((-2, -1)),
                                              (1 - coefficients.observed * coefficients.predict(p)).abs().amin(-1)))
    expected = fit(direct, rule, STEPS, [w], ("seed",), steps).history.w.values
    found = fit(coefficients, rule, STEPS, [c, z], ("seed",), steps).history
    close = (found.z < 1e-12).any("seed").values
    until = close.argmax() if close.any() else STEPS + 1  # there rounding decides a slope, and the runs may part
    assert until > STEPS // 2
    assert abs(found.w.values - expected)[:until].max() < 1e-10 * abs(expected[:until]).max()
    assert abs(expected[until - 1] - expected[0]).max() > 0.05


def trained():
    direct, coefficients, sample = both(LeakyReLU(0.1), hinge)
    params = fit(coefficients, GradientDescent(0.1), 30).params
    return direct, coefficients, params, {"w": rebuilt(direct, params, sample)}


def test_loss_norm_and_inner_products_are_those_of_the_weights():
    direct, coefficients, params, weights = trained()
    torch.testing.assert_close(coefficients.train_loss(params), direct.train_loss(weights))
    w = weights["w"].flatten(-3, -2)
    torch.testing.assert_close(coefficients.weight_gram(params), torch.einsum("...kd,...ld->...kl", w, w))
    torch.testing.assert_close(coefficients.on_signal(params), w @ DATA.mu)
    step = {"w": weights["w"] - direct.start()["w"]}
    torch.testing.assert_close(coefficients.norm(params), direct.norm(step))


@pytest.mark.parametrize("rival", [lambda p: p, LINEAR, LAZY], ids=["network", "linear", "lazy"])
def test_error_without_samples_is_that_on_samples(rival):
    direct, coefficients, sample = both(LeakyReLU(0.1), hinge)
    coefficients = rival(coefficients)
    params = fit(coefficients, GradientDescent(0.1), 30).params
    if rival is LINEAR:
        direct = Training(TwoLayerCNN(D, M, 0.1, identity, 1.0, seed=SEEDS, dtype=torch.float64),
                          sample.x[..., None, :], sample.observed, hinge)
    direct = direct.lazy() if rival is LAZY else direct
    weights = {"w": rebuilt(direct, params, sample)}
    torch.testing.assert_close(coefficients.predict(params), direct.predict(weights))
    fresh = DATA.draw_test(20_000, SEEDS)
    expected = measures.test_error_on(direct, weights, fresh.x[..., None, :], fresh.y)
    torch.testing.assert_close(measures.test_error(coefficients, params, 8192), expected, atol=0.012, rtol=0)


def test_lazy_trains_like_lazy_weights():
    direct, coefficients, sample = both(LeakyReLU(0.1), logistic)
    expected = fit(direct.lazy(), GradientDescent(0.2), 20).params["w"]
    params = fit(coefficients.lazy(), GradientDescent(0.2), 20).params
    torch.testing.assert_close(rebuilt(direct, params, sample), expected, rtol=1e-9, atol=1e-12)


def test_noise_along_the_signal_counts():
    data = SignalNoise(n=N, d=D, mu_norm=2.0)
    sample, w = data.draw(0), torch.randn(4, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gram = SampleGram.added(Gram.of(sample, w), sample.y)
    x = sample.x.sum(-2)
    torch.testing.assert_close(gram.x_x, x @ x.T)
    torch.testing.assert_close(gram.w_x, w @ x.T)
    torch.testing.assert_close(gram.x_mu, x @ sample.mu)
    assert abs(gram.x_mu - sample.y * 4).max() > 0.1
    with pytest.raises(ValueError, match=r"samples of shape \(8, 14\) and filters of shape \(4, 3\) differ in d"):
        SampleGram.of(x, sample.mu, w[:, :3])


def test_select_takes_members_as_they_are():
    _, coefficients, params, _ = trained()
    some = coefficients.select(torch.tensor([2, 0]))
    torch.testing.assert_close(some.predict({"x": params["x"][[2, 0]]}), coefficients.predict(params)[[2, 0]])
    grid = replace(coefficients, sigma_xi=torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))
    assert grid.select(torch.tensor([1])).sigma_xi.tolist() == [0.2]


def test_labels_that_do_not_fit_are_one_sentence():
    _, coefficients, _ = both(relu, hinge)
    with pytest.raises(ValueError, match=r"labels of shape \(5,\) do not fit the Gram matrix of n = 8 samples"):
        replace(coefficients, observed=torch.ones(5, dtype=torch.float64))
    with pytest.raises(ValueError, match="labels must be -1 or"):
        replace(coefficients, observed=torch.zeros(8, dtype=torch.float64))
